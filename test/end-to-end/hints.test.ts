/** Hints of changes as a page uses them: with two processes, and for the actions of each module. */
import { randomBytes } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { beforeAll, describe, expect, test } from "vitest";
import { applySource, plan, windowOf } from "../../src/harvest/harvest.fixture.ts";
import { sparkEvent } from "../../src/lineage/events.fixture.ts";
import { type Simulator, startCrossref } from "../../src/simulators/index.ts";
import type { Answer, Json } from "../client.ts";
import { useDatabase } from "../database.ts";
import { type HintStream, openHintStream } from "../hint-stream.ts";
import { makeTenant, postEvent } from "../lineage-process.ts";
import { startMillrace, type TestMillrace, useMillrace } from "../millrace.ts";
import { until } from "../until.ts";

const database = useDatabase();
const env: Record<string, string> = { MILLRACE_SECRET_KEY: randomBytes(32).toString("base64") };
const workerEnv: Record<string, string> = { ...env, MILLRACE_ROLES: "api,worker,scheduler" };
let simulator: Simulator;
beforeAll(async () => {
  simulator = await startCrossref({ unlimited: true, days: ["2026-08-01"] });
  // Of every process that runs tasks: any of them may claim one of the source.
  workerEnv["MILLRACE_HARVEST_ALLOW_PRIVATE"] = new URL(simulator.origin).host;
  return () => simulator.close();
});
const millrace = useMillrace(database, { env: workerEnv });
let other: TestMillrace;
beforeAll(async () => {
  other = await startMillrace(database, { env });
  return () => other.app.stop();
});

describe("a reply with the rev of a hint, or a higher one,", () => {
  test("has the change, whichever processes made and read it", async () => {
    const both = [millrace, other];
    const streams = await Promise.all(both.map(({ url }) => openHintStream(url)));
    const replies: { rev: bigint; names: Set<string> }[] = [];
    const written = new AbortController();
    const readers = both
      .flatMap((on) => [on, on])
      .map(async (on) => {
        while (!written.signal.aborted) {
          const { headers, body } = await on.api.get<{ items: { name: string }[] }>("/api/v1/secrets");
          const names = new Set(body.items.map(({ name }) => name));
          replies.push({ rev: BigInt(headers.get("millrace-rev") ?? -1), names });
        }
      });
    const writers = both.map(async ({ api }, writer) => {
      for (let n = 0; n < 40; n += 1) {
        await api.put(`/api/v1/secrets/OF_${writer}_${n}`, { value: "some value" });
        if (n % 10 === 9) await sleep(60); // Writers in step would have few revs.
      }
    });
    await Promise.all(writers);
    for (const stream of streams) for (const writer of [0, 1]) await stream.hint("secret", `OF_${writer}_39`);
    written.abort();
    await Promise.all(readers);

    const hints = streams.flatMap((stream) => stream.hints.filter(({ kind }) => kind === "secret"));
    expect(new Set(hints.map(({ id }) => id)).size).toBe(80);
    const lacking = replies.flatMap(({ rev, names }) =>
      hints.filter((hint) => rev >= BigInt(hint.rev) && !names.has(hint.id)).map(({ id }) => id),
    );
    expect(lacking).toEqual([]);
    const older = replies.filter(({ rev, names }) =>
      hints.some((hint) => rev < BigInt(hint.rev) && !names.has(hint.id)),
    );
    expect(older.length).toBeGreaterThan(0);
    expect(new Set(replies.map(({ rev }) => rev)).size).toBeGreaterThan(3);
  });
});

/** A stream of the other process, opened before `act`. */
async function hinted(act: () => Promise<Answer<Json>>): Promise<{ stream: HintStream; body: Json }> {
  const stream = await openHintStream(other.url);
  const { status, body } = await act();
  expect(status, JSON.stringify(body)).toBeLessThan(300);
  return { stream, body };
}

/** Expects that `act` produces a hint, in the stream of another process. */
async function expectHint(kind: string, id: string | ((body: Json) => unknown), act: () => Promise<Answer<Json>>) {
  const { stream, body } = await hinted(act);
  await stream.hint(kind, typeof id === "string" ? id : String(id(body)));
  stream.disconnect();
  return body;
}

