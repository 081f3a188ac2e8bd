/** SQL for indicators and their values. */
import { toArrays, unnest } from "../../kernel/data/batch.ts";
import type { Db, Queryable } from "../../kernel/data/db.ts";
import { type Statement, statement } from "../../kernel/data/statement.ts";
import type { Dimensions } from "../kpis/formula.ts";
import { COUNTED_MAX } from "./arrivals.ts";
import type { InstanceKey } from "./instances.ts";

export interface KpiWrite {
  kpi_id: string;
  type: "EXTENDED" | "COMPUTED";
  name: string;
  expression: string | null;
  depends_on: string[];
}
export interface KpiRow extends KpiWrite {
  /** The model that feeds it. */
  model_id: string | null;
  created_at: Date;
  updated_at: Date;
}

const COLUMNS = `k.kpi_id, k.type, k.name, k.expression, k.depends_on, k.created_at, k.updated_at,
          (select m.model_id from arrivals.metrics_model_kpi m where m.kpi_id = k.kpi_id) as model_id`;

const UPSERT = statement<{ created: boolean }>(
  "arrivals.kpi.upsert",
  `insert into arrivals.metrics_kpi (kpi_id, type, name, expression, depends_on) values ($1, $2, $3, $4, $5)
   on conflict (kpi_id) do update
   set type = excluded.type, name = excluded.name, expression = excluded.expression, depends_on = excluded.depends_on,
       updated_at = now()
   returning (xmax = 0) as created`,
);

export async function upsertKpi(tx: Queryable, kpi: KpiWrite): Promise<boolean> {
  const { kpi_id, type, name, expression, depends_on } = kpi;
  return (await tx.rows(UPSERT, [kpi_id, type, name, expression, depends_on]))[0]?.created ?? false;
}

const FIND = statement<KpiRow>(
  "arrivals.kpi.find",
  `select ${COLUMNS} from arrivals.metrics_kpi k where k.kpi_id = $1`,
);

export async function findKpi(db: Queryable, kpiId: string): Promise<KpiRow | undefined> {
  return (await db.rows(FIND, [kpiId]))[0];
}

const FIND_MANY = statement<KpiWrite>(
  "arrivals.kpi.find_many",
  `select kpi_id, type, name, expression, depends_on from arrivals.metrics_kpi where kpi_id = any($1::text[])`,
);

export function findKpis(db: Queryable, kpiIds: readonly string[]): Promise<KpiWrite[]> {
  return db.rows(FIND_MANY, [kpiIds]);
}

const LOCK_ALL = statement(
  "arrivals.kpi.lock_all",
  "select pg_advisory_xact_lock(hashtextextended('arrivals.kpi', 0))",
);
const COMPUTED = statement<KpiWrite>(
  "arrivals.kpi.computed",
  "select kpi_id, type, name, expression, depends_on from arrivals.metrics_kpi where type = 'COMPUTED'",
);

/** Serialises changes of the indicator graph, so that two concurrent ones cannot form a cycle. */
export async function lockKpis(tx: Queryable): Promise<void> {
  await tx.rows(LOCK_ALL);
}

export function computedKpis(db: Queryable): Promise<KpiWrite[]> {
  return db.rows(COMPUTED);
}

const DEPENDING = statement<KpiWrite>(
  "arrivals.kpi.depending",
  `with recursive affected(kpi_id) as (
     select unnest($1::text[])
     union
     select k.kpi_id::text from affected a join arrivals.metrics_kpi k on k.depends_on @> array[a.kpi_id]
   )
   select k.kpi_id, k.type, k.name, k.expression, k.depends_on
   from affected a join arrivals.metrics_kpi k on k.kpi_id = a.kpi_id where k.type = 'COMPUTED'`,
);

/** The COMPUTED indicators that depend on these, directly or not. */
export function dependingKpis(db: Queryable, kpiIds: readonly string[]): Promise<KpiWrite[]> {
  return db.rows(DEPENDING, [kpiIds]);
}

const REGISTER = statement(
  "arrivals.kpi.register",
  `insert into arrivals.metrics_kpi (kpi_id, type, name) select k, 'EXTENDED', k from unnest($1::text[]) as u(k)
   on conflict (kpi_id) do nothing`,
);

/** Creates the indicators of a model that are not defined yet. */
export async function registerKpis(tx: Queryable, kpiIds: readonly string[]): Promise<void> {
  if (kpiIds.length > 0) await tx.rows(REGISTER, [kpiIds]);
}

