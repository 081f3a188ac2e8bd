/** SQL for the partitions of raw events, and for the tables that grow with them. */
import type { Queryable } from "../../kernel/data/db.ts";
import { statement } from "../../kernel/data/statement.ts";

const ENSURE = statement(
  "lineage.ensure_months",
  `select lineage.ensure_month(month::date)
   from unnest(array[current_date, (date_trunc('month', current_date) + interval '1 month')::date]) as m(month)`,
);
/** This month's partition and the next one's. */
export const ensureMonths = (db: Queryable) => db.rows(ENSURE);

const DROP = statement<{ dropped: number }>(
  "lineage.drop_months",
  "select lineage.drop_months_before(now() - make_interval(days => $1)) as dropped",
);
export async function dropMonths(db: Queryable, keepDays: number): Promise<number> {
  return (await db.rows(DROP, [keepDays]))[0]?.dropped ?? 0;
}

// The default partition holds what no month took; whole partitions are dropped above. What was never applied is stored nowhere
// else yet, so it is kept however old it is.
const DELETE_EVENTS = statement<{ id: string }>(
  "lineage.delete_old_events",
  `with old as (
     select id, created_at from lineage.lineage_events_default
     where created_at < now() - make_interval(days => $1) and apply_state not in ('BUFFERED', 'DEAD')
     order by created_at limit $2
   )
   delete from lineage.lineage_events e using old where e.id = old.id and e.created_at = old.created_at returning e.id::text`,
);
// A month in which something still waits to be applied cannot be dropped: its other events go one by one, or one event that
// nobody replays would keep a month of all tenants. Only whole months, since those of a younger one are dropped with it.
const DELETE_OF_PINNED_MONTHS = statement<{ id: string }>(
  "lineage.delete_old_events_of_pinned_months",
  `with old as (
     select id, created_at from lineage.lineage_events
     where created_at < date_trunc('month', now() - make_interval(days => $1), 'UTC')
       and apply_state not in ('BUFFERED', 'DEAD')
     order by created_at limit $2
   )
   delete from lineage.lineage_events e using old where e.id = old.id and e.created_at = old.created_at returning e.id::text`,
);
const DELETE_KEYS = statement<{ key: string }>(
  "lineage.delete_old_keys",
  `delete from lineage.event_key where ctid = any(array(
     select ctid from lineage.event_key where seen_at < now() - make_interval(days => $1) limit $2)) returning key`,
);
const DELETE_EXECUTIONS = statement<{ node_id: string }>(
  "lineage.delete_old_executions",
  `delete from lineage.execution where ctid = any(array(
     select ctid from lineage.execution where created_at < now() - make_interval(days => $1) limit $2))
   returning node_id::text`,
);
/** Deletes up to `limit` rows of each kind that are older than `keepDays`, and returns their number. */
export async function deleteOld(db: Queryable, keepDays: number, limit: number): Promise<number> {
  let deleted = 0;
  for (const old of [DELETE_EVENTS, DELETE_OF_PINNED_MONTHS, DELETE_KEYS, DELETE_EXECUTIONS]) {
    deleted += (await db.rows<unknown>(old, [keepDays, limit])).length;
  }
  return deleted;
}
