/** SQL for the use cases of deliveries: list, show, and send again. */
import type { Db, Queryable } from "../../kernel/data/db.ts";
import { filtered } from "../../kernel/data/filtered.ts";
import { statement } from "../../kernel/data/statement.ts";
import type { DeliveryStatus, RecoverableStatus } from "../delivery/states.ts";
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
  /** Of the last attempt. */
  duration_ms: number | null;
  kpi_ids: string[];
  /** Of the endpoint, whichever team it is of: it has asked to wait until then. */
  held_until: Date | null;
  failing_since: Date | null;
  disabled_reason: string | null;
}

/** A list shows that there are more, and the payload has them all. */
const KPIS_LISTED = 20;
const COLUMNS = `d.id, d.event_id, d.event, d.callback_url, d.subscription_ids, d.model_id, d.op_time, d.retry_num, d.status,
          d.due_at, d.attempt, d.status_code, d.last_error, d.created_at, d.ended_at,
          (select a.duration_ms from webhooks.delivery_attempt a where a.delivery_id = d.id order by a.attempt desc limit 1) as duration_ms,
          array(select json_array_elements_text(d.payload -> 'affectedKpiIds') limit ${KPIS_LISTED}) as kpi_ids,
          e.held_until, e.failing_since, e.disabled_reason`;
const FROM = `webhooks.delivery d cross join lateral (
            select max(held_until) filter (where held_until > now()) as held_until, min(failing_since) as failing_since,
                   min(disabled_reason) as disabled_reason
            from webhooks.endpoint where callback_url = d.callback_url) e`;

/** Which deliveries. */
export interface DeliveryChoice {
  callbackUrl?: string;
  subscriptionId?: number;
  modelId?: string;
  opTime?: string;
  status?: DeliveryStatus;
  since?: string;
}
export interface DeliveryFilter extends DeliveryChoice {
  /** The last delivery of the previous page. */
  after?: string;
}

/** The expression of the index on addresses. */
const HASH = "hashtextextended(d.callback_url, 0)";

/** `isFailed` has its status in the text, because the index of failures applies to no parameter. */
type Conditions = DeliveryChoice & { isFailed?: true };
const CONDITIONS = {
  callbackUrl: (p: string) => `${HASH} = hashtextextended(${p}, 0) and d.callback_url = ${p}`,
  // Also by its address, which has an index.
  subscriptionId: (p: string) => `${p}::int4 = any(d.subscription_ids) and ${HASH} =
      (select hashtextextended(s.callback_url, 0) from webhooks.metrics_webhook_subscription s where s.id = ${p}::int4)`,
  modelId: (p: string) => `d.model_id = ${p}`,
  opTime: (p: string) => `d.op_time = ${p}`,
  status: (p: string) => `d.status = ${p}`,
  isFailed: (p: string) => `${p}::boolean and d.status = 'FAILED'`,
  since: (p: string) => `d.created_at >= ${p}::timestamptz`,
} as const;

function conditionsOf<Choice extends DeliveryChoice>({ status, ...choice }: Choice) {
  if (status === "FAILED") return { ...choice, isFailed: true as const };
  return status === undefined ? choice : { ...choice, status };
}

const LIST = filtered<Conditions & Pick<DeliveryFilter, "after">, DeliveryRow>({
  name: "webhooks.list",
  conditions: {
    ...CONDITIONS,
    after: (p) => `(d.created_at, d.id) < (select a.created_at, a.id from webhooks.delivery a where a.id = ${p}::uuid)`,
  },
  text: (where, parameter) => `select ${COLUMNS} from ${FROM} where ${where}
     order by d.created_at desc, d.id desc limit ${parameter(0)}`,
});

/** Newest first. */
export function listDeliveries(db: Db, filter: DeliveryFilter, limit: number): Promise<DeliveryRow[]> {
  const { statement: list, values } = LIST(conditionsOf(filter));
  return db.read(list, [...values, limit]);
}

const READ = statement<DeliveryRow & { payload: unknown }>(
  "webhooks.delivery.read",
  `select ${COLUMNS}, d.payload from ${FROM} where d.id = $1`,
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
// Deliveries that end again meanwhile do so after `before` and are left out, so that the loop of the caller ends.
const endedBefore = (before: string) => `d.ended_at <= ${before}::timestamptz
       and (cardinality(d.subscription_ids) = 0 or ${PRESENT_URL} is not null)`;
const COUNT_RECOVERABLE = filtered<Conditions, { count: number }>({
  name: "webhooks.delivery.recoverable",
  conditions: CONDITIONS,
  text: (where, parameter) =>
    `select count(*)::int as count from webhooks.delivery d where ${where} and ${endedBefore(parameter(0))}`,
});
const RECOVER = filtered<Conditions, { id: string }>({
  name: "webhooks.delivery.recover",
  conditions: CONDITIONS,
  text: (where, parameter) => `with picked as materialized (
     select d.id, ${PRESENT_URL} as url from webhooks.delivery d
     where ${where} and ${endedBefore(parameter(0))}
     order by d.created_at limit ${parameter(1)} for update of d skip locked
   ) update webhooks.delivery t ${AGAIN} from picked p where t.id = p.id returning t.id`,
});

export async function databaseTime(db: Queryable): Promise<string> {
  const [row] = await db.rows(NOW);
  if (!row) throw new Error("the query of the time returned no row");
  return row.now;
}

export interface Recovery extends DeliveryChoice {
  status: RecoverableStatus;
  since: string;
}

/** How many `recover` would send again, over all its batches. */
export async function countRecoverable(db: Queryable, which: Recovery, before: string): Promise<number> {
  const { statement: count, values } = COUNT_RECOVERABLE(conditionsOf(which));
  return (await db.rows(count, [...values, before]))[0]?.count ?? 0;
}

/** Answers how many will be sent again. */
export async function recover(db: Queryable, which: Recovery, before: string, limit: number): Promise<number> {
  const { statement: again, values } = RECOVER(conditionsOf(which));
  return (await db.rows(again, [...values, before, limit])).length;
}