const TYPES = statement<{ kpi_id: string; type: KpiWrite["type"] }>(
  "arrivals.kpi.types",
  "select kpi_id, type from arrivals.metrics_kpi where kpi_id = any($1::text[])",
);

export function kpiTypes(db: Queryable, kpiIds: readonly string[]) {
  return db.rows(TYPES, [kpiIds]);
}

const IDS_READ_MAX = 10_000;
const IDS = statement<{ kpi_id: string }>(
  "arrivals.kpi.ids",
  `select kpi_id from arrivals.metrics_kpi order by kpi_id limit ${IDS_READ_MAX}`,
);

/** The ids of indicators, to find a similar one. */
export async function allKpiIds(db: Queryable): Promise<string[]> {
  return (await db.rows(IDS)).map(({ kpi_id }) => kpi_id);
}

const DELETE_VALUES = statement(
  "arrivals.kpi.delete_values",
  "delete from arrivals.metrics_kpi_data where kpi_id = $1",
);
const DELETE = statement<{ kpi_id: string }>(
  "arrivals.kpi.delete",
  "delete from arrivals.metrics_kpi where kpi_id = $1 returning kpi_id",
);

export async function deleteKpi(tx: Queryable, kpiId: string): Promise<boolean> {
  await tx.rows(DELETE_VALUES, [kpiId]);
  return (await tx.rows(DELETE, [kpiId])).length > 0;
}

const FILTER = `($1::text is null or strpos(lower(k.name), lower($1)) > 0 or strpos(lower(k.kpi_id), lower($1)) > 0)
     and ($2::text is null or k.type = $2)`;
const LIST = statement<KpiRow>(
  "arrivals.kpi.list",
  `select ${COLUMNS} from arrivals.metrics_kpi k where ${FILTER} order by k.kpi_id limit $3 offset $4`,
);
const COUNT = statement<{ total: number }>(
  "arrivals.kpi.count",
  `select count(*)::int as total from arrivals.metrics_kpi k where ${FILTER}`,
);

export interface ListKpis {
  q: string | null;
  type: string | null;
  page: number;
  size: number;
}

export async function listKpis(db: Db, { q, type, page, size }: ListKpis) {
  const [items, [counted]] = await Promise.all([
    db.read(LIST, [q, type, size, (page - 1) * size]),
    db.read(COUNT, [q, type]),
  ]);
  return { items, total: counted?.total ?? 0 };
}

/** One value to be stored. */
export interface ValueWrite {
  kpi_id: string;
  dimension_key: string;
  dimensions: Dimensions;
  /** A decimal, exact. */
  value: string;
}
const VALUE = { kpi_id: "text", dimension_key: "text", dimensions: "jsonb", value: "numeric" };
const AFTER = Object.keys(VALUE).length;

const CLEAR_MODEL = statement(
  "arrivals.value.clear_model",
  "delete from arrivals.metrics_kpi_data where model_id = $1 and op_time = $2",
);
const CLEAR_KPIS = statement(
  "arrivals.value.clear_kpis",
  "delete from arrivals.metrics_kpi_data where op_time = $1 and kpi_id = any($2::text[])",
);
const CLEAR_INHERITED = statement(
  "arrivals.value.clear_inherited",
  `delete from arrivals.metrics_kpi_data d using arrivals.metrics_model_kpi k
   where k.model_id = $1 and d.kpi_id = k.kpi_id and d.op_time = $2`,
);
// A conflict is possible only with a run that started before the indicator moved to another model.
const INSERT = statement(
  "arrivals.value.insert",
  `insert into arrivals.metrics_kpi_data (kpi_id, op_time, dimension_key, dimensions, value, model_id, task_id, generation)
   select i.kpi_id, $${AFTER + 1}, i.dimension_key, i.dimensions, i.value, $${AFTER + 2}, $${AFTER + 3}::bigint, $${AFTER + 4}
   from ${unnest(VALUE, "i")}
   on conflict (kpi_id, op_time, dimension_key) do update
   set value = excluded.value, model_id = excluded.model_id, task_id = excluded.task_id, generation = excluded.generation,
       updated_at = now()`,
);

/** The run that values come from. */
export interface ValueSource {
  opTime: string;
  modelId: string | null;
  taskId: string;
  generation: number;
}
const VALUES_AT_ONCE = 5_000;

async function insertValues(tx: Queryable, values: readonly ValueWrite[], source: ValueSource): Promise<void> {
  const { opTime, modelId, taskId, generation } = source;
  for (let from = 0; from < values.length; from += VALUES_AT_ONCE) {
    const some = toArrays(VALUE, values.slice(from, from + VALUES_AT_ONCE));
    await tx.rows(INSERT, [...some, opTime, modelId, taskId, generation]);
  }
}

