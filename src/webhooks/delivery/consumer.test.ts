/** The deliveries that the consumer makes of an event. */
import { randomUUID } from "node:crypto";
import { describe, expect, test } from "vitest";
import { useDatabase } from "../../../test/database.ts";
import { silentLog } from "../../../test/log.ts";
import { until } from "../../../test/until.ts";
import { createOutbox } from "../../kernel/work/outbox.ts";
import { createWake } from "../../kernel/work/wake.ts";
import type { NewSubscription } from "../subscriptions.ts";
import { actor, subscription, type TestProcess, update, useWebhooks } from "../webhooks.fixture.ts";

const database = useDatabase();
const webhooks = useWebhooks(database);
const A = "http://a.example/hook";
const B = "http://b.example/hook";

async function subscribe(process: TestProcess, callbackUrl: string, fields: Partial<NewSubscription> = {}) {
  return (await process.subscriptions.create(subscription(callbackUrl, fields), actor)).subscription.id;
}

describe("an update", () => {
  test("is delivered once to each group of callback, retries and secret", async () => {
    const process = await webhooks.open();
    const secret = "Query,token,abc123";
    const first = await subscribe(process, A, { secret });
    const same = await subscribe(process, A, { secret, kpiId: "KD1002" });
    const otherSecret = await subscribe(process, A, { secret: "Query,token,def456", teamName: "2" });
    const noSecret = await subscribe(process, A, { teamName: "3" });
    const otherRetries = await subscribe(process, A, { secret, retryNum: 5, teamName: "4" });
    const otherCallback = await subscribe(process, B, { secret });
    await subscribe(process, A, { secret, status: "0", teamName: "5" });
    await subscribe(process, A, { secret, kpiId: "KD2" });
    await process.consume("kpi.updated", update());
    const rows = await webhooks.rows();
    expect(new Set(rows.map(({ subscription_ids }) => String(subscription_ids)))).toEqual(
      new Set([`${first},${same}`, ...[otherSecret, noSecret, otherRetries, otherCallback].map(String)]),
    );
    expect(rows).toHaveLength(5);
    expect(rows.every(({ model_id, op_time }) => model_id === "MODEL-01" && op_time === "20251219")).toBe(true);
    expect(rows.find(({ subscription_ids }) => subscription_ids[0] === otherRetries)).toMatchObject({ retry_num: 5 });
  });

  test("lists all affected KPIs for every subscriber", async () => {
    const process = await webhooks.open();
    await subscribe(process, A, { kpiId: "KD1002" });
    await process.consume("kpi.updated", update());
    const [row] = await webhooks.rows();
    expect((await process.deliveries.get(row?.id ?? "")).payload).toMatchObject({
      affectedKpiIds: ["KD1001", "KD1002"],
    });
  });

  test("that is consumed again makes no further delivery, even if there are new subscriptions", async () => {
    const process = await webhooks.open();
    await subscribe(process, A);
    const eventId = await process.consume("kpi.updated", update());
    await subscribe(process, B);
    await process.consume("kpi.updated", update(), eventId);
    await Promise.all([1, 2, 3].map(() => process.consume("kpi.updated", update(), eventId)));
    expect(await webhooks.rows()).toHaveLength(1);
  });

  test("without subscriptions makes no delivery", async () => {
    const process = await webhooks.open();
    await process.consume("kpi.updated", update());
    expect(await webhooks.rows()).toEqual([]);
  });

  test("keeps at most a hundred of a group's subscriptions, with one of each team", async () => {
    const process = await webhooks.open();
    for (let n = 0; n < 110; n += 1) await subscribe(process, A, { kpiId: `K${n}` });
    const late = await subscribe(process, A, { teamName: "late" });
    await process.consume(
      "kpi.updated",
      update({ affectedKpiIds: ["KD1001", ...Array.from({ length: 110 }, (_, n) => `K${n}`)] }),
    );
    const [row] = await webhooks.rows();
    expect(row?.subscription_ids).toHaveLength(100);
    expect(row?.subscription_ids.slice(0, 2)).toContain(late);
  });

  test("and many concurrent ones cost two statements", async () => {
    const names: string[] = [];
    const { db } = database;
    const counting = { ...db, rows: ((one, values) => (names.push(one.name), db.rows(one, values))) as typeof db.rows };
    const process = await webhooks.open({ db: counting });
    await subscribe(process, A);
    names.length = 0;
    await Promise.all(Array.from({ length: 90 }, () => process.consume("kpi.updated", update())));
    expect(await webhooks.rows()).toHaveLength(90);
    expect(names).toEqual(["webhooks.subscription.of_kpis", "webhooks.delivery.insert"]);
  });
});

