/** The worker that sends: one receiver that hangs delays no other, a crash loses nothing, a stop drains. */
import { describe, expect, test } from "vitest";
import { useDatabase } from "../../../test/database.ts";
import { until } from "../../../test/until.ts";
import type { Db } from "../../kernel/data/db.ts";
import { hang } from "../receiver.fixture.ts";
import { actor, type ProcessOptions, subscription, update, useWebhooks } from "../webhooks.fixture.ts";

const database = useDatabase();
const webhooks = useWebhooks(database);

async function openWith(paths: readonly string[], options: ProcessOptions = {}, retryNum = 3) {
  const process = await webhooks.open(options);
  for (const path of paths) {
    await process.subscriptions.create(subscription(webhooks.receiver.url(path), { retryNum }), actor);
  }
  return process;
}

const expire = () => database.query("update kernel.session set expires_at = now()");
const counts = (path: string) => webhooks.receiver.received(path).length;

describe("an endpoint that hangs", () => {
  test("delays no other, however much is due for it", async () => {
    const others = ["/1", "/2", "/3"];
    const process = await openWith(["/hanging", ...others]);
    webhooks.receiver.on("/hanging", hang);
    for (let n = 0; n < 200; n += 1) await process.consume("kpi.updated", update());
    const begun = performance.now();
    process.sender.start();
    await until(() => others.every((path) => counts(path) === 200), "the other endpoints' deliveries");
    expect(performance.now() - begun).toBeLessThan(10_000); // In one batch with the hanging ones it would take 15 s.
    expect(counts("/hanging")).toBe(16); // The limit of one endpoint, over all processes.
    const second = await webhooks.open();
    expect(await second.sender.runOnce()).toEqual({ claimed: 0 });
    expect(counts("/hanging")).toBe(16);
  });

  test("gets at most two deliveries at a time once it fails", async () => {
    const process = await openWith(["/hanging"], { settings: webhooks.settings({ timeoutSeconds: 1 }) }, 0);
    webhooks.receiver.on("/hanging", hang);
    for (let n = 0; n < 30; n += 1) await process.consume("kpi.updated", update());
    process.sender.start();
    await until(
      async () => (await webhooks.rows()).filter(({ status }) => status === "FAILED").length === 16,
      "time-outs",
    );
    await until(() => counts("/hanging") === 18, "two more");
    const sending = await database.query("select from webhooks.delivery where status = 'SENDING'");
    expect(sending).toHaveLength(2);
  });

  test("occupies at most the slots that there are", async () => {
    const process = await openWith(["/hanging"], { settings: webhooks.settings({ slots: 3 }) });
    webhooks.receiver.on("/hanging", hang);
    for (let n = 0; n < 10; n += 1) await process.consume("kpi.updated", update());
    expect(await process.sender.runOnce()).toEqual({ claimed: 3 });
    expect(await process.sender.runOnce()).toEqual({ claimed: 0 });
  });
});

describe("a crash", () => {
  test("during a delivery sends it again under the same id; the late result changes nothing", async () => {
    const suspended = await openWith(["/kpi"]);
    let answerLate = () => {};
    webhooks.receiver.on("/kpi", (nth, response) => {
      if (nth > 1) return 200;
      answerLate = () => response.writeHead(500).end();
      return undefined;
    });
    await suspended.consume("kpi.updated", update());
    expect(await suspended.sender.runOnce()).toEqual({ claimed: 1 });
    await until(() => counts("/kpi") === 1, "the first attempt");
    await expire();

    const other = await webhooks.open();
    expect(await other.reclaimer.runOnce()).toEqual({ reclaimed: 1 });
    expect(await webhooks.rows()).toMatchObject([{ status: "PENDING", attempt: 0, lost_count: 1 }]);
    expect(await other.sender.runOnce()).toEqual({ claimed: 1 });
    const [before] = await webhooks.ended(1);
    expect(before).toMatchObject({ status: "DELIVERED", attempt: 1 });

    answerLate();
    const tooLate = "a delivery ended after its lease was lost; its outcome is dropped";
    await until(() => suspended.log.lines.some(({ message }) => message === tooLate), "the late outcome");
    expect(await webhooks.rows()).toEqual([before]);
    expect(new Set(webhooks.receiver.received().map(({ headers }) => headers["webhook-id"])).size).toBe(1);
    expect((await other.deliveries.get(before?.id ?? "")).attempts).toHaveLength(1);
  });

  test("of one worker after the other fails a delivery, which may be the cause", async () => {
    const process = await openWith(["/kpi"]);
    await process.consume("kpi.updated", update());
    await database.query(
      "update webhooks.delivery set status = 'SENDING', due_at = null, session_id = 0, fence = 1, lost_count = 9",
    );
    await process.reclaimer.runOnce();
    expect(await webhooks.rows()).toMatchObject([{ status: "FAILED", last_error: "lost 10 workers in a row" }]);
  });

  test("of the connection after a committed claim does not leave the delivery leased for ever", async () => {
    let cut = true;
    const forgetful: Db = {
      ...database.db,
      async tx(work) {
        const result = await database.db.tx(work);
        if (!cut) return result;
        cut = false;
        throw Object.assign(new Error("the answer was lost"), { code: "ECONNRESET" });
      },
    };
    const process = await webhooks.open({ db: forgetful });
    const other = await openWith(["/kpi"]);
    await other.consume("kpi.updated", update());
    await expect(process.sender.runOnce()).rejects.toThrow("the answer was lost");
    expect(await webhooks.rows()).toMatchObject([{ status: "SENDING" }]);
    process.sender.start();
    expect(await webhooks.ended(1)).toMatchObject([{ status: "DELIVERED", attempt: 1, lost_count: 0 }]);
    expect(counts("/kpi")).toBe(1);
  });
});

