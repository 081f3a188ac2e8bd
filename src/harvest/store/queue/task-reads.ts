/** SQL for pages about tasks, their runs and the batches of a run. */
import type { Db } from "../../../kernel/data/db.ts";
import { filtered } from "../../../kernel/data/filtered.ts";
import { statement } from "../../../kernel/data/statement.ts";
import type { RunState, TaskState } from "../../states.ts";
import { WINDOW_OF_SLICE } from "../plans/plan-reads.ts";
import { pauseReasonOf } from "./pauses.ts";

export interface TaskRow {
  task_id: string;
  plan_id: string;
  slice_id: string;
  partition_key: string;
  status_code: TaskState;
  priority: number;
  scheduled_at: Date | null;
  lost_count: number;
  attempt_count: number;
  wait_reason: string | null;
  last_error: string | null;
  window_from: Date | null;
  window_to: Date | null;
  created_at: Date;
  started_at: Date | null;
  finished_at: Date | null;
}

const TASK = `t.task_id::text, t.plan_id, t.slice_id::text, t.partition_key, t.status_code, t.priority, t.scheduled_at,
          t.lost_count, t.attempt_count,
          coalesce(case when t.status_code = 'QUEUED' then ${pauseReasonOf("t.partition_key")} end, t.wait_reason) as wait_reason,
          t.last_error, ${WINDOW_OF_SLICE}, t.created_at,
          t.started_at, t.finished_at`;

export interface TaskFilter {
  plan: string | undefined;
  source: string | undefined;
  endpoint: string | undefined;
  operation: string | undefined;
  status: string | undefined;
  /** A task: those that were made before it. */
  after: string | undefined;
}
type AllFilter = Pick<TaskFilter, "plan" | "status" | "after">;
const conditions = {
  plan: (parameter: string) => `t.plan_id = ${parameter}`,
  status: (parameter: string) => `t.status_code = ${parameter}`,
  after: (parameter: string) => `t.task_id < ${parameter}`,
};
const list = filtered<AllFilter, TaskRow>({
  name: "harvest.task.list",
  conditions,
  text: (where, parameter) =>
    `select ${TASK} from harvest.ing_task t join harvest.ing_plan_slice s on s.slice_id = t.slice_id
     where ${where} order by t.task_id desc limit ${parameter(0)}`,
});

const TASK_ID_MAX = "9223372036854775807";
const partOf = (number: number) => (parameter: string) => `split_part(p.partition_key, '/', ${number}) = ${parameter}`;
// The newest of each partition that is asked for: among all tasks, those of one endpoint may be years apart. The partition is a
// range, because the planner would drop an order by what is equal, and then take the primary key.
const listOfPartitions = filtered<TaskFilter, TaskRow>({
  name: "harvest.task.list_of_partitions",
  conditions: {
    ...conditions,
    source: partOf(1),
    endpoint: partOf(2),
    operation: partOf(3),
    after: (parameter) => `(t.partition_key, t.task_id) < (p.partition_key, ${parameter}::int8)`,
  },
  text: (where, parameter) =>
    `select ${TASK} from harvest.ing_partition p
     cross join lateral (select t.* from harvest.ing_task t where t.partition_key >= p.partition_key and ${where}
                         order by t.partition_key desc, t.task_id desc limit ${parameter(0)}) t
     join harvest.ing_plan_slice s on s.slice_id = t.slice_id
     order by t.task_id desc limit ${parameter(0)}`,
});

/** The newest first. */
export function listTasks(db: Db, filter: TaskFilter, limit: number): Promise<TaskRow[]> {
  const isOfPartitions = filter.source !== undefined || filter.endpoint !== undefined || filter.operation !== undefined;
  const { statement: one, values } = isOfPartitions
    ? listOfPartitions({ ...filter, after: filter.after ?? TASK_ID_MAX })
    : list(filter);
  return db.read(one, [...values, limit]);
}

const TASK_EXISTS = statement("harvest.task.exists", "select from harvest.ing_task where task_id = $1");

export async function taskExists(db: Db, taskId: string): Promise<boolean> {
  return (await db.read(TASK_EXISTS, [taskId])).length === 1;
}

export interface RunRow {
  run_id: string;
  attempt_no: number;
  status_code: RunState;
  window_from: Date | null;
  window_to: Date | null;
  checkpoint: unknown;
  stats: object;
  error: string | null;
  started_at: Date;
  ended_at: Date | null;
}
const RUN =
  "run_id::text, attempt_no, status_code, window_from, window_to, checkpoint, stats, error, started_at, ended_at";
