/** SQL for models, their dependencies and the indicators they feed. */
import { toArrays, unnest } from "../../kernel/data/batch.ts";
import type { Db, Queryable } from "../../kernel/data/db.ts";
import { statement } from "../../kernel/data/statement.ts";
import type { Grain } from "../../kernel/time/op-time.ts";
import type { RetryFields } from "../../kernel/work/retry-fields.ts";
import type { Expect } from "../kpis/checks.ts";
import type { RerunPolicy } from "../runs/states.ts";

export interface DependencyRow {
  id: string;
  model_id: string;
  dependency_table_name: string;
  optional: boolean;
  quiet_seconds: number;
  deadline: string | null;
  grain: Grain | null;
  shift: number;
}

export interface ModelWrite {
  model_id: string;
  name: string;
  description: string | null;
  engine: string | null;
  sql: string | null;
  chain: string | null;
  grain: Grain | null;
  time_zone: string;
  produces: string | null;
  rerun: RerunPolicy;
  timeout_seconds: number;
  retry: RetryFields | null;
  expect: Expect | null;
  allow_empty: boolean;
}

export interface ModelRow extends ModelWrite {
  state: number;
  version: number;
  created_at: Date;
  updated_at: Date;
  dependencies: Omit<DependencyRow, "id" | "model_id">[];
  kpis: string[];
}

const COLUMNS = `m.model_id, m.name, m.description, m.state, m.engine, m.sql, m.chain, m.grain, m.time_zone, m.produces, m.rerun,
          m.timeout_seconds, m.retry, m.expect, m.allow_empty, m.version::float8 as version, m.created_at, m.updated_at,
          coalesce((select jsonb_agg(to_jsonb(d) - 'id' - 'model_id' order by d.id)
                    from arrivals.metrics_model_dependency d where d.model_id = m.model_id), '[]') as dependencies,
          coalesce((select array_agg(k.kpi_id order by k.kpi_id)
                    from arrivals.metrics_model_kpi k where k.model_id = m.model_id), '{}') as kpis`;

const FIND = statement<ModelRow>(
  "arrivals.model.find",
  `select ${COLUMNS} from arrivals.metrics_model m where m.model_id = $1`,
);

export async function findModel(db: Queryable, modelId: string): Promise<ModelRow | undefined> {
  return (await db.rows(FIND, [modelId]))[0];
}

const FIND_MANY = statement<ModelRow>(
  "arrivals.model.find_many",
  `select ${COLUMNS} from arrivals.metrics_model m where m.model_id = any($1::text[])`,
);

export async function findModels(db: Queryable, modelIds: readonly string[]): Promise<Map<string, ModelRow>> {
  const rows = await db.rows(FIND_MANY, [modelIds]);
  return new Map(rows.map((row) => [row.model_id, row]));
}

const LOCK = statement<{ state: number; version: number }>(
  "arrivals.model.lock",
  "select state, version::float8 as version from arrivals.metrics_model where model_id = $1 for no key update",
);

/**
 * Locks the model against changes until the transaction ends. Its key does not change, so foreign keys that point to it can
 * still be checked: with `for update`, a run that ends would wait for this transaction, which waits for the run's indicators.
 */
export async function lockModel(tx: Queryable, modelId: string) {
  return (await tx.rows(LOCK, [modelId]))[0];
}

const EXISTING = statement<{ model_id: string }>(
  "arrivals.model.existing",
  "select model_id from arrivals.metrics_model where model_id = any($1::text[])",
);
const IDS_READ_MAX = 10_000;
const IDS = statement<{ model_id: string }>(
  "arrivals.model.ids",
  `select model_id from arrivals.metrics_model order by model_id limit ${IDS_READ_MAX}`,
);

export async function existingModels(db: Queryable, modelIds: readonly string[]): Promise<string[]> {
  return (await db.rows(EXISTING, [modelIds])).map(({ model_id }) => model_id);
}

/** The ids of models, to find a similar one. */
export async function allModelIds(db: Queryable): Promise<string[]> {
  return (await db.rows(IDS)).map(({ model_id }) => model_id);
}

const OF_CHAIN = statement<{ model_id: string }>(
  "arrivals.model.of_chain",
  "select model_id from arrivals.metrics_model where chain = $1 order by model_id limit 1",
);

/** A model that runs this chain. */
export async function modelOfChain(tx: Queryable, chain: string): Promise<string | undefined> {
  return (await tx.rows(OF_CHAIN, [chain]))[0]?.model_id;
}

