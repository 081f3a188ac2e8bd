/** SQL for endpoints: their signing keys and their health. */
import { type Columns, itemsByKey, toArrays } from "../../kernel/data/batch.ts";
import type { Queryable } from "../../kernel/data/db.ts";
import { statement } from "../../kernel/data/statement.ts";

// The update changes nothing but locks the row, so that the endpoint is not deleted before the subscription is inserted.
const ENSURE = statement<{ created: boolean }>(
  "webhooks.endpoint.ensure",
  `insert into webhooks.endpoint (callback_url, team_name, signing_key) values ($1, $2, $3)
   on conflict (callback_url, team_name) do update set signing_key = endpoint.signing_key
   returning xmax = 0 as created`,
);

/** True if it was created, with this key. */
export async function ensureEndpoint(tx: Queryable, url: string, team: string, sealedKey: string): Promise<boolean> {
  return (await tx.rows(ENSURE, [url, team, sealedKey]))[0]?.created ?? false;
}

const ENABLE = statement(
  "webhooks.endpoint.enable",
  `update webhooks.endpoint set disabled_at = null, disabled_reason = null, failing_since = null, held_until = null,
       failure_alerted_at = null
   where callback_url = $1 and team_name = $2 and (disabled_at is not null or failing_since is not null)`,
);

/** A subscription was enabled: clears the failures of its endpoint. */
export async function enableEndpoint(tx: Queryable, url: string, team: string): Promise<void> {
  await tx.rows(ENABLE, [url, team]);
}

const LOCK = statement(
  "webhooks.endpoint.lock",
  "select from webhooks.endpoint where callback_url = $1 and team_name = $2 for update",
);
const DROP_UNUSED = statement(
  "webhooks.endpoint.drop_unused",
  `delete from webhooks.endpoint e where e.callback_url = $1 and e.team_name = $2
   and not exists (select from webhooks.metrics_webhook_subscription s
                   where s.callback_url = e.callback_url and s.team_name = e.team_name)`,
);

/** Deletes the endpoint and its key if it has no subscription left. Locks it first: see `ensureEndpoint`. */
export async function dropUnusedEndpoint(tx: Queryable, url: string, team: string): Promise<void> {
  await tx.rows(LOCK, [url, team]);
  await tx.rows(DROP_UNUSED, [url, team]);
}

const ROTATE = statement<{ previous_until: Date }>(
  "webhooks.endpoint.rotate",
  `update webhooks.endpoint
   set previous_key = signing_key, previous_until = now() + make_interval(hours => $4), signing_key = $3
   where callback_url = $1 and team_name = $2 returning previous_until`,
);

/** Answers until when the previous key still signs. */
export async function rotateKey(
  tx: Queryable,
  endpoint: { url: string; team: string },
  sealedKey: string,
  overlapHours: number,
): Promise<Date | undefined> {
  return (await tx.rows(ROTATE, [endpoint.url, endpoint.team, sealedKey, overlapHours]))[0]?.previous_until;
}

const SUCCEEDED = statement(
  "webhooks.endpoint.succeeded",
  `update webhooks.endpoint e set failing_since = null, failure_alerted_at = null from ${itemsByKey({ callback_url: "text" })}
   where e.callback_url = i.callback_url and e.failing_since is not null`,
);

export async function noteSuccess(tx: Queryable, urls: readonly string[]): Promise<void> {
  if (urls.length > 0) await tx.rows(SUCCEEDED, [urls]);
}

export interface EndpointFailure {
  callback_url: string;
  /** It answered 410. */
  gone: boolean;
  /** Its `Retry-After`; 0 if there is none. */
  held_seconds: number;
}