const RUNS = statement<RunRow>(
  "harvest.run.list",
  `select ${RUN}
   from harvest.ing_task_run where task_id = $1 and attempt_no < $2 order by attempt_no desc limit $3`,
);

/** The newest first, of those before attempt `before`. */
export function listRuns(db: Db, taskId: string, before: number, limit: number): Promise<RunRow[]> {
  return db.read(RUNS, [taskId, before, limit]);
}

const TASKS_OF_SLICE = statement<TaskRow>(
  "harvest.task.of_slice",
  `select ${TASK} from harvest.ing_task t join harvest.ing_plan_slice s on s.slice_id = t.slice_id
   where t.slice_id = $1 order by t.task_id desc limit $2`,
);

/** The newest first. */
export function tasksOfSlice(db: Db, sliceId: string, limit: number): Promise<TaskRow[]> {
  return db.read(TASKS_OF_SLICE, [sliceId, limit]);
}

export interface TaskRunRow extends RunRow {
  task_id: string;
}
const RUNS_OF_TASKS = statement<TaskRunRow>(
  "harvest.run.of_tasks",
  `select i.task_id::text, r.* from unnest($1::int8[]) as i(task_id)
   cross join lateral (select ${RUN} from harvest.ing_task_run
                       where task_id = i.task_id order by attempt_no desc limit $2) r`,
);

/** The newest `limit` of each task. */
export function runsOfTasks(db: Db, taskIds: readonly string[], limit: number): Promise<TaskRunRow[]> {
  return db.read(RUNS_OF_TASKS, [taskIds, limit]);
}

export interface PlanRunRow {
  run_id: string;
  task_id: string;
  slice_id: string;
  slice_no: number;
  attempt_no: number;
  status_code: RunState;
  error: string | null;
  started_at: Date;
  ended_at: Date | null;
}
// In the order of tasks, which an index has, and not of runs: a page costs its own rows, however many the plan has.
const RUNS_OF_PLAN = statement<PlanRunRow>(
  "harvest.run.of_plan",
  `select r.run_id::text, t.task_id::text, t.slice_id::text, s.slice_no, r.attempt_no, r.status_code, r.error, r.started_at, r.ended_at
   from harvest.ing_task t
   cross join lateral (select * from harvest.ing_task_run r
                       where r.task_id = t.task_id and (t.task_id < $2 or r.attempt_no < $3) order by r.attempt_no desc) r
   join harvest.ing_plan_slice s on s.slice_id = t.slice_id
   where t.plan_id = $1 and t.task_id <= $2
   order by t.task_id desc, r.attempt_no desc limit $4`,
);

/** Those behind the run of `after`: the newest tasks first, and of each the newest run. */
export function runsOfPlan(
  db: Db,
  planId: string,
  after: { taskId: string; attempt: number },
  limit: number,
): Promise<PlanRunRow[]> {
  return db.read(RUNS_OF_PLAN, [planId, after.taskId, after.attempt, limit]);
}

export interface BatchRow {
  slice_id: string;
  generation: number;
  batch_no: number;
  phase: number;
  page_no: number | null;
  page_size: number | null;
  before_token: string | null;
  after_token: string | null;
  next_url: string | null;
  request: object;
  response_digest: object;
  stats: object;
  credential_version: number | null;
  body_hash: string | null;
  status_code: string;
  created_at: Date;
}

const RUN_MONTH = statement<{ plan_month: string }>(
  "harvest.run.month",
  `select to_char(p.plan_month, 'YYYY-MM-DD') as plan_month from harvest.ing_task_run r
   join harvest.ing_task t on t.task_id = r.task_id join harvest.ing_plan p on p.plan_id = t.plan_id where r.run_id = $1`,
);

/** The month of the plan of a run, which its batches are partitioned by; undefined if there is no such run. */
export async function runMonth(db: Db, runId: string): Promise<string | undefined> {
  return (await db.read(RUN_MONTH, [runId]))[0]?.plan_month;
}

const BATCHES = statement<BatchRow>(
  "harvest.batch.list",
  `select slice_id::text, generation, batch_no, phase, page_no, page_size, before_token, after_token, next_url, request,
          response_digest, stats, credential_version, body_hash, status_code, created_at
   from harvest.ing_task_run_batch
   where plan_month = $1::date and run_id = $2 and (generation, batch_no) > ($3, $4)
   order by generation, batch_no limit $5`,
);

export function listBatches(
  db: Db,
  run: { runId: string; month: string },
  after: { generation: number; batchNo: number },
  limit: number,
): Promise<BatchRow[]> {
  return db.read(BATCHES, [run.month, run.runId, after.generation, after.batchNo, limit]);
}