const TABLES = statement<{ name: string }>(
  "arrivals.model.tables",
  `select distinct dependency_table_name as name from arrivals.metrics_model_dependency order by 1 limit ${IDS_READ_MAX}`,
);

/** The tables that models depend on, to find a similar one. */
export async function tablesOfModels(db: Db): Promise<string[]> {
  return (await db.read(TABLES)).map(({ name }) => name);
}

const HOLD = statement(
  "arrivals.model.hold",
  "select from arrivals.metrics_model where model_id = any($1::text[]) order by model_id for key share",
);

/**
 * Keeps the models from being deleted until the transaction ends. It comes before the locks on instances, indicators and
 * values: a delete locks the model first and then those.
 */
export async function holdModels(tx: Queryable, modelIds: readonly string[]): Promise<void> {
  await tx.rows(HOLD, [modelIds]);
}

const UPSERT = statement<{ created: boolean }>(
  "arrivals.model.upsert",
  `insert into arrivals.metrics_model as m
     (model_id, name, description, engine, sql, chain, grain, time_zone, produces, rerun, timeout_seconds, expect, allow_empty,
      retry)
   values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)
   on conflict (model_id) do update
   set name = excluded.name, description = excluded.description, engine = excluded.engine, sql = excluded.sql,
       chain = excluded.chain, grain = excluded.grain, time_zone = excluded.time_zone, produces = excluded.produces,
       rerun = excluded.rerun, timeout_seconds = excluded.timeout_seconds, expect = excluded.expect,
       allow_empty = excluded.allow_empty, retry = excluded.retry, version = m.version + 1, updated_at = now()
   returning (xmax = 0) as created`,
);

/** Answers whether it is new. */
export async function upsertModel(tx: Queryable, model: ModelWrite): Promise<boolean> {
  const [row] = await tx.rows(UPSERT, [
    model.model_id,
    model.name,
    model.description,
    model.engine,
    model.sql,
    model.chain,
    model.grain,
    model.time_zone,
    model.produces,
    model.rerun,
    model.timeout_seconds,
    model.expect && JSON.stringify(model.expect),
    model.allow_empty,
    model.retry && JSON.stringify(model.retry),
  ]);
  return row?.created ?? false;
}

const DEPENDENCY = {
  dependency_table_name: "text",
  optional: "bool",
  quiet_seconds: "int4",
  deadline: "text",
  grain: "text",
  shift: "int4",
};
const DROP_DEPENDENCIES = statement(
  "arrivals.model.drop_dependencies",
  "delete from arrivals.metrics_model_dependency where model_id = $1",
);
const INSERT_DEPENDENCIES = statement<{ id: string; deadline: string | null }>(
  "arrivals.model.insert_dependencies",
  `insert into arrivals.metrics_model_dependency
     (model_id, dependency_table_name, optional, quiet_seconds, deadline, grain, shift)
   select $${Object.keys(DEPENDENCY).length + 1}, i.* from ${unnest(DEPENDENCY, "i")}
   returning id, deadline`,
);

export async function replaceDependencies(
  tx: Queryable,
  modelId: string,
  dependencies: readonly Omit<DependencyRow, "id" | "model_id">[],
) {
  await tx.rows(DROP_DEPENDENCIES, [modelId]);
  return tx.rows(INSERT_DEPENDENCIES, [...toArrays(DEPENDENCY, dependencies), modelId]);
}

const DROP_KPIS = statement("arrivals.model.drop_kpis", "delete from arrivals.metrics_model_kpi where model_id = $1");
const INSERT_KPIS = statement<{ kpi_id: string; model_id: string }>(
  "arrivals.model.insert_kpis",
  `with wanted as (select distinct unnest($2::text[]) as kpi_id), taken as (
     insert into arrivals.metrics_model_kpi (kpi_id, model_id) select kpi_id, $1 from wanted
     on conflict (kpi_id) do nothing returning kpi_id
   )
   select k.kpi_id, k.model_id from wanted w join arrivals.metrics_model_kpi k on k.kpi_id = w.kpi_id
   where not exists (select from taken t where t.kpi_id = w.kpi_id)`,
);

/** Answers the indicators that another model already feeds. */
export async function replaceModelKpis(tx: Queryable, modelId: string, kpiIds: readonly string[]) {
  await tx.rows(DROP_KPIS, [modelId]);
  return tx.rows(INSERT_KPIS, [modelId, kpiIds]);
}

