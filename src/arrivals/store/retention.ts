/** SQL that deletes old arrivals and old rows of the log of runs. */
import { itemsByKey, toArrays } from "../../kernel/data/batch.ts";
import type { Tx } from "../../kernel/data/db.ts";
import { statement } from "../../kernel/data/statement.ts";
import type { Batch } from "../../kernel/work/retention.ts";
import type { ArrivalKey } from "./arrivals.ts";
import type { InstanceKey } from "./instances.ts";

const OLD = statement<ArrivalKey & { sequence: string }>(
  "arrivals.retention.old",
  `select table_name, op_time, sequence::text as sequence from (
     select table_name, op_time, sequence, arrival_time from arrivals.metrics_etl_log
     where sequence > $3::bigint order by sequence limit $2
   ) oldest where arrival_time < now() - make_interval(days => $1) order by oldest.sequence`,
);
// The second condition: the doctor compares what the runs of the last day have used with what has arrived.
const ACTIVE = statement<InstanceKey>(
  "arrivals.retention.active",
  `select t.model_id, t.op_time from ${itemsByKey({ model_id: "text", op_time: "text" })}
   join arrivals.model_instance t on t.model_id = i.model_id and t.op_time = i.op_time
   where t.state <> 'idle' or t.updated_at > now() - interval '2 days'`,
);
// One that has arrived again meanwhile has another sequence.
const DELETE = statement<ArrivalKey>(
  "arrivals.retention.arrivals",
  "delete from arrivals.metrics_etl_log where sequence = any($1::bigint[]) returning table_name, op_time",
);

// The newest run of each opTime stays: it says what became of it, and which arrivals its values come from.
const RUNS = statement<Batch & { last: string | null }>(
  "arrivals.retention.runs",
  `with oldest as materialized (
     select id, model_id, op_time, status, end_time from arrivals.metrics_task_log where id > $3::bigint order by id limit $2
   ), old as materialized (select * from oldest where end_time < now() - make_interval(days => $1)), gone as (
     delete from arrivals.metrics_task_log t using old o
     where t.id = o.id and (
       exists (select from arrivals.metrics_task_log n
               where n.model_id = o.model_id and n.op_time = o.op_time and n.id > o.id and n.status = 'SUCCESS')
       or not exists (select from arrivals.metrics_model m where m.model_id = o.model_id))
     returning 1
   )
   select (select count(*)::int from gone) as deleted, (select count(*)::int from old) as looked,
          (select max(id)::text from old) as last`,
);

/** Goes on behind the last row that it has looked at; from the oldest again when there is nothing more. */
function fromTheOldest(
  deleteBehind: (tx: Tx, after: string, limit: number) => Promise<Batch & { last: string | null }>,
): (tx: Tx, limit: number) => Promise<Batch> {
  let after = "0";
  return async (tx, limit) => {
    const batch = await deleteBehind(tx, after, limit);
    after = batch.looked === limit && batch.last !== null ? batch.last : "0";
    return batch;
  };
}

/**
 * What a model that still waits, or has just run, may need stays, however old it is. `concerned` answers the instances that an arrival
 * is for: the hours of a day are for the instance of the day.
 */
export function deletesArrivals(
  keepDays: number,
  concerned: (tx: Tx, arrivals: readonly ArrivalKey[]) => Promise<readonly (readonly InstanceKey[])[]>,
) {
  return fromTheOldest(async (tx, after, limit) => {
    const old = await tx.rows(OLD, [keepDays, limit, after]);
    const keys = await concerned(tx, old);
    const active = await tx.rows(ACTIVE, toArrays({ model_id: "text", op_time: "text" }, keys.flat()));
    const needed = new Set(active.map(textOf));
    const unneeded = old.filter((_, index) => !keys[index]?.some((key) => needed.has(textOf(key))));
    const deleted = await tx.rows(DELETE, [unneeded.map(({ sequence }) => sequence)]);
    return { looked: old.length, deleted: deleted.length, last: old.at(-1)?.sequence ?? null };
  });
}

const textOf = ({ model_id, op_time }: InstanceKey) => `${model_id} ${op_time}`;

export const deletesRuns = (keepDays: number) =>
  fromTheOldest(async (tx, after, limit) => {
    const [batch] = await tx.rows(RUNS, [keepDays, limit, after]);
    if (!batch) throw new Error("the statement that deletes runs returned no row");
    return batch;
  });
