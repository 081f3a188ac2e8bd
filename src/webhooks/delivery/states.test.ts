/** Every move of a delivery is tried from every state: legal ones are made, all others leave the row unchanged. */
import { beforeEach, describe, expect, test } from "vitest";
import { useDatabase } from "../../../test/database.ts";
import { deliveryLease } from "../store/deliveries.ts";
import { recover, redeliver } from "../store/delivery-reads.ts";
import { actor, subscription, type TestProcess, update, useWebhooks } from "../webhooks.fixture.ts";
import { DELIVERY_NEXT, DELIVERY_STATUSES, type DeliveryStatus } from "./states.ts";

const database = useDatabase();
const webhooks = useWebhooks(database);
const FENCE = "7";
const ENDED = ["DELIVERED", "FAILED", "CANCELLED"];
let process: TestProcess;
let id: string;

beforeEach(async () => {
  process = await webhooks.open();
  await process.subscriptions.create(subscription("https://x.example/"), actor);
  await process.consume("kpi.updated", update());
  id = (await webhooks.rows())[0]?.id ?? "";
});

async function bringTo(status: DeliveryStatus): Promise<void> {
  await database.query(
    `update webhooks.delivery set status = $1, due_at = case when $1 = 'PENDING' then now() end,
       ended_at = case when $1 = any($2) then now() - interval '1 s' end,
       session_id = case when $1 = 'SENDING' then 0 end, fence = case when $1 = 'SENDING' then ${FENCE} end`,
    [status, ENDED],
  );
}

const report = { callback_url: "https://x.example/", status_code: 200, error: null, delay_seconds: 1 };
const OUTCOMES = ["delivered", "retry_later", "give_up", "cancel"] as const;
const finish = (outcome: (typeof OUTCOMES)[number]) => () =>
  deliveryLease.finish(database.db, outcome, [{ id, fence: FENCE, ...report }]);
const since = "2000-01-01T00:00:00Z";

const MOVES: Record<string, { make: () => Promise<unknown>; from: readonly DeliveryStatus[]; to: DeliveryStatus }> = {
  claim: {
    make: () => deliveryLease.claim(database.db, { limit: 1, holder: process.session.id() }),
    from: ["PENDING"],
    to: "SENDING",
  },
  delivered: { make: finish("delivered"), from: ["SENDING"], to: "DELIVERED" },
  retry_later: { make: finish("retry_later"), from: ["SENDING"], to: "PENDING" },
  give_up: { make: finish("give_up"), from: ["SENDING"], to: "FAILED" },
  cancel: { make: finish("cancel"), from: ["SENDING"], to: "CANCELLED" },
  release: { make: () => deliveryLease.release(database.db, [{ id, fence: FENCE }]), from: ["SENDING"], to: "PENDING" },
  reclaim: {
    make: () => deliveryLease.reclaim(database.db, { limit: 1, lostLimit: 9 }),
    from: ["SENDING"],
    to: "PENDING",
  },
  reclaim_last: {
    make: () => deliveryLease.reclaim(database.db, { limit: 1, lostLimit: 1 }),
    from: ["SENDING"],
    to: "FAILED",
  },
  redeliver: {
    make: () => redeliver(database.db, id),
    from: ["PENDING", "DELIVERED", "FAILED", "CANCELLED"],
    to: "PENDING",
  },
  recover: {
    make: () => recover(database.db, { status: "FAILED", since }, "now", 9),
    from: ["FAILED"],
    to: "PENDING",
  },
};

describe.each(Object.entries(MOVES))("%s", (_, { make, from, to }) => {
  test.each(DELIVERY_STATUSES)("from %s", async (status) => {
    await bringTo(status);
    const before = await webhooks.rows();
    await make();
    const after = await webhooks.rows();
    if (from.includes(status)) {
      expect(after[0]?.status).toBe(to);
      expect(DELIVERY_NEXT[status]).toContain(to);
    } else {
      expect(after).toEqual(before);
    }
  });
});

test("every move of the table is tested", () => {
  const made = Object.values(MOVES).flatMap(({ from, to }) => from.map((status) => `${status} ${to}`));
  const all = DELIVERY_STATUSES.flatMap((from) => DELIVERY_NEXT[from].map((to) => `${from} ${to}`));
  expect([...new Set(made)].sort()).toEqual(all.sort());
});

test.each([
  "status = 'LOST'",
  "status = 'SENDING'",
  "status = 'FAILED'",
  "status = 'DELIVERED', due_at = null",
  "fence = 1, session_id = 1",
  "due_at = null",
  "ended_at = now()",
  "tries = -1",
])("the database refuses a delivery with %s", async (set) => {
  await expect(database.query(`update webhooks.delivery set ${set}`)).rejects.toThrow(/violates check constraint/);
});

test("another fence changes nothing", async () => {
  await bringTo("SENDING");
  const before = await webhooks.rows();
  for (const outcome of OUTCOMES) {
    expect(await deliveryLease.finish(database.db, outcome, [{ id, fence: "8", ...report }])).toEqual([]);
  }
  expect(await webhooks.rows()).toEqual(before);
});