/** Replaces all values of the model for the opTime, and those that another model stored for its indicators. */
export async function replaceModelValues(
  tx: Queryable,
  values: readonly ValueWrite[],
  source: ValueSource & { modelId: string },
): Promise<void> {
  await tx.rows(CLEAR_MODEL, [source.modelId, source.opTime]);
  await tx.rows(CLEAR_INHERITED, [source.modelId, source.opTime]);
  await insertValues(tx, values, source);
}

/** Replaces all values of these indicators for the opTime. */
export async function replaceKpiValues(
  tx: Queryable,
  kpiIds: readonly string[],
  values: readonly ValueWrite[],
  source: ValueSource,
): Promise<void> {
  await tx.rows(CLEAR_KPIS, [source.opTime, kpiIds]);
  await insertValues(tx, values, source);
}

const CLEAR_COMPUTED = statement(
  "arrivals.value.clear_beside",
  `delete from arrivals.metrics_kpi_data t
   using (select distinct op_time from arrivals.metrics_kpi_data where model_id = $1) o
   where t.op_time = o.op_time and t.kpi_id = any($2::text[])`,
);

/** Deletes the values of these computed indicators for every opTime that the model has values for. */
export async function clearComputedOf(tx: Queryable, modelId: string, kpiIds: readonly string[]): Promise<void> {
  if (kpiIds.length > 0) await tx.rows(CLEAR_COMPUTED, [modelId, kpiIds]);
}

const LOCK_COMPUTED = statement(
  "arrivals.value.lock_computed",
  "select pg_advisory_xact_lock(hashtextextended('arrivals.computed ' || $1, 0))",
);
const OF_KPIS = statement<{ kpi_id: string; dimensions: Dimensions; value: string }>(
  "arrivals.value.of_kpis",
  `select kpi_id, dimensions, value::text as value from arrivals.metrics_kpi_data
   where op_time = $1 and kpi_id = any($2::text[])`,
);

/** Serialises computation per opTime: two models that end concurrently would each miss the values of the other. */
export async function lockComputed(tx: Queryable, opTime: string): Promise<void> {
  await tx.rows(LOCK_COMPUTED, [opTime]);
}

export function valuesOf(db: Queryable, opTime: string, kpiIds: readonly string[]) {
  return db.rows(OF_KPIS, [opTime, kpiIds]);
}

export interface ValueListed extends InstanceKey {
  kpi_id: string;
  dimensions: Dimensions;
  /** A decimal, exact. */
  value: string;
  generation: number;
  updated_at: Date;
}
const VALUE_FILTER = `($1::text is null or kpi_id = $1) and ($2::text is null or op_time = $2)
     and ($3::text is null or op_time >= $3) and ($4::text is null or op_time <= $4) and ($5::jsonb is null or dimensions @> $5)`;
// Both orders are those of the primary key, forwards and backwards.
const listValuesIn = (order: ValueOrder) =>
  statement<ValueListed>(
    `arrivals.value.list_${order}`,
    `select kpi_id, op_time, dimensions, trim_scale(value)::text as value, model_id, generation, updated_at from arrivals.metrics_kpi_data
     where ${VALUE_FILTER} order by kpi_id ${order}, op_time ${order}, dimension_key ${order} limit $6 offset $7`,
  );
const LIST_VALUES: Record<ValueOrder, Statement<ValueListed>> = {
  asc: listValuesIn("asc"),
  desc: listValuesIn("desc"),
};
const COUNT_VALUES = statement<{ total: number }>(
  "arrivals.value.count",
  `select count(*)::int as total from (select from arrivals.metrics_kpi_data where ${VALUE_FILTER} limit ${COUNTED_MAX}) t`,
);

export const VALUE_ORDERS = ["asc", "desc"] as const;
export type ValueOrder = (typeof VALUE_ORDERS)[number];
export interface ListValues {
  kpiId: string | null;
  opTime: string | null;
  from: string | null;
  to: string | null;
  dimensions: Dimensions | null;
  order: ValueOrder;
  page: number;
  size: number;
}

export async function listValues(db: Db, { kpiId, opTime, from, to, dimensions, order, page, size }: ListValues) {
  const filter = [kpiId, opTime, from, to, dimensions && JSON.stringify(dimensions)];
  const [items, [counted]] = await Promise.all([
    db.read(LIST_VALUES[order], [...filter, size, (page - 1) * size]),
    db.read(COUNT_VALUES, filter),
  ]);
  return { items, total: counted?.total ?? 0 };
}