describe("an alert", () => {
  const alerts = [
    { name: "ops", url: "https://ops.example/token-in-the-path", retryNum: 8 },
    { url: "https://pager.example/hook", events: ["RUN_FAILED" as const], retryNum: 2 },
  ];

  test.each([
    ["run.failed", { runId: "r", chainId: null, name: "nightly", opTime: null, reason: "it broke" }, 2],
    ["model.failed", { modelId: "MODEL-01", opTime: "20251219", generation: 2, message: "no such table" }, 1],
    ["deadline.passed", { modelId: "MODEL-01", opTime: "20251219", table: "T", deadline: "2025-12-20T06:00:00Z" }, 1],
  ])("%s goes to every address that has it, and no row contains its URL", async (topic, fields, count) => {
    const process = await webhooks.open({ settings: webhooks.settings({ alerts }) });
    await process.consume(topic, { ...fields, at: "2025-12-19T08:00:00Z" });
    const rows = await webhooks.rows();
    expect(rows).toHaveLength(count);
    expect(rows[0]).toMatchObject({ callback_url: "alert:ops", retry_num: 8 });
    expect(JSON.stringify(await database.query("select * from webhooks.delivery"))).not.toContain("token-in-the-path");
    const { payload } = await process.deliveries.get(rows[0]?.id ?? "");
    expect(payload).toEqual({
      event: topic.toUpperCase().replace(".", "_"),
      ...fields,
      timestamp: "2025-12-19T08:00:00Z",
    });
  });

  test("is sent with the secret and signature from the environment, and cancelled once it is not in the settings", async () => {
    const settings = webhooks.settings({
      alerts: [
        {
          name: "ops",
          url: `${webhooks.receiver.url("/")}\${env.OPS_PATH}`,
          secret: "Header,X-Token,${env.OPS}",
          signingKey: "${env.OPS_KEY}",
          retryNum: 0,
        },
      ],
    });
    const env = { OPS_PATH: "o/ps", OPS: "hunter2", OPS_KEY: "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw" };
    const process = await webhooks.open({ settings, env });
    process.sender.start();
    await process.consume("run.failed", { runId: "r", at: "2025-12-19T08:00:00Z" });
    await webhooks.ended(1);
    expect(webhooks.receiver.received()[0]?.path).toBe("/o%2Fps");
    expect(webhooks.receiver.received()[0]?.headers).toMatchObject({
      "x-token": "hunter2",
      "webhook-signature": expect.stringMatching(/^v1,/),
    });
    await process.sender.stop();
    await process.consume("run.failed", { runId: "r", at: "2025-12-19T08:00:00Z" });
    const without = await webhooks.open();
    without.sender.start();
    expect(await webhooks.ended(2)).toMatchObject([{ status: "DELIVERED" }, { status: "CANCELLED" }]);
  });

  test.each([
    [{ url: "https://", retryNum: 0 }, "webhooks.alerts[0].url is not a URL"],
    [{ url: "${env.BAD}", retryNum: 0 }, "webhooks.alerts[0].url is not a URL"],
    [{ url: "https://x.example/${BAD}", retryNum: 0 }, "without `env.NAME}`"],
    [{ url: "https://x.example", secret: "${env.NONE}", retryNum: 0 }, "NONE, which is not set"],
    [
      { url: "https://x.example", secret: "${env.BAD}", retryNum: 0 },
      "webhooks.alerts[0].secret: The secret cannot be used",
    ],
    [{ url: "https://x.example", signingKey: "${env.BAD}", retryNum: 0 }, "must be `whsec_`"],
  ])("with wrong settings stops the start with a sentence", async (alert, sentence) => {
    const opening = webhooks.open({ settings: webhooks.settings({ alerts: [alert] }), env: { BAD: "hunter2" } });
    const said = await opening.then(() => "", String);
    expect(said).toContain(sentence);
    expect(said).not.toContain("hunter2");
  });

  test("with the name of another stops the start", async () => {
    const twice = [alerts[0], alerts[0]].filter((alert) => alert !== undefined);
    await expect(webhooks.open({ settings: webhooks.settings({ alerts: twice }) })).rejects.toThrow(
      "name of another alert (ops)",
    );
  });
});

test("an event reaches the consumer through the outbox", async () => {
  const process = await webhooks.open();
  await subscribe(process, webhooks.receiver.url("/kpi"));
  const wake = createWake();
  const outbox = createOutbox([process.consumer], wake);
  const [relay] = outbox.relays({ db: database.db, session: process.session, wake, log: silentLog });
  const event = { eventId: randomUUID(), topic: "kpi.updated", payload: update() };
  await database.db.tx((tx) => outbox.emit(tx, [event]));
  expect(await relay?.runOnce()).toEqual({ claimed: 1 });
  process.sender.start();
  await until(() => webhooks.receiver.received("/kpi").length === 1, "the delivery");
});
