/** SQL for the invariants of arrivals: rows that must agree with each other. Each answers the number of violations and an example. */
import type { Db } from "../../kernel/data/db.ts";
import {
  type Invariant,
  invariant,
  leaseHealthOf,
  type Violation,
  violationsOf,
} from "../../kernel/data/invariants.ts";
import { statement } from "../../kernel/data/statement.ts";

/** Only recent rows: history is long, and rows that were checked yesterday have not changed since. */
const RECENT = "(select * from arrivals.model_instance where updated_at > now() - interval '1 day') i";
/** The run whose values are current. */
const NEWEST_SUCCESS = `(select l.* from arrivals.metrics_task_log l
         where l.model_id = i.model_id and l.op_time = i.op_time and l.status = 'SUCCESS' order by l.id desc limit 1) l`;
const EXAMPLE = "i.model_id || ' ' || i.op_time as example";

const RULES: Invariant[] = [
  invariant(
    "arrivals.invariant.running",
    "an instance is running, parked or returned exactly while one of its runs is RUNNING, with the same generation",
    `select coalesce(t.model_id, i.model_id) || ' ' || coalesce(t.op_time, i.op_time) as example
       from (select * from arrivals.model_instance where state in ('running', 'parked', 'returned')) i
       full join (select * from arrivals.metrics_task_log where status = 'RUNNING') t
       on t.model_id = i.model_id and t.op_time = i.op_time
       where t.id is null or i.model_id is null or t.generation <> i.generation`,
  ),
  invariant(
    "arrivals.invariant.fences",
    "no two running instances share a fence",
    `select min(model_id || ' ' || op_time) as example from arrivals.model_instance where state = 'running'
       group by fence having count(*) > 1`,
  ),
  invariant(
    "arrivals.invariant.parked",
    "an instance is parked with the chain run of its run",
    `select i.model_id || ' ' || i.op_time as example from arrivals.model_instance i
       where i.chain_run_id is not null and not exists (
         select from arrivals.metrics_task_log t where t.model_id = i.model_id and t.op_time = i.op_time
           and t.status = 'RUNNING' and t.chain_run_id = i.chain_run_id)`,
  ),
  invariant(
    "arrivals.invariant.values",
    "the values of a model for an opTime are all from its newest success",
    `select ${EXAMPLE} from ${RECENT} left join lateral ${NEWEST_SUCCESS} on true
       where exists (
         select from arrivals.metrics_kpi_data d where d.model_id = i.model_id and d.op_time = i.op_time
           and (d.task_id is distinct from l.id or d.generation is distinct from l.generation))`,
  ),
  invariant(
    "arrivals.invariant.consumed",
    "the arrivals that an instance has used are those of its newest success",
    `select ${EXAMPLE} from ${RECENT} left join lateral ${NEWEST_SUCCESS} on true
       where i.consumed is not null and i.consumed is distinct from l.consumed`,
  ),
  invariant(
    "arrivals.invariant.vectors",
    "an instance has used only tables that have arrived",
    // The opTime follows the last space, since it contains none. Of an earlier success an arrival may have been deleted.
    `select ${EXAMPLE} from ${RECENT} join lateral ${NEWEST_SUCCESS} on l.end_time > now() - interval '1 day',
            jsonb_each_text(i.consumed) as used(arrival, sequence)
       where not exists (
         select from arrivals.metrics_etl_log e
         where e.op_time = substring(used.arrival from '[^ ]+$')
           and e.table_name = substring(used.arrival from '^(.*) [^ ]+$') and e.sequence >= used.sequence::bigint)`,
  ),
];

/** All invariants that do not hold. */
export function findViolations(db: Db): Promise<Violation[]> {
  return violationsOf(db, RULES);
}

export const leaseHealth = leaseHealthOf("arrivals.invariant.leases", "arrivals.model_instance", "t.state = 'running'");

const WAITING = statement<{ ready: number; oldest_seconds: number; workers: number }>(
  "arrivals.invariant.ready",
  `select (select count(*)::int from arrivals.model_instance where state in ('ready', 'returned')) as ready,
          coalesce((select extract(epoch from now() - min(ready_at)) from arrivals.model_instance
                    where state in ('ready', 'returned')), 0)::float8
            as oldest_seconds,
          (select count(*)::int from kernel.session where expires_at > now() and 'worker' = any(roles)) as workers`,
);

/** The ready instances, the age of the oldest, and the number of live workers. */
export async function queueHealth(db: Db) {
  const [row] = await db.read(WAITING);
  if (!row) throw new Error("the query of the queue returned no row");
  return row;
}
