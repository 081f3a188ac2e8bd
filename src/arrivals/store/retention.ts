/** SQL that deletes old arrivals and old rows of the log of runs. */
import { toArrays, unnest } from "../../kernel/data/batch.ts";
import type { Tx } from "../../kernel/data/db.ts";
import { statement } from "../../kernel/data/statement.ts";
import type { Grain } from "../../kernel/time/op-time.ts";
import type { Batch } from "../../kernel/work/retention.ts";
import type { OpTimeMapping } from "../models/mapping.ts";
import type { ArrivalKey } from "./arrivals.ts";

interface OldArrival extends ArrivalKey {
  sequence: string;
}
const OLD = statement<OldArrival>(
  "arrivals.retention.old",
  `select table_name, op_time, sequence::text as sequence from (
     select table_name, op_time, sequence, arrival_time from arrivals.metrics_etl_log l
     where sequence > $3::bigint order by l.sequence limit $2
   ) oldest where arrival_time < now() - make_interval(days => $1) order by oldest.sequence`,
);

/** How models map the opTimes of a table to their own. */
interface TableMapping {
  table_name: string;
  model_grain: Grain | null;
  grain: Grain | null;
  shift: number;
}
/** Read by one statement, whatever the number of models. */
const MAPPINGS_AT_ONCE = 1_000;
/** A key costs 6 us for each dependent model (measured with 2,000): with 10,000 models, a statement of 100 keys takes 6 s. */
const KEYS_AT_ONCE = 100;

const MAPPING = "d.dependency_table_name, coalesce(m.grain, ''), coalesce(d.grain, ''), d.shift";
// A table may have thousands of dependent models, and they map its opTimes in a few ways.
const MAPPINGS = statement<TableMapping>(
  "arrivals.retention.mappings",
  `select d.dependency_table_name as table_name, m.grain as model_grain, d.grain, d.shift
   from arrivals.metrics_model_dependency d join arrivals.metrics_model m on m.model_id = d.model_id
   where d.dependency_table_name = any($1::text[]) and m.state = 1 and (${MAPPING}) > ($2, $3, $4, $5::int)
   group by 1, 2, 3, 4 order by ${MAPPING} limit ${MAPPINGS_AT_ONCE}`,
);
const KEY = {
  sequence: "int8",
  table_name: "text",
  op_time: "text",
  model_grain: "text",
  grain: "text",
  shift: "int4",
};
/** An opTime of models that need the arrival with this sequence. */
interface Key extends TableMapping {
  sequence: string;
  op_time: string;
}
// The last condition: the doctor compares what the runs of the last day have used with what has arrived.
const NEEDED = statement<{ sequence: string }>(
  "arrivals.retention.needed",
  `select distinct i.sequence::text as sequence from ${unnest(KEY, "i")} cross join lateral (
     select from arrivals.model_instance t
     join arrivals.metrics_model_dependency d on d.model_id = t.model_id
     join arrivals.metrics_model m on m.model_id = t.model_id
     where t.op_time = i.op_time and d.dependency_table_name = i.table_name and m.state = 1
       and m.grain is not distinct from i.model_grain and d.grain is not distinct from i.grain and d.shift = i.shift
       and (t.state <> 'idle' or t.updated_at > now() - interval '2 days')
     limit 1
   ) needing`,
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

/** Answers the opTimes of a model that need this opTime of a table: the hours of a day are for the instance of the day. */
type AffectedOpTimes = (mapping: OpTimeMapping, tableOpTime: string) => readonly string[];

/** What a model that still waits, or has just run, may need stays, however old it is. */
export function deletesArrivals(keepDays: number, affectedOpTimes: AffectedOpTimes) {
  return fromTheOldest(async (tx, after, limit) => {
    const old = await tx.rows(OLD, [keepDays, limit, after]);
    const needed = await neededOf(tx, old, affectedOpTimes);
    const unneeded = old.filter(({ sequence }) => !needed.has(sequence));
    const deleted = await tx.rows(DELETE, [unneeded.map(({ sequence }) => sequence)]);
    return { looked: old.length, deleted: deleted.length, last: old.at(-1)?.sequence ?? null };
  });
}

/** The sequences of those that a model may need. */
async function neededOf(tx: Tx, old: readonly OldArrival[], affectedOpTimes: AffectedOpTimes): Promise<Set<string>> {
  const needed = new Set<string>();
  let keys: Key[] = [];
  async function look(): Promise<void> {
    for (const { sequence } of await tx.rows(NEEDED, toArrays(KEY, keys))) needed.add(sequence);
    keys = [];
  }
  for await (const mapping of mappingsOf(tx, [...new Set(old.map(({ table_name }) => table_name))])) {
    const { model_grain, grain, shift: offset } = mapping;
    for (const { sequence, table_name, op_time } of old) {
      if (table_name !== mapping.table_name || needed.has(sequence)) continue;
      const affected = affectedOpTimes(
        { modelGrain: model_grain ?? undefined, grain: grain ?? undefined, offset },
        op_time,
      );
      for (const modelOpTime of affected) keys.push({ ...mapping, sequence, op_time: modelOpTime });
      if (keys.length >= KEYS_AT_ONCE) await look();
    }
  }
  if (keys.length > 0) await look();
  return needed;
}

async function* mappingsOf(tx: Tx, tables: readonly string[]): AsyncGenerator<TableMapping> {
  let last: TableMapping | undefined;
  for (;;) {
    const { table_name = "", model_grain = null, grain = null, shift = 0 } = last ?? {};
    const mappings: TableMapping[] = await tx.rows(MAPPINGS, [
      tables,
      table_name,
      model_grain ?? "",
      grain ?? "",
      shift,
    ]);
    yield* mappings;
    last = mappings.at(-1);
    if (mappings.length < MAPPINGS_AT_ONCE) return;
  }
}

export const deletesRuns = (keepDays: number) =>
  fromTheOldest(async (tx, after, limit) => {
    const [batch] = await tx.rows(RUNS, [keepDays, limit, after]);
    if (!batch) throw new Error("the statement that deletes runs returned no row");
    return batch;
  });
