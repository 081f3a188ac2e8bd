/** SQL for the use cases of deliveries: list, show, and send again. */
import type { Db, Queryable } from "../../kernel/data/db.ts";
import { filtered } from "../../kernel/data/filtered.ts";
import { statement } from "../../kernel/data/statement.ts";
import type { DeliveryStatus } from "../states.ts";
import type { AttemptRow } from "./deliveries.ts";

export interface DeliveryRow {
  id: string;
  event_id: string;
  event: string;
  callback_url: string;
  subscription_ids: number[];
  model_id: string | null;
  op_time: string | null;
  retry_num: number;
  status: DeliveryStatus;
  due_at: Date | null;
  attempt: number;
  status_code: number | null;
  last_error: string | null;
  created_at: Date;
  ended_at: Date | null;
}

const COLUMNS = `d.id, d.event_id, d.event, d.callback_url, d.subscription_ids, d.model_id, d.op_time, d.retry_num, d.status,
          d.due_at, d.attempt, d.status_code, d.last_error, d.created_at, d.ended_at`;

export interface DeliveryFilter {
  callbackUrl?: string;
  subscriptionId?: number;
  modelId?: string;
  opTime?: string;
  status?: DeliveryStatus;
  since?: string;
  /** The last delivery of the previous page. */
  after?: string;
}

/** The expression of the index on addresses. */
const HASH = "hashtextextended(d.callback_url, 0)";

const LIST = filtered<DeliveryFilter, DeliveryRow>({
  name: "webhooks.list",
  conditions: {
    callbackUrl: (p) => `${HASH} = hashtextextended(${p}, 0) and d.callback_url = ${p}`,
    // Also by its address, which has an index.
    subscriptionId: (p) => `${p}::int4 = any(d.subscription_ids) and ${HASH} =
      (select hashtextextended(s.callback_url, 0) from webhooks.metrics_webhook_subscription s where s.id = ${p}::int4)`,
    modelId: (p) => `d.model_id = ${p}`,
    opTime: (p) => `d.op_time = ${p}`,
    status: (p) => `d.status = ${p}`,
    since: (p) => `d.created_at >= ${p}::timestamptz`,
    after: (p) => `(d.created_at, d.id) < (select a.created_at, a.id from webhooks.delivery a where a.id = ${p}::uuid)`,
  },
  text: (where, parameter) => `select ${COLUMNS} from webhooks.delivery d where ${where}
     order by d.created_at desc, d.id desc limit ${parameter(0)}`,
});

/** Newest first. */
export function listDeliveries(db: Db, filter: DeliveryFilter, limit: number): Promise<DeliveryRow[]> {
  const { statement: list, values } = LIST(filter);
  return db.read(list, [...values, limit]);
}

const READ = statement<DeliveryRow & { payload: unknown }>(
  "webhooks.delivery.read",
  `select ${COLUMNS}, d.payload from webhooks.delivery d where d.id = $1`,
);

export async function readDelivery(db: Queryable, id: string) {
  return (await db.rows(READ, [id]))[0];
}

const ATTEMPTS = statement<AttemptRow>(
  "webhooks.attempt.read",
  `select delivery_id, attempt, at, duration_ms, status_code, error, answer
   from webhooks.delivery_attempt where delivery_id = $1 order by attempt desc limit $2`,
);

/** Newest first. */
export function readAttempts(db: Db, deliveryId: string, limit: number): Promise<AttemptRow[]> {
  return db.read(ATTEMPTS, [deliveryId, limit]);
}

/** The present address of a delivery; null if none of its subscriptions is enabled. */
const PRESENT_URL = `(select s.callback_url from webhooks.metrics_webhook_subscription s
        where s.id = any(d.subscription_ids) and s.status = '1' order by s.id limit 1)`;
const AGAIN = `set status = 'PENDING', due_at = now(), tries = 0, lost_count = 0, ended_at = null,
       callback_url = coalesce(p.url, t.callback_url)`;
const IS_WANTED = "(cardinality(t.subscription_ids) = 0 or p.url is not null)";

const REDELIVER = statement<{ id: string }>(
  "webhooks.delivery.redeliver",
  `update webhooks.delivery t ${AGAIN}
   from (select d.id, ${PRESENT_URL} as url from webhooks.delivery d where d.id = $1) p
   where t.id = p.id and t.status <> 'SENDING' and ${IS_WANTED} returning t.id`,
);

/** False while it is being sent, and if none of its subscriptions is enabled. */
export async function redeliver(tx: Queryable, id: string): Promise<boolean> {
  return (await tx.rows(REDELIVER, [id])).length > 0;
}

const NOW = statement<{ now: string }>("webhooks.delivery.now", "select now()::text as now");
// Deliveries that fail again meanwhile end after `before` and are left out, so that the loop of the caller ends.
const RECOVERABLE = `d.status = 'FAILED' and d.created_at >= $1::timestamptz and d.ended_at <= $2::timestamptz
       and ($3::text is null or d.callback_url = $3)
       and (cardinality(d.subscription_ids) = 0 or ${PRESENT_URL} is not null)`;
const COUNT_RECOVERABLE = statement<{ count: number }>(
  "webhooks.delivery.recoverable",
  `select count(*)::int as count from webhooks.delivery d where ${RECOVERABLE}`,
);
const RECOVER = statement<{ id: string }>(
  "webhooks.delivery.recover",
  `with picked as materialized (
     select d.id, ${PRESENT_URL} as url from webhooks.delivery d
     where ${RECOVERABLE}
     order by d.created_at limit $4 for update of d skip locked
   ) update webhooks.delivery t ${AGAIN} from picked p where t.id = p.id returning t.id`,
);

export async function databaseTime(db: Queryable): Promise<string> {
  const [row] = await db.rows(NOW);
  if (!row) throw new Error("the query of the time returned no row");
  return row.now;
}

export interface Recovery {
  since: string;
  before: string;
  callbackUrl: string | null;
  limit: number;
}

/** How many `recover` would send again, over all its batches. */
export async function countRecoverable(db: Queryable, which: Omit<Recovery, "limit">): Promise<number> {
  const [row] = await db.rows(COUNT_RECOVERABLE, [which.since, which.before, which.callbackUrl]);
  return row?.count ?? 0;
}

/** Answers how many will be sent again. */
export async function recover(db: Queryable, { since, before, callbackUrl, limit }: Recovery): Promise<number> {
  return (await db.rows(RECOVER, [since, before, callbackUrl, limit])).length;
}