test("keys, secrets and gates", async () => {
  const { api } = millrace;
  const { id } = await expectHint(
    "key",
    (key) => key["id"],
    () => api.post("/api/v1/keys", { name: "a", scopes: ["run:read"] }),
  );
  await expectHint("key", String(id), () => api.delete(`/api/v1/keys/${String(id)}`));
  await expectHint("secret", "A", () => api.put("/api/v1/secrets/A", { value: "some value" }));
  await expectHint("secret", "A", () => api.delete("/api/v1/secrets/A"));
  await expectHint("gate", "ip:a", () => api.put("/api/v1/gates/ip:a", { ratePerSec: 5 }));
  await expectHint("gate", "ip:a", () => api.post("/api/v1/gates/ip:a:open", {}));
  await expectHint("gate", "ip:a", () => api.delete("/api/v1/gates/ip:a"));
});

test("chains, their runs, schedules and pools", async () => {
  const { api } = millrace;
  const dagJson = { nodes: [{ id: "a", type: "noop" }] };
  const chain = await expectHint(
    "chain",
    ({ chainId }) => chainId,
    () => api.post("/api/v1/chains", { name: "c", dagJson }),
  );
  const chainId = String(chain["chainId"]);
  await expectHint("chain", chainId, () => api.put(`/api/v1/chains/${chainId}`, { name: "c", dagJson, version: 1 }));
  await expectHint("chain", chainId, () => api.post(`/api/v1/chains/${chainId}:disable`));
  await expectHint("chain", chainId, () => api.post(`/api/v1/chains/${chainId}:enable`));
  const schedules = `/api/v1/chains/${chainId}/schedules`;
  const { scheduleId } = await expectHint(
    "schedule",
    (body) => body["scheduleId"],
    () => api.post(schedules, { name: "s", cron: "0 0 1 1 *" }),
  );
  await expectHint("schedule", String(scheduleId), () => api.post(`${schedules}/${String(scheduleId)}:pause`));
  await expectHint("schedule", String(scheduleId), () => api.delete(`${schedules}/${String(scheduleId)}`));
  await expectHint("pool", "p", () => api.put("/api/v1/pools/p", { size: 2 }));
  await expectHint("pool", "p", () => api.delete("/api/v1/pools/p"));

  const { stream, body } = await hinted(() => api.post(`/api/v1/chains/${chainId}:start`));
  const runId = String(body["runId"]);
  await stream.hint("run", runId);
  await expectFresh(
    stream,
    { kind: "run", id: runId, path: `/api/v1/runs/${runId}` },
    ({ status }) => status === "SUCCESS",
  );
});

test("files of tracking, also for moves and claims of their shards", async () => {
  const { api } = millrace;
  const filename = "hinted.csv";
  const pipeline = "/api/v1/pipeline";
  await expectHint("file", filename, () => api.post(`${pipeline}/files/register`, { filename, shards: [1, 2] }));
  await expectHint("file", filename, () => api.post(`${pipeline}/stages/event-ingest/done`, { filename }));
  const claim = { worker: "w", limit: 1 };
  await expectHint("file", filename, () => api.post(`${pipeline}/queues/shard-splitter/claim`, claim));
  await expectHint("file", filename, () => api.post(`${pipeline}/stages/shard-splitter/start`, { filename, shard: 2 }));
});

test("arrivals, models at an opTime, and indicators", async () => {
  const { api } = millrace;
  const model = {
    name: "m",
    sql: "select 'HINT_KPI' as kpi_id, 1 as value",
    dependencies: [{ table: "HINT_TABLE" }],
    kpis: ["HINT_KPI"],
  };
  const { stream: defined } = await hinted(() => api.put("/api/v1/kpi/models/HINT_MODEL", model));
  await defined.hint("model", "HINT_MODEL");
  await defined.hint("kpi", "HINT_KPI");
  await expectHint("model", "HINT_MODEL", () => api.post("/api/v1/kpi/models/HINT_MODEL:publish"));
  const { stream } = await hinted(() =>
    api.post("/api/open/kpi/srcTableComplete", { srcTableName: "HINT_TABLE", opTime: "20260101" }),
  );
  await stream.hint("arrival", "HINT_TABLE/20260101");
  await stream.hint("model", "HINT_MODEL/20260101");
  const run = { kind: "model", id: "HINT_MODEL/20260101", path: "/api/v1/kpi/task-logs?modelId=HINT_MODEL" };
  await expectFresh(stream, run, ({ items }) => (items as Json[]).some(({ status }) => status === "SUCCESS"));
  await stream.hint("kpi", "HINT_KPI");
  await expectHint("model", "HINT_MODEL/20260101", () =>
    api.post("/api/v1/kpi/models/HINT_MODEL:run", { opTime: "20260101" }),
  );
  await expectHint("kpi", "HINT_OTHER", () =>
    api.put("/api/v1/kpi/indicators/HINT_OTHER", { type: "EXTENDED", name: "o" }),
  );
  await expectHint("kpi", "HINT_OTHER", () => api.delete("/api/v1/kpi/indicators/HINT_OTHER"));
});

