/** SQL for the log of runs. */
import { itemsByKey, toArrays, unnest } from "../../kernel/data/batch.ts";
import type { Db, Queryable } from "../../kernel/data/db.ts";
import { statement } from "../../kernel/data/statement.ts";
import type { Consumed } from "../runs/decide.ts";
import type { TaskStatus, Trigger } from "../runs/states.ts";
import { COUNTED_MAX } from "./arrivals.ts";
import type { Cause, InstanceKey } from "./instances.ts";

const NEW = {
  model_id: "text",
  op_time: "text",
  generation: "int4",
  attempt: "int4",
  trigger: "text",
  caused_by: "jsonb",
  consumed: "jsonb",
};
export interface NewTask extends InstanceKey {
  generation: number;
  attempt: number;
  trigger: Trigger;
  caused_by: Cause | null;
  consumed: Consumed;
}
const BEGIN = statement<InstanceKey & { id: string; consumed: Consumed }>(
  "arrivals.task.begin",
  `insert into arrivals.metrics_task_log (model_id, op_time, generation, attempt, trigger, caused_by, consumed, worker)
   select i.*, $${Object.keys(NEW).length + 1} from ${unnest(NEW, "i")}
   returning id::text as id, model_id, op_time, consumed`,
);

export function beginTasks(tx: Queryable, tasks: readonly NewTask[], worker: string) {
  return tx.rows(BEGIN, [...toArrays(NEW, tasks), worker]);
}

export interface TaskEnd {
  id: string;
  status: Exclude<TaskStatus, "RUNNING">;
  message: string | null;
  computeCount: number | null;
  storageCount: number | null;
  warnings: readonly string[];
}
const END = statement(
  "arrivals.task.end",
  `update arrivals.metrics_task_log
   set status = $2, message = $3, compute_count = $4, storage_count = $5, warnings = $6, end_time = now()
   where id = $1::bigint and status = 'RUNNING'`,
);

export async function endTask(
  tx: Queryable,
  { id, status, message, computeCount, storageCount, warnings }: TaskEnd,
): Promise<void> {
  await tx.rows(END, [id, status, message, computeCount, storageCount, JSON.stringify(warnings)]);
}

const END_LOST = statement(
  "arrivals.task.end_lost",
  `update arrivals.metrics_task_log t set status = 'FAILED', message = $3, end_time = now()
   from ${itemsByKey({ model_id: "text", op_time: "text" })}
   where t.model_id = i.model_id and t.op_time = i.op_time and t.status = 'RUNNING'`,
);

/** Ends the runs of released instances; the next run gets its own row. */
export async function endLostTasks(tx: Queryable, keys: readonly InstanceKey[], message: string): Promise<void> {
  await tx.rows(END_LOST, [...toArrays({ model_id: "text", op_time: "text" }, keys), message]);
}

const END_OF_MODEL = statement(
  "arrivals.task.end_of_model",
  `update arrivals.metrics_task_log set status = 'FAILED', message = $2, end_time = now()
   where model_id = $1 and status = 'RUNNING'`,
);

/** Call it after the instances are deleted: until then another run may start. */
export async function endTasksOf(tx: Queryable, modelId: string, message: string): Promise<void> {
  await tx.rows(END_OF_MODEL, [modelId, message]);
}

const UNDER_WAY = statement<InstanceKey & { id: string; consumed: Consumed; parkedSeconds: number; timedOut: boolean }>(
  "arrivals.task.under_way",
  `select t.id::text as id, t.model_id, t.op_time, t.consumed, t.timed_out as "timedOut",
          extract(epoch from now() - t.start_time)::float8 as "parkedSeconds"
   from ${itemsByKey({ model_id: "text", op_time: "text" })}
   join arrivals.metrics_task_log t on t.model_id = i.model_id and t.op_time = i.op_time where t.status = 'RUNNING'`,
);

/** The runs of these instances that have not ended. */
export function tasksUnderWay(tx: Queryable, keys: readonly InstanceKey[]) {
  return tx.rows(UNDER_WAY, toArrays({ model_id: "text", op_time: "text" }, keys));
}

export interface TaskRow extends InstanceKey {
  id: string;
  status: TaskStatus;
  start_time: Date;
  end_time: Date | null;
  message: string | null;
  compute_count: number | null;
  storage_count: number | null;
  warnings: string[];
  generation: number;
  /** 1 for the first of its run. */
  attempt: number;
  trigger: Trigger;
  caused_by: Cause | null;
  consumed: Consumed;
  worker: string;
  chain_run_id: string | null;
  /** When it is tried again, if it has failed and no attempt has followed yet. */
  retry_at: Date | null;
}
const COLUMNS = `t.id::text as id, t.model_id, t.op_time, t.status, t.start_time, t.end_time, t.message, t.compute_count,
          t.storage_count, t.warnings, t.generation, t.attempt, t.trigger, t.caused_by, t.consumed, t.worker, t.chain_run_id,
          (select i.due_at from arrivals.model_instance i
           where i.model_id = t.model_id and i.op_time = t.op_time and i.state = 'retrying' and not exists (
             select from arrivals.metrics_task_log n where n.model_id = t.model_id and n.op_time = t.op_time and n.id > t.id)
          ) as retry_at`;

const RUN_KEY = { model_id: "text", op_time: "text", generation: "int4" };
const OF_RUNS = statement<TaskRow & { wanted: number }>(
  "arrivals.task.of_runs",
  `select n.*, i.generation as wanted from ${itemsByKey(RUN_KEY)}, lateral (
     select ${COLUMNS} from arrivals.metrics_task_log t
     where t.model_id = i.model_id and t.op_time = i.op_time and t.generation >= i.generation
     order by t.generation, t.id desc limit 1
   ) n`,
);

/** The run of each `wanted` generation, or of the next one; of several with one generation, the newest. */
export function tasksOf(db: Queryable, runs: readonly (InstanceKey & { generation: number })[]) {
  return db.rows(OF_RUNS, toArrays(RUN_KEY, runs));
}

const FILTER = `($1::text is null or t.model_id = $1) and ($2::text is null or t.op_time = $2)
     and ($3::text is null or t.status = $3)`;
const LIST = statement<TaskRow>(
  "arrivals.task.list",
  `select ${COLUMNS} from arrivals.metrics_task_log t where ${FILTER} order by t.id desc limit $4 offset $5`,
);
const COUNT = statement<{ total: number }>(
  "arrivals.task.count",
  `select count(*)::int as total from (
     select from arrivals.metrics_task_log t where ${FILTER} limit ${COUNTED_MAX}
   ) t`,
);

export interface ListTasks {
  modelId: string | null;
  opTime: string | null;
  status: TaskStatus | null;
  page: number;
  size: number;
}

/** The newest first. */
export async function listTasks(db: Db, { modelId, opTime, status, page, size }: ListTasks) {
  const filter = [modelId, opTime, status];
  const [items, [counted]] = await Promise.all([
    db.read(LIST, [...filter, size, (page - 1) * size]),
    db.read(COUNT, filter),
  ]);
  return { items, total: counted?.total ?? 0 };
}