describe("a stop", () => {
  test("waits for deliveries in flight and writes their outcomes", async () => {
    const process = await openWith(["/kpi"], { settings: webhooks.settings({ drainSeconds: 30 }) });
    let answer = () => {};
    webhooks.receiver.on("/kpi", (_, response) => void (answer = () => response.writeHead(200).end()));
    await process.consume("kpi.updated", update());
    process.sender.start();
    await until(() => counts("/kpi") === 1, "the attempt");
    const stopped = process.sender.stop();
    answer();
    await stopped;
    expect(await webhooks.rows()).toMatchObject([{ status: "DELIVERED" }]);
  });

  test("releases what does not end in time, without counting a loss", async () => {
    const process = await openWith(["/kpi"]);
    webhooks.receiver.on("/kpi", (nth) => (nth === 1 ? undefined : 200));
    await process.consume("kpi.updated", update());
    process.sender.start();
    await until(() => counts("/kpi") === 1, "the attempt");
    await process.sender.stop();
    expect(await webhooks.rows()).toMatchObject([{ status: "PENDING", attempt: 0, lost_count: 0 }]);
    (await webhooks.open()).sender.start();
    expect(await webhooks.ended(1)).toMatchObject([{ status: "DELIVERED" }]);
  });
});

test("several processes share the deliveries, and each is sent once", async () => {
  const paths = ["/1", "/2", "/3", "/4"];
  const first = await openWith(paths);
  const all = [first, await webhooks.open(), await webhooks.open()];
  for (let n = 0; n < 50; n += 1) await first.consume("kpi.updated", update());
  for (const { sender } of all) sender.start();
  await webhooks.ended(200);
  expect(new Set(webhooks.receiver.received().map(({ headers }) => headers["webhook-id"])).size).toBe(200);
  expect(webhooks.receiver.received()).toHaveLength(200);
});

test("a secret that was sealed under another key fails its own delivery, with a reason", async () => {
  const process = await openWith(["/kpi"], {}, 0);
  await process.subscriptions.create(
    subscription(webhooks.receiver.url("/sealed"), { secret: "Query,a,b", retryNum: 0 }),
    actor,
  );
  await database.query("update webhooks.metrics_webhook_subscription set secret = 'v1.x.y' where secret is not null");
  await process.consume("kpi.updated", update());
  process.sender.start();
  const rows = await webhooks.ended(2);
  expect(rows.map(({ status }) => status).sort()).toEqual(["DELIVERED", "FAILED"]);
  expect(rows.find(({ status }) => status === "FAILED")?.last_error).toContain("cannot be opened");
});

test("old deliveries that have ended are deleted with their attempts, and others stay", async () => {
  const process = await openWith(["/kpi"]);
  process.sender.start();
  for (let n = 0; n < 3; n += 1) await process.consume("kpi.updated", update());
  const [old, waiting] = await webhooks.ended(3);
  await database.query("update webhooks.delivery set created_at = now() - interval '31 days' where id = any($1)", [
    [old?.id, waiting?.id],
  ]);
  await database.query(
    "update webhooks.delivery set status = 'PENDING', due_at = now() + interval '1 day', ended_at = null where id = $1",
    [waiting?.id],
  );
  expect(await process.retention.runOnce()).toEqual({ looked: 1, deleted: 1 });
  expect((await webhooks.rows()).map(({ id }) => id)).not.toContain(old?.id);
  expect(await database.query("select from webhooks.delivery_attempt")).toHaveLength(2);
});