test("subscriptions and deliveries", async () => {
  const { api } = millrace;
  // A private address is refused, so the delivery fails at once.
  const callbackUrl = "https://127.0.0.1:1/";
  const input = { kpiId: "HINT_KPI", callbackUrl, retryNum: 0, status: "1", teamName: "t", userId: "u" };
  const subscriptions = "/api/v1/kpi/subscriptions";
  const made = await expectHint(
    "subscription",
    (body) => body["id"],
    () => api.post(subscriptions, input),
  );
  const path = `${subscriptions}/${String(made["id"])}`;
  const headers = { "content-type": "application/json" };
  const patch = (body: object) => api.send(path, { method: "PATCH", headers, body: JSON.stringify(body) });
  await expectHint("subscription", String(made["id"]), () => patch({ status: "0" }));
  await expectHint("subscription", String(made["id"]), () => patch({ status: "1" }));
  await expectHint("subscription", String(made["id"]), () => api.post(`${path}:rotate`));

  const { stream } = await hinted(() => api.post("/api/v1/kpi/models/HINT_MODEL:run", { opTime: "20260101" }));
  const { id } = await until(() => stream.hints.find(({ kind }) => kind === "delivery"), "a delivery");
  const delivery = { kind: "delivery", id, path: `/api/v1/kpi/deliveries/${id}` };
  await expectFresh(stream, delivery, ({ status }) => status === "FAILED");
  await expectHint("delivery", id, () => api.post(`/api/v1/kpi/deliveries/${id}:redeliver`));
  await expectHint("subscription", String(made["id"]), () => api.delete(path));
});

test("sources, plans and cursors of harvest", async () => {
  const { api } = millrace;
  const stream = await openHintStream(other.url);
  const source = await applySource(api, "crossref", simulator);
  await stream.hint("source", source);
  const { planId } = await plan(api, { source, window: windowOf(simulator) });
  const shown = { kind: "plan", id: planId, path: `/api/v1/harvest/plans/${planId}` };
  await expectFresh(stream, shown, ({ status }) => status === "COMPLETE");
  const { body } = await other.api.get<{ items: { namespace: string }[] }>(`/api/v1/harvest/cursors?source=${source}`);
  await stream.hint("cursor", `${source}/${String(body.items[0]?.namespace)}`);
});

test("tenants, assets and tasks of lineage, each for its own tenant", async () => {
  const { api, url } = millrace;
  const admin = await openHintStream(other.url);
  const [ours, theirs] = [await makeTenant(api, 71), await makeTenant(api, 72)];
  await admin.hint("tenant", "71");
  const own = await openHintStream(other.url, { key: ours.keys.COMPUTE_ENGINE });
  const foreign = await openHintStream(other.url, { key: theirs.keys.COMPUTE_ENGINE });
  const model = { embedding: { provider: "builtin", model: "hash-v1", dimension: 384 } };
  await expectHint("tenant", "71", () => api.put("/api/v1/lineage/tenants/71/model", model));
  expect((await postEvent(url, ours.keys.COMPUTE_ENGINE, sparkEvent({ to: "/w/hinted" }))).status).toBeLessThan(300);
  const { body } = await other.api.get<{ items: Json[] }>("/api/v1/lineage/search?tenant=71&q=hinted");
  const asset = String(body.items[0]?.["id"]);
  await own.hint("asset", asset);
  await admin.hint("asset", asset);
  await own.hint("lineage-task", "*");
  await expectHint("tenant", "72", () => api.post("/api/v1/lineage/tenants/72:sync-start", {}));
  await foreign.hint("tenant", "72");
  expect(own.hints.filter(({ kind, id }) => kind === "tenant" && id !== "71")).toEqual([]);
  expect([...new Set(foreign.hints.map(({ kind, id }) => `${kind} ${id}`))]).toEqual(["tenant 72"]);
});

/** Fetches an entity after each of its hints, as a page does, until it is as expected: no poll and no other signal. */
async function expectFresh(
  stream: HintStream,
  { kind, id, path }: { kind: string; id: string; path: string },
  isExpected: (body: Json) => boolean,
): Promise<void> {
  for (let from = 0; ; ) {
    const { rev } = await stream.hint(kind, id, from);
    from = stream.hints.findLastIndex((hint) => hint.kind === kind && hint.id === id) + 1;
    const { body, headers } = await other.api.get(path);
    expect(BigInt(headers.get("millrace-rev") ?? -1)).toBeGreaterThanOrEqual(BigInt(rev));
    if (isExpected(body)) return;
  }
}
