/** SQL for the overview: deliveries that have failed or wait, endpoints that fail or are disabled, and the deliveries that have ended. */
import type { Db } from "../../kernel/data/db.ts";
import { statement } from "../../kernel/data/statement.ts";
import { endedOf } from "../../kernel/overview/ended.ts";
import { ENTRIES_MAX, NEEDED_DAYS } from "../../kernel/overview/part.ts";
import { COUNTED_MAX } from "../../kernel/overview/values.ts";
import { SLOT_OR_PROCESS, type WaitingRow } from "../../kernel/overview/waiting-rows.ts";

export const endedDeliveries = endedOf({
  name: "webhooks.overview.ended",
  kind: "delivery",
  table: "webhooks.delivery t",
  where: "t.ended_at is not null",
  id: "t.id::text",
  endedAt: "t.ended_at",
  since: "t.created_at",
  succeeded: "t.status = 'DELIVERED'",
  failed: "t.status = 'FAILED'",
  lane: "t.callback_url",
  underWay: "select r.callback_url as lane from webhooks.delivery r where r.status = 'SENDING'",
});

export interface FailedReceiverRow {
  id: string;
  callback_url: string;
  op_time: string | null;
  last_error: string | null;
  ended_at: Date;
  deliveries: number;
}

const FAILED_MAX = 1_000;
const FAILED = statement<FailedReceiverRow>(
  "webhooks.overview.failed",
  `select * from (
     select distinct on (d.callback_url) d.id, d.callback_url, d.op_time, d.last_error, d.ended_at,
            (count(*) over (partition by d.callback_url))::int as deliveries
     from (select id, callback_url, op_time, last_error, ended_at from webhooks.delivery
           where status = 'FAILED' and created_at > now() - interval '${NEEDED_DAYS} days'
           order by created_at desc, id desc limit ${FAILED_MAX}) d
     order by d.callback_url, d.ended_at desc
   ) newest order by ended_at desc limit ${ENTRIES_MAX}`,
);

/** The newest of each receiver, with their number; the newest receiver first. */
export function failedReceivers(db: Db): Promise<FailedReceiverRow[]> {
  return db.read(FAILED);
}

export interface UnhealthyEndpointRow {
  callback_url: string;
  /** One of its subscriptions, an enabled one if there is any. */
  subscription_id: number | null;
  since: Date;
  /** Null: it is not disabled, but has failed for an hour. */
  disabled_reason: string | null;
}
// An address may be the endpoint of several teams.
const UNHEALTHY = statement<UnhealthyEndpointRow>(
  "webhooks.overview.unhealthy",
  `select * from (
     select distinct on (e.callback_url) e.callback_url, coalesce(e.disabled_at, e.failing_since) as since, e.disabled_reason,
            (select s.id from webhooks.metrics_webhook_subscription s
             where s.callback_url = e.callback_url and s.team_name = e.team_name order by s.status desc, s.id limit 1) as subscription_id
     from webhooks.endpoint e where e.disabled_at is not null or e.failing_since < now() - interval '1 hour'
     order by e.callback_url, e.disabled_at desc nulls last
   ) worst order by since desc limit ${ENTRIES_MAX}`,
);

/** Endpoints that are disabled or have failed without a success for more than an hour, the newest first. */
export function unhealthyEndpoints(db: Db): Promise<UnhealthyEndpointRow[]> {
  return db.read(UNHEALTHY);
}

// The list of deliveries is filtered by subscription: where the deliveries of a receiver go to several, none of them has all.
const WAITING = statement<WaitingRow>(
  "webhooks.overview.waiting",
  `with held as materialized (
     select callback_url, max(held_until) as until from webhooks.endpoint where held_until > now() group by callback_url
   ), pending as materialized (
     select d.callback_url, d.subscription_ids, d.due_at, d.created_at, h.until
     from (select * from webhooks.delivery where status = 'PENDING' order by due_at limit ${COUNTED_MAX}) d
     left join held h on h.callback_url = d.callback_url
   )
   (select 'receiver' as cause, 'delivery' as kind, callback_url::text as subject, 'subscription' as about_kind,
           case when count(distinct subscription_ids) = 1 then (min(subscription_ids))[1]::text end as about_id, count(*)::int as count, min(created_at) as oldest_at, max(until) as next_at
    from pending where until is not null group by callback_url order by count(*) desc limit ${ENTRIES_MAX})
   union all
   (select 'retry', 'delivery', null, null, null, count(*)::int, min(created_at), min(due_at)
    from pending where until is null and due_at > now() having count(*) > 0)
   union all
   (select s.cause, 'delivery', s.subject, null, null, p.count, p.oldest_at, null
    from (select count(*)::int as count, min(created_at) as oldest_at from pending where until is null and due_at <= now()) p,
         (select ${SLOT_OR_PROCESS}) s
    where p.count > 0)`,
);

export function waitingDeliveries(db: Db): Promise<WaitingRow[]> {
  return db.read(WAITING);
}