const LOCK_KPIS = statement<{ kpi_id: string }>(
  "arrivals.model.hold_kpis",
  "select kpi_id from arrivals.metrics_model_kpi where model_id = $1 order by kpi_id for share",
);

/** The indicators that the model feeds, locked: none can move to another model before the transaction ends. */
export async function lockModelKpis(tx: Queryable, modelId: string): Promise<string[]> {
  return (await tx.rows(LOCK_KPIS, [modelId])).map(({ kpi_id }) => kpi_id);
}

const SET_STATE = statement<{ model_id: string }>(
  "arrivals.model.set_state",
  "update arrivals.metrics_model set state = $2, updated_at = now() where model_id = $1 returning model_id",
);

export async function setModelState(tx: Queryable, modelId: string, state: number): Promise<boolean> {
  return (await tx.rows(SET_STATE, [modelId, state])).length > 0;
}

const DELETE = statement("arrivals.model.delete", "delete from arrivals.metrics_model where model_id = $1");

/** The log of its runs stays. */
export async function deleteModel(tx: Queryable, modelId: string): Promise<void> {
  await tx.rows(DELETE, [modelId]);
}

const DELETE_VALUES = statement(
  "arrivals.model.delete_values",
  "delete from arrivals.metrics_kpi_data where model_id = $1",
);

/** Deletes all values of the model. Call it after the instances are deleted: until then a run may store more. */
export async function deleteModelValues(tx: Queryable, modelId: string): Promise<void> {
  await tx.rows(DELETE_VALUES, [modelId]);
}

const FILTER = `($1::text is null or strpos(lower(m.name), lower($1)) > 0 or strpos(lower(m.model_id), lower($1)) > 0)
     and ($2::int is null or m.state = $2)`;
const LIST = statement<ModelRow>(
  "arrivals.model.list",
  `select ${COLUMNS} from arrivals.metrics_model m where ${FILTER} order by m.model_id limit $3 offset $4`,
);
const COUNT = statement<{ total: number }>(
  "arrivals.model.count",
  `select count(*)::int as total from arrivals.metrics_model m where ${FILTER}`,
);

export interface ListModels {
  q: string | null;
  state: number | null;
  page: number;
  size: number;
}

export async function listModels(db: Db, { q, state, page, size }: ListModels) {
  const [items, [counted]] = await Promise.all([
    db.read(LIST, [q, state, size, (page - 1) * size]),
    db.read(COUNT, [q, state]),
  ]);
  return { items, total: counted?.total ?? 0 };
}

/** The fields of a model that `decide` needs. */
export interface ModelFacts {
  model_id: string;
  state: number;
  grain: Grain | null;
  time_zone: string;
  rerun: RerunPolicy;
}
export type FactsWithDependency = ModelFacts & { dependency: DependencyRow };

const FACTS = "m.model_id, m.state, m.grain, m.time_zone, m.rerun, to_jsonb(d) as dependency";
const OF_TABLES = statement<FactsWithDependency>(
  "arrivals.model.of_tables",
  `select ${FACTS} from arrivals.metrics_model_dependency d join arrivals.metrics_model m on m.model_id = d.model_id
   where d.dependency_table_name = any($1::text[])`,
);
const OF_MODELS = statement<FactsWithDependency>(
  "arrivals.model.of_models",
  `select ${FACTS} from arrivals.metrics_model m join arrivals.metrics_model_dependency d on d.model_id = m.model_id
   where m.model_id = any($1::text[]) order by d.id`,
);

/** The models that depend on these tables, with the dependency. */
export function dependentsOf(db: Queryable, tables: readonly string[]) {
  return db.rows(OF_TABLES, [tables]);
}

/** All dependencies of these models. */
export function dependenciesOf(db: Queryable, modelIds: readonly string[]) {
  return db.rows(OF_MODELS, [modelIds]);
}

const PRODUCING = statement<ProducingModel & { model_id: string }>(
  "arrivals.model.flow",
  `select m.model_id, m.produces,
          (select jsonb_agg(jsonb_build_object('table', d.dependency_table_name, 'shift', d.shift, 'optional', d.optional))
           from arrivals.metrics_model_dependency d where d.model_id = m.model_id) as needs
   from arrivals.metrics_model m where m.produces is not null`,
);

export interface ProducingModel {
  produces: string;
  needs: { table: string; shift: number; optional: boolean }[];
}

/** The models that produce a table, with the tables that they need. */
export function producingModels(db: Queryable) {
  return db.rows(PRODUCING);
}
