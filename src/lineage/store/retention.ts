/** The partitions of raw events, and what grows beside them. */
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

// The default partition holds what no month took; whole partitions are dropped above. What was never applied is told nowhere
// else yet, so it is kept however old it is.
const FORGET_EVENTS = statement<{ id: string }>(
  "lineage.forget_events",
  `with old as (
     select id, created_at from lineage.lineage_events_default
     where created_at < now() - make_interval(days => $1) and apply_state not in ('BUFFERED', 'DEAD')
     order by created_at limit $2
   )
   delete from lineage.lineage_events e using old where e.id = old.id and e.created_at = old.created_at returning e.id::text`,
);
const FORGET_KEYS = statement<{ key: string }>(
  "lineage.forget_keys",
  `delete from lineage.event_key where ctid = any(array(
     select ctid from lineage.event_key where seen_at < now() - make_interval(days => $1) limit $2)) returning key`,
);
const FORGET_EXECUTIONS = statement<{ node_id: string }>(
  "lineage.forget_executions",
  `delete from lineage.execution where ctid = any(array(
     select ctid from lineage.execution where created_at < now() - make_interval(days => $1) limit $2))
   returning node_id::text`,
);
/** Some of each: rows that are older than so many days. How many went. */
export async function forgetOld(db: Queryable, keepDays: number, limit: number): Promise<number> {
  let gone = 0;
  for (const forget of [FORGET_EVENTS, FORGET_KEYS, FORGET_EXECUTIONS]) {
    gone += (await db.rows<unknown>(forget, [keepDays, limit])).length;
  }
  return gone;
}
