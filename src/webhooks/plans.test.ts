/** The statements of the hot path touch as few pages after years of deliveries as on the first day. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { useDatabase } from "../../test/database.ts";
import { openRecordingDb, type RecordingDb } from "../../test/plans.ts";
import { until } from "../../test/until.ts";
import type { Db } from "../kernel/data/db.ts";
import { deliveryLease } from "./store/deliveries.ts";
import { listSubscriptions } from "./store/subscriptions.ts";
import { actor, subscription, type TestProcess, update, useWebhooks } from "./webhooks.fixture.ts";

const HISTORY = 100_000;
const WAITING = 20_000;
const SUBSCRIPTIONS = 20_000;
/** Several times the measured numbers. A scan of history reads 1,000 and more. */
const PAGES_MAX = 60;

const database = useDatabase();
const webhooks = useWebhooks(database);
let db: Db;
let calls: RecordingDb["calls"];
let explainLast: RecordingDb["explainLast"];

beforeAll(() => {
  ({ db, calls, explainLast } = openRecordingDb(database.connection, "webhooks."));
});
afterAll(() => db.close());

async function addRows(count: number, fields: { status: string; callbackUrl: string }): Promise<void> {
  const isWaiting = fields.status === "PENDING";
  await database.query(
    `insert into webhooks.delivery (id, event_id, group_no, event, callback_url, subscription_ids, model_id, op_time,
       payload, retry_num, status, due_at, ended_at, created_at)
     select gen_random_uuid(), gen_random_uuid(), 1, 'KPI_UPDATED', $2 || case when $3 = 'PENDING' then '' else (n % 100)::text end,
       '{1}', 'M', n::text, '{}', 3, $3, case when $4 then now() + interval '1 day' end,
       case when not $4 then now() end, now() - make_interval(secs => n)
     from generate_series(1, $1::int) n`,
    [count, fields.callbackUrl, fields.status, isWaiting],
  );
}

async function addSubscriptions(): Promise<void> {
  await database.query("insert into webhooks.endpoint select 'https://x.example/', '', 'sealed'");
  await database.query(
    `insert into webhooks.metrics_webhook_subscription (id, kpi_id, callback_url)
     select nextval('webhooks.subscription_id'), 'K' || n, 'https://x.example/' from generate_series(1, $1::int) n`,
    [SUBSCRIPTIONS],
  );
}

/** Every statement of the hot path, once, with a delivery that succeeds and one that fails. */
async function turn(process: TestProcess): Promise<void> {
  await process.consume("kpi.updated", update());
  await process.sender.runOnce();
  await until(async () => {
    const [row] = await database.query<{ n: number }>(
      "select count(*)::int as n from webhooks.delivery where status = 'SENDING'",
    );
    return row?.n === 0;
  }, "the outcomes");
  await deliveryLease.heldBy(db, process.session.id());
  await process.reclaimer.runOnce();
  await process.retention.runOnce();
}

test("plans made on an empty database go by the index on a full one", async () => {
  const process = await webhooks.open({ db });
  webhooks.receiver.on("/bad", () => 500);
  for (const path of ["/good", "/bad"]) {
    await process.subscriptions.create(subscription(webhooks.receiver.url(path), { retryNum: 0 }), actor);
  }
  for (const table of ["delivery", "delivery_attempt"]) {
    // No ANALYZE, so the connection keeps its plans, as under a sudden load.
    await database.query(`alter table webhooks.${table} set (autovacuum_enabled = false)`);
  }
  await database.query("analyze");
  for (let round = 0; round < 12; round += 1) await turn(process); // Postgres may choose a generic plan after five executions.
  await addRows(HISTORY, { status: "DELIVERED", callbackUrl: "https://x.example/" });
  await addRows(WAITING, { status: "PENDING", callbackUrl: "https://y.example/" });
  await addSubscriptions();
  calls.clear();
  await turn(process);

  expect([...calls.keys()]).toEqual(expect.arrayContaining(HOT));
  for (const name of HOT) {
    const facts = await explainLast(name);
    expect(facts.nodes, name).not.toContain("Seq Scan");
    expect(facts.pages, `pages of ${name}`).toBeLessThan(PAGES_MAX);
  }
});

test("a list of the subscriptions of one callback reads its pending deliveries once", async () => {
  await addSubscriptions();
  await addRows(2_000, { status: "PENDING", callbackUrl: "https://x.example/" });
  const read = () => listSubscriptions({ ...db, read: db.rows }, {}, { size: 200, offset: 0 });
  const { items: found } = await read();
  await database.query("update webhooks.delivery set subscription_ids = $1::int[]", [[found[7]?.id, found[9]?.id]]);
  await database.query("vacuum analyze webhooks.delivery");
  calls.clear();
  const { items } = await read();
  expect(items.map(({ pending }) => pending)).toEqual(found.map((_, at) => (at === 7 || at === 9 ? 1_000 : 0)));
  const [name = ""] = calls.keys();
  // Read for each of the 200 subscriptions, they took 5,800 pages.
  expect((await explainLast(name)).pages).toBeLessThan(1_500);
});

const HOT = [
  "webhooks.subscription.of_kpis",
  "webhooks.delivery.insert",
  "webhooks.delivery.next_due",
  "webhooks.delivery.lock_keys",
  "webhooks.delivery.claim_in_keys",
  "webhooks.subscription.targets",
  "webhooks.delivery.delivered",
  "webhooks.delivery.give_up",
  "webhooks.endpoint.succeeded",
  "webhooks.endpoint.failed",
  "webhooks.delivery.held_by",
  "webhooks.delivery.reclaim",
  "webhooks.delivery.delete_old",
];
