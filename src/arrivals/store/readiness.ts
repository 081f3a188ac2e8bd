/** SQL for readiness over a range: which tables have arrived, and the states of the models. */
import type { Db } from "../../kernel/data/db.ts";
import { statement } from "../../kernel/data/statement.ts";
import type { InstanceState, TaskStatus } from "../runs/states.ts";

const TABLES = statement<{ table_name: string }>(
  "arrivals.readiness.tables",
  `select distinct d.dependency_table_name as table_name from arrivals.metrics_model_dependency d
   join arrivals.metrics_model m on m.model_id = d.model_id where m.state = 1 order by 1 limit $1`,
);
const ARRIVED = statement<{ table_name: string; op_time: string; arrival_time: Date; arrivals: number }>(
  "arrivals.readiness.arrived",
  `select t.table_name, t.op_time, t.arrival_time, t.arrivals
   from unnest($1::text[]) as o(op_time), unnest($2::text[]) as n(table_name), lateral (
     select * from arrivals.metrics_etl_log l where l.table_name = n.table_name and l.op_time = o.op_time and l.retracted_at is null
   ) t`,
);
const INSTANCES = statement<{
  model_id: string;
  op_time: string;
  state: InstanceState;
  generation: number;
  last: TaskStatus | null;
}>(
  "arrivals.readiness.standing",
  `select t.model_id, t.op_time, t.state, t.generation, (
     select l.status from arrivals.metrics_task_log l
     where l.model_id = t.model_id and l.op_time = t.op_time order by l.id desc limit 1
   ) as last
   from unnest($1::text[]) as o(op_time), unnest($2::text[]) as n(model_id), lateral (
     select * from arrivals.model_instance i where i.model_id = n.model_id and i.op_time = o.op_time
   ) t`,
);
const MODELS = statement<{ model_id: string }>(
  "arrivals.readiness.models",
  "select model_id from arrivals.metrics_model where state = 1 order by model_id limit $1",
);

export async function publishedModels(db: Db, limit: number): Promise<string[]> {
  return (await db.read(MODELS, [limit])).map(({ model_id }) => model_id);
}

/** The tables that published models depend on. */
export async function watchedTables(db: Db, limit: number): Promise<string[]> {
  return (await db.read(TABLES, [limit])).map(({ table_name }) => table_name);
}

export function arrivedIn(db: Db, opTimes: readonly string[], tables: readonly string[]) {
  return db.read(ARRIVED, [opTimes, tables]);
}

export function instancesIn(db: Db, opTimes: readonly string[], modelIds: readonly string[]) {
  return db.read(INSTANCES, [opTimes, modelIds]);
}