const FAILURE_KEY: Columns = { callback_url: "text" };
const FAILURE_VALUES: Columns = { gone: "bool", held_seconds: "float8" };
// Writes only rows that change: an endpoint that keeps failing costs no further writes.
const FAILED = statement<{ callback_url: string; disabled_reason: string | null }>(
  "webhooks.endpoint.failed",
  `with failed as materialized (
     select e.callback_url, e.team_name, i.held_seconds,
            case when i.gone then 'The receiver answered 410: it wants no more deliveries.'
                 when e.failing_since <= now() - make_interval(days => $4::int4)
                 then 'It has only failed for ' || $4::int4 || ' days.' end as reason
     from ${itemsByKey(FAILURE_KEY, FAILURE_VALUES)} join webhooks.endpoint e on e.callback_url = i.callback_url
     where e.disabled_at is null
       and (e.failing_since is null or i.gone or i.held_seconds > 0
            or e.failing_since <= now() - make_interval(days => $4::int4))
     order by e.callback_url, e.team_name for no key update of e
   ) update webhooks.endpoint e
     set failing_since = coalesce(e.failing_since, now()),
         held_until = case when j.held_seconds > 0
                           then greatest(e.held_until, now() + make_interval(secs => j.held_seconds)) else e.held_until end,
         disabled_at = case when j.reason is not null then now() end,
         disabled_reason = j.reason
     from failed j where e.callback_url = j.callback_url and e.team_name = j.team_name
     returning e.callback_url, e.disabled_reason`,
);
const DISABLE_SUBSCRIPTIONS = statement(
  "webhooks.subscription.disable",
  `update webhooks.metrics_webhook_subscription s set status = '0', updated_at = now()
   from ${itemsByKey({ callback_url: "text" })} where s.callback_url = i.callback_url and s.status = '1'`,
);

/** Answers the endpoints that it has disabled, with their subscriptions, each with the reason. */
export async function noteFailures(
  tx: Queryable,
  failures: readonly EndpointFailure[],
  disableAfterDays: number,
): Promise<{ callbackUrl: string; reason: string }[]> {
  if (failures.length === 0) return [];
  const rows = await tx.rows(FAILED, [...toArrays({ ...FAILURE_KEY, ...FAILURE_VALUES }, failures), disableAfterDays]);
  const reasons = new Map(
    rows.flatMap(({ callback_url, disabled_reason }) => (disabled_reason ? [[callback_url, disabled_reason]] : [])),
  );
  if (reasons.size > 0) await tx.rows(DISABLE_SUBSCRIPTIONS, [[...reasons.keys()]]);
  return [...reasons].map(([callbackUrl, reason]) => ({ callbackUrl, reason }));
}

export interface FailedDelivery {
  id: string;
  callback_url: string;
  event: string;
  model_id: string | null;
  op_time: string | null;
  attempt: number;
  status_code: number | null;
  last_error: string | null;
}

// One delivery for each callback. A callback that was just disabled has an alert of its own.
const TO_ALERT = statement<FailedDelivery>(
  "webhooks.endpoint.alert_failed",
  `with failed as materialized (
     select distinct on (callback_url) id, callback_url, event, model_id, op_time, attempt, status_code, last_error
     from webhooks.delivery where id = any($1::uuid[]) and status = 'FAILED' order by callback_url, id
   ), due as materialized (
     select e.callback_url, e.team_name from webhooks.endpoint e join failed f on f.callback_url = e.callback_url
     where e.disabled_at is null
       and (e.failure_alerted_at is null or e.failure_alerted_at <= now() - make_interval(mins => $2::int4))
     order by e.callback_url, e.team_name for no key update of e
   ), marked as (
     update webhooks.endpoint e set failure_alerted_at = now() from due d
     where e.callback_url = d.callback_url and e.team_name = d.team_name returning e.callback_url
   )
   select * from failed f where f.callback_url in (select callback_url from marked)`,
);

/** Of these deliveries those that people should hear of: at most one of a callback in `everyMinutes`. */
export function failuresToAlert(
  tx: Queryable,
  deliveryIds: readonly string[],
  everyMinutes: number,
): Promise<FailedDelivery[]> {
  return tx.rows(TO_ALERT, [deliveryIds, everyMinutes]);
}
