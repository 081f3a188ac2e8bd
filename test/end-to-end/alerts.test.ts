/** Failures reach the alert addresses of the settings, through the outbox and deliveries, within seconds. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { type Receiver, startReceiver } from "../../src/webhooks/receiver.fixture.ts";
import { useDatabase } from "../database.ts";
import { startMillrace, type TestMillrace } from "../millrace.ts";
import { until } from "../until.ts";

const database = useDatabase();
let receiver: Receiver;
let millrace: TestMillrace;

beforeAll(async () => {
  receiver = await startReceiver();
  millrace = await startMillrace(database, {
    env: {
      MILLRACE_ROLES: "api,scheduler,worker",
      MILLRACE_WEBHOOKS_ALLOW_PRIVATE: "true",
      MILLRACE_SECRET_KEY: "ab".repeat(32),
    },
    webhooks: { alerts: [{ name: "on-call", url: receiver.url("/alerts"), retryNum: 3 }] },
  });
});
afterAll(async () => {
  await millrace.app.stop();
  await receiver.stop();
});

const alertOf = (event: string) =>
  receiver
    .received("/alerts")
    .map(({ body }) => JSON.parse(body) as Record<string, unknown>)
    .find((alert) => alert["event"] === event);

test("a run that failed is alerted within seconds, and a child run is not", async () => {
  const { api } = millrace;
  // It fails before the run ends.
  const nodes = [
    { id: "broken", type: "sql", cfg: { sql: "select no_such_column" } },
    { id: "slow", type: "sleep", cfg: { ms: 500 } },
  ];
  const { body: chain } = await api.post("/api/v1/chains", { name: "nightly", dagJson: { nodes } });
  const { body: run } = await api.post(`/api/v1/chains/${String(chain["chainId"])}:start`, { opTime: "20251219" });
  const outer = { nodes: [{ id: "inner", type: "chain", cfg: { name: "nightly" } }] };
  const { body: parent } = await api.post("/api/v1/chains", { name: "outer", dagJson: outer });
  const { body: outerRun } = await api.post(`/api/v1/chains/${String(parent["chainId"])}:start`, {});
  await until(() => receiver.received("/alerts").length >= 2, "both alerts");
  expect(alertOf("RUN_FAILED")).toMatchObject({ runId: run["runId"], name: "nightly", opTime: "20251219" });
  const alerts = receiver.received("/alerts").map(({ body }) => JSON.parse(body) as { runId: string; reason: string });
  expect(new Set(alerts.map(({ runId }) => runId))).toEqual(new Set([run["runId"], outerRun["runId"]]));
  for (const { runId, reason } of alerts) {
    expect(reason).toContain("no_such_column");
    expect((await api.get(`/api/v1/runs/${runId}`)).body["reason"]).toBe(reason);
  }
});

test("a model that failed is alerted", async () => {
  const { api } = millrace;
  const model = { name: "broken", sql: "select no_such_column", dependencies: [{ table: "T" }], kpis: ["KD1"] };
  await api.put("/api/v1/kpi/models/BROKEN", model);
  await api.post("/api/v1/kpi/models/BROKEN:publish");
  await api.post("/api/open/kpi/srcTableComplete", { srcTableName: "T", opTime: "20251219" });
  await until(() => alertOf("MODEL_FAILED") !== undefined, "the alert");
  expect(alertOf("MODEL_FAILED")).toMatchObject({ modelId: "BROKEN", opTime: "20251219" });
});
