/** What webhooks show on the overview. No parameter of an address is shown, because it may be a secret. */
import { expect, test } from "vitest";
import { useDatabase } from "../../test/database.ts";
import { openRecordingDb } from "../../test/plans.ts";
import { ENTRIES_MAX } from "../kernel/overview/part.ts";
import { rangeOf } from "../kernel/overview/range.ts";
import { webhooksOverview } from "./overview.ts";
import { endedDeliveries } from "./store/overview.ts";
import { actor, subscription, update, useWebhooks } from "./webhooks.fixture.ts";

const database = useDatabase();
const webhooks = useWebhooks(database);
const SECRET = "only-the-receiver-knows";
const URL = `https://x.example/hook?token=${SECRET}`;
const lastHour = () => rangeOf({ hours: 1 }, Date.now() + 1_000);
const now = () => webhooksOverview.now(database.db, { tenantId: null });

/** Returns the subscription. */
async function deliver(): Promise<number> {
  const process = await webhooks.open();
  const saved = await process.subscriptions.create(subscription(URL), actor);
  await process.consume("kpi.updated", update());
  return saved.subscription.id;
}

test("deliveries that have failed are one entry for their receiver, with the newest error", async () => {
  await deliver();
  await database.query(
    "update webhooks.delivery set status = 'FAILED', due_at = null, ended_at = now(), last_error = 'HTTP 500'",
  );
  const { needs, waiting } = await now();
  expect(needs).toMatchObject([
    { about: { kind: "delivery" }, state: "failed", title: "https://x.example/hook", reason: "HTTP 500", count: 1 },
  ]);
  expect(waiting).toEqual([]);
  const { ended } = (await webhooksOverview.activity?.(database.db, lastHour())) ?? { ended: [] };
  expect(ended).toMatchObject([{ lanes: [{ name: "x.example/hook", cells: [{ ended: 1, failed: 1 }] }] }]);
  expect(JSON.stringify([needs, ended])).not.toContain(SECRET);
});

test("the newest failures need somebody, whatever the addresses of their receivers", async () => {
  await putEnded("FAILED", (n) => `https://${100 + n}.example/`, ENTRIES_MAX + 1);
  const titles = (await now()).needs.map(({ title }) => title);
  expect(titles).toEqual(Array.from({ length: ENTRIES_MAX }, (_, n) => `https://${100 + ENTRIES_MAX - n}.example/`));
});

test("receivers that differ in their parameters have lanes of their own, which show none of them", async () => {
  await putEnded("DELIVERED", (n) => `https://x.example/hook?token=${SECRET}${n}`, 3);
  const [ended] = (await webhooksOverview.activity?.(database.db, lastHour()))?.ended ?? [];
  const lanes = ended?.lanes ?? [];
  expect(lanes).toHaveLength(3);
  expect(new Set(lanes.map(({ id }) => id)).size).toBe(3);
  expect(new Set(lanes.map(({ name }) => name)).size).toBe(3);
  expect(JSON.stringify(lanes)).not.toContain("only");
});

/** The last one has ended last. */
async function putEnded(status: "FAILED" | "DELIVERED", urlOf: (n: number) => string, count: number): Promise<void> {
  await database.query(
    `insert into webhooks.delivery (id, event_id, group_no, event, callback_url, subscription_ids, payload, retry_num, status, due_at, created_at, ended_at)
     select gen_random_uuid(), gen_random_uuid(), 0, 'kpi.updated', url, '{1}', '{}', 0, $1, null, t, t
     from unnest($2::text[]) with ordinality as u(url, n), lateral (select now() - interval '30 minutes' + n * interval '1 second' as t) o`,
    [status, Array.from({ length: count }, (_, n) => urlOf(n))],
  );
}

test("an endpoint that is disabled needs somebody, who enables its subscription", async () => {
  const id = await deliver();
  await database.query("update webhooks.endpoint set disabled_at = now(), disabled_reason = 'It failed for 5 days.'");
  expect((await now()).needs).toMatchObject([
    {
      about: { kind: "subscription", id: String(id) },
      state: "disabled",
      title: "https://x.example/hook",
      reason: "It failed for 5 days.",
    },
  ]);
});

test("an endpoint that has failed for an hour needs somebody, once, also when deliveries have failed", async () => {
  await deliver();
  await database.query("update webhooks.endpoint set failing_since = now() - interval '50 minutes'");
  expect((await now()).needs).toEqual([]);
  await database.query("update webhooks.endpoint set failing_since = now() - interval '2 hours'");
  expect((await now()).needs).toMatchObject([{ about: { kind: "subscription" }, state: "failed" }]);
  await database.query("update webhooks.delivery set status = 'FAILED', due_at = null, ended_at = now()");
  expect((await now()).needs).toMatchObject([{ about: { kind: "delivery" }, state: "failed" }]);
});

test("deliveries wait for a process, for their next try, or for a receiver that asked to wait", async () => {
  const id = await deliver();
  expect((await now()).waiting).toMatchObject([{ cause: "process", kind: "delivery", subject: "worker", count: 1 }]);
  await database.query("update webhooks.delivery set due_at = now() + interval '1 hour'");
  expect((await now()).waiting).toMatchObject([{ cause: "retry", count: 1, nextAt: expect.any(Date) as Date }]);
  await database.query("update webhooks.endpoint set held_until = now() + interval '1 hour'");
  const { waiting } = await now();
  const receiver = { cause: "receiver", subject: "https://x.example/hook" };
  const about = { kind: "subscription", id: String(id) };
  expect(waiting).toMatchObject([{ ...receiver, about, count: 1 }]);
  // No one subscription has all of them.
  await database.query(
    `insert into webhooks.delivery (id, event_id, group_no, event, callback_url, subscription_ids, payload, retry_num)
     select gen_random_uuid(), gen_random_uuid(), 0, event, callback_url, array[$1::int], payload, retry_num from webhooks.delivery`,
    [id + 1],
  );
  expect((await now()).waiting).toMatchObject([{ ...receiver, about: null, count: 2 }]);
  expect(JSON.stringify(waiting)).not.toContain(SECRET);
});

test("what has ended is read by its index, however long history is", async () => {
  await deliver();
  await database.query(
    `insert into webhooks.delivery (id, event_id, group_no, event, callback_url, subscription_ids, payload, retry_num, status, due_at, created_at, ended_at)
     select gen_random_uuid(), gen_random_uuid(), 0, 'kpi.updated', 'https://y.example', '{1}', '{}', 0, 'DELIVERED', null, t, t
     from generate_series(1, 30000) n, lateral (select now() - interval '20 days' - n * interval '1 minute' as t) o`,
  );
  await database.query("vacuum analyze webhooks.delivery");
  const { db, explainLast } = openRecordingDb(database.connection, "webhooks.overview");
  await endedDeliveries({ ...db, read: db.rows }, lastHour());
  const { indexes, pages } = await explainLast("webhooks.overview.ended");
  await db.close();
  expect(indexes).toContain("delivery_ended");
  expect(pages).toBeLessThan(100);
});
