/** SQL for the work on deliveries: insert them, lease them, write their outcomes and attempts. */
import { itemsByKey, toArrays, unnest } from "../../kernel/data/batch.ts";
import type { Queryable } from "../../kernel/data/db.ts";
import { statement } from "../../kernel/data/statement.ts";
import { leaseOn, returning } from "../../kernel/work/lease.ts";
import type { Payload } from "../events.ts";

export interface NewDelivery {
  id: string;
  event_id: string;
  group_no: number;
  callback_url: string;
  subscription_ids: readonly number[];
  payload: Payload;
  retry_num: number;
}

const NEW_KEY = { id: "uuid" };
const NEW_VALUES = {
  event_id: "uuid",
  group_no: "int4",
  event: "text",
  callback_url: "text",
  subscription_ids: "text",
  model_id: "text",
  op_time: "text",
  payload: "json",
  retry_num: "int4",
};
// One statement inserts all deliveries of an event, so if one exists, all do. The constraint decides between two concurrent
// inserts.
const INSERT = statement<{ id: string }>(
  "webhooks.delivery.insert",
  `insert into webhooks.delivery
     (id, event_id, group_no, event, callback_url, subscription_ids, model_id, op_time, payload, retry_num)
   select i.id, i.event_id, i.group_no, i.event, i.callback_url, i.subscription_ids::int4[], i.model_id, i.op_time,
          i.payload, i.retry_num
   from ${itemsByKey(NEW_KEY, NEW_VALUES)}
   where not exists (select from webhooks.delivery d where d.event_id = i.event_id)
   on conflict (event_id, group_no) do nothing returning id`,
);

/** Answers how many were new. */
export async function insertDeliveries(db: Queryable, deliveries: readonly NewDelivery[]): Promise<number> {
  if (deliveries.length === 0) return 0;
  const items = deliveries.map(({ payload, subscription_ids, ...row }) => ({
    ...row,
    event: payload.event,
    model_id: payload["modelId"],
    op_time: payload["opTime"],
    subscription_ids: `{${subscription_ids.join(",")}}`,
    payload: JSON.stringify(payload),
  }));
  return (await db.rows(INSERT, toArrays({ ...NEW_KEY, ...NEW_VALUES }, items))).length;
}

/** How many deliveries to one endpoint are in flight at once, over all processes. */
const ENDPOINT_CONCURRENCY = 16;
/** For an endpoint that fails, so that many dead ones do not occupy all slots. */
const FAILING_CONCURRENCY = 2;

interface ClaimedRow {
  event: string;
  callback_url: string;
  subscription_ids: number[];
  payload: Payload;
  retry_num: number;
  attempt: number;
  tries: number;
}
export type Claimed = ClaimedRow & { id: string; fence: string };

const attempted = { callback_url: "text", status_code: "int4?", error: "text?" } as const;
const tried = `fence = null, attempt = t.attempt + 1, lost_count = 0, callback_url = i.callback_url,
            status_code = i.status_code, last_error = i.error`;

export const deliveryLease = leaseOn({
  name: "webhooks.delivery",
  table: "webhooks.delivery",
  key: { id: "uuid" },
  state: { column: "status", ready: ["PENDING"], leased: "SENDING", dead: "FAILED" },
  dueAt: "due_at",
  orderBy: "t.due_at, t.id",
  fence: "fence",
  hold: { by: "session", session: "session_id" },
  lost: { column: "lost_count", error: "last_error" },
  onClaim: { due_at: "null" },
  onReturn: { due_at: "now()" },
  onDead: { due_at: "null", ended_at: "now()" },
  returning: returning<ClaimedRow>(
    "t.event, t.callback_url, t.subscription_ids, t.payload, t.retry_num, t.attempt, t.tries",
  ),
  concurrency: {
    column: "callback_url",
    limit: `select case when bool_or(e.held_until > now()) then 0
                        when bool_or(e.failing_since is not null) then ${FAILING_CONCURRENCY}
                        else ${ENDPOINT_CONCURRENCY} end
            from webhooks.endpoint e where e.callback_url = k.key`,
  },
  outcomes: {
    delivered: { set: `status = 'DELIVERED', ended_at = now(), ${tried}`, values: attempted },
    retry_later: {
      set: `status = 'PENDING', due_at = now() + make_interval(secs => i.delay_seconds), tries = t.tries + 1, ${tried}`,
      values: { ...attempted, delay_seconds: "float8" },
    },
    give_up: { set: `status = 'FAILED', ended_at = now(), tries = t.tries + 1, ${tried}`, values: attempted },
    cancel: {
      set: "status = 'CANCELLED', ended_at = now(), fence = null, last_error = i.error",
      values: { error: "text?" },
    },
  },
});

// A delivery that is already due waits for a free place at its endpoint; the end of another delivery claims again.
const NEXT_DUE = statement<{ ms: number | null }>(
  "webhooks.delivery.next_due",
  `select extract(epoch from least(
     (select min(due_at) from webhooks.delivery where status = 'PENDING' and due_at > now()),
     (select min(held_until) from webhooks.endpoint where held_until is not null and held_until > now())
   ) - now())::float8 * 1000 as ms`,
);

/** Milliseconds until a delivery is due, or the hold of an endpoint ends; Infinity if nothing waits. */
export async function nextDueMs(db: Queryable): Promise<number> {
  return (await db.rows(NEXT_DUE))[0]?.ms ?? Number.POSITIVE_INFINITY;
}

export interface AttemptRow {
  delivery_id: string;
  attempt: number;
  at: Date;
  duration_ms: number;
  status_code: number | null;
  error: string | null;
  answer: string | null;
}

const ATTEMPT = {
  delivery_id: "uuid",
  attempt: "int4",
  at: "timestamptz",
  duration_ms: "int4",
  status_code: "int4",
  error: "text",
  answer: "text",
};
const INSERT_ATTEMPTS = statement(
  "webhooks.attempt.insert",
  `insert into webhooks.delivery_attempt (${Object.keys(ATTEMPT).join(", ")}) select * from ${unnest(ATTEMPT, "i")}`,
);

export async function insertAttempts(tx: Queryable, attempts: readonly AttemptRow[]): Promise<void> {
  if (attempts.length > 0) await tx.rows(INSERT_ATTEMPTS, toArrays(ATTEMPT, attempts));
}

const DELETE_OLD = statement<{ id: string }>(
  "webhooks.delivery.delete_old",
  `with picked as materialized (
     select id from webhooks.delivery
     where created_at < now() - make_interval(days => $1) and ended_at is not null
     order by created_at limit $2 for update skip locked
   ) delete from webhooks.delivery d using picked p where d.id = p.id returning d.id`,
);

/** Deletes old deliveries that have ended, with their attempts; answers the number. */
export async function deleteOldDeliveries(db: Queryable, keepDays: number, limit: number): Promise<number> {
  return (await db.rows(DELETE_OLD, [keepDays, limit])).length;
}
