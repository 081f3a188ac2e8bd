/** SQL for readiness in cells: rows of tables or models by opTimes, each cell as a code, and the usual times of arrivals. */
import { itemsByKey, toArrays } from "../../kernel/data/batch.ts";
import type { Db } from "../../kernel/data/db.ts";
import { filtered } from "../../kernel/data/filtered.ts";
import { statement } from "../../kernel/data/statement.ts";
import type { Grain } from "../../kernel/time/op-time.ts";
import type { ArrivalKey } from "./arrivals.ts";

/** Of the rows of one page. */
export interface RowFilter {
  /** The name of the last row of the previous page. */
  after?: string;
  /** Part of the name. */
  q?: string;
  /** Models of other grains have no opTime in common with it. */
  grain?: Grain;
}
export interface CellRow {
  name: string;
  title: string | null;
}

const TABLES = filtered<Omit<RowFilter, "grain">, CellRow>({
  name: "arrivals.cells.tables",
  conditions: {
    after: (p) => `d.dependency_table_name > ${p}`,
    q: (p) => `strpos(lower(d.dependency_table_name), lower(${p})) > 0`,
  },
  text: (where, parameter) => `select d.dependency_table_name as name, null as title
     from arrivals.metrics_model_dependency d join arrivals.metrics_model m on m.model_id = d.model_id
     where m.state = 1 and ${where} group by 1 order by 1 limit ${parameter(0)}`,
});
const MODELS = filtered<RowFilter, CellRow>({
  name: "arrivals.cells.models",
  conditions: {
    after: (p) => `m.model_id > ${p}`,
    q: (p) => `(strpos(lower(m.model_id), lower(${p})) > 0 or strpos(lower(m.name), lower(${p})) > 0)`,
    grain: (p) => `(m.grain = ${p} or m.grain is null)`,
  },
  text: (where, parameter) => `select m.model_id as name, m.name as title from arrivals.metrics_model m
     where m.state = 1 and ${where} order by m.model_id limit ${parameter(0)}`,
});

/** Published models, by id. */
export function modelRows(db: Db, filter: RowFilter, limit: number): Promise<CellRow[]> {
  const { statement: page, values } = MODELS(filter);
  return db.read(page, [...values, limit]);
}

/** Tables that published models depend on, by name. */
export function tableRows(db: Db, { after, q }: RowFilter, limit: number): Promise<CellRow[]> {
  const { statement: page, values } = TABLES({
    ...(after === undefined ? {} : { after }),
    ...(q === undefined ? {} : { q }),
  });
  return db.read(page, [...values, limit]);
}

export interface OpTimeRange {
  from: string;
  to: string;
  /** The length of the opTimes; null for any. In text order the hours of a day are between two days. */
  length: number | null;
}

// One row for each table: 80,000 rows of one cell each take four times as long to read.
const TABLE_CELLS = statement<{ name: string; cells: string | null }>(
  "arrivals.cells.of_tables",
  `select n.name, (
     select string_agg(l.op_time || case when l.arrivals > 1 then ' m' else ' a' end, ' ') from arrivals.metrics_etl_log l
     where l.table_name = n.name and l.retracted_at is null and l.op_time >= $2 and l.op_time <= $3 and ($4::int is null or length(l.op_time) = $4)
   ) as cells
   from unnest($1::text[]) as n(name)`,
);
const MODEL_CELLS = statement<{ name: string; cells: string | null }>(
  "arrivals.cells.of_models",
  `select n.name, (
     select string_agg(i.op_time || ' ' || case
         when i.state in ('running', 'parked', 'returned') then 'r'
         when i.state = 'ready' then 'p'
         when i.state = 'waiting' then 'w'
         when i.state = 'quiet' then 'q'
         when i.state = 'asking' then 'a'
         when i.state = 'retrying' then 't'
         else coalesce((
           select case l.status when 'FAILED' then 'f' else 's' end from arrivals.metrics_task_log l
           where l.model_id = i.model_id and l.op_time = i.op_time order by l.id desc limit 1), 'n')
       end, ' ')
     from arrivals.model_instance i
     where i.model_id = n.name and i.op_time >= $2 and i.op_time <= $3 and ($4::int is null or length(i.op_time) = $4)
   ) as cells
   from unnest($1::text[]) as n(name)`,
);

/** The codes of each row, by opTime. */
export async function cellsOf(
  db: Db,
  by: "table" | "model",
  names: readonly string[],
  { from, to, length }: OpTimeRange,
): Promise<Map<string, Map<string, string>>> {
  const rows = await db.read(by === "table" ? TABLE_CELLS : MODEL_CELLS, [names, from, to, length]);
  return new Map(rows.map(({ name, cells }) => [name, pairsOf(cells)]));
}

/** opTimes contain no space. */
function pairsOf(cells: string | null): Map<string, string> {
  const words = cells?.split(" ") ?? [];
  const pairs = new Map<string, string>();
  for (let index = 0; index + 1 < words.length; index += 2) pairs.set(words[index] ?? "", words[index + 1] ?? "");
  return pairs;
}

// Goes from one opTime to the one before it by the index, whatever the number of tables.
const newest = (name: string, first: string) =>
  statement<{ op_time: string }>(
    name,
    `with recursive t(op_time, steps) as (
     (select l.op_time, 1 from arrivals.metrics_etl_log l ${first} order by l.op_time desc limit 1)
     union all
     select (select l.op_time from arrivals.metrics_etl_log l where l.op_time < t.op_time order by l.op_time desc limit 1),
            t.steps + 1
     from t where t.op_time is not null and t.steps < $3
   )
   select op_time from t where op_time is not null and ($1::text is null or op_time ~ $1) limit $2`,
  );
const NEWEST = newest("arrivals.cells.newest", "");
const NEWEST_UP_TO = newest("arrivals.cells.newest_up_to", "where l.op_time <= $4");
const STEPS_MAX = 5_000;

/** The last opTimes in text order, up to `to`, for which anything has arrived, of those that fit the pattern. */
export async function newestOpTimes(db: Db, pattern: string | null, limit: number, to?: string): Promise<string[]> {
  const values = [pattern, limit, STEPS_MAX];
  const rows = await (to === undefined ? db.read(NEWEST, values) : db.read(NEWEST_UP_TO, [...values, to]));
  return rows.map(({ op_time }) => op_time);
}

const GRAIN = statement<{ grain: Grain | null }>(
  "arrivals.cells.grain",
  "select grain from arrivals.metrics_model where state = 1 group by grain order by count(*) desc, grain limit 1",
);

/** The grain of most published models; undefined if there is no model. */
export async function usualGrain(db: Db): Promise<Grain | null | undefined> {
  return (await db.read(GRAIN))[0]?.grain;
}

const KEY = { table_name: "text", op_time: "text" };
const EARLIER = statement<ArrivalKey & { earlier: string; first_time: Date }>(
  "arrivals.cells.earlier",
  `select i.table_name, i.op_time, l.op_time as earlier, l.first_time from ${itemsByKey(KEY)}, lateral (
     select e.op_time, e.first_time from arrivals.metrics_etl_log e
     where e.table_name = i.table_name and e.op_time < i.op_time and length(e.op_time) = length(i.op_time)
     order by e.op_time desc limit $3
   ) l`,
);

/** The first arrivals of the opTimes before each of these. */
export function earlierArrivals(db: Db, keys: readonly ArrivalKey[], each: number) {
  return db.read(EARLIER, [...toArrays(KEY, keys), each]);
}
