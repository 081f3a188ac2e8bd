/** SQL for requests about tasks: list, reset, cancel, and counts by kind. */
import type { Db, Queryable } from "../../../kernel/data/db.ts";
import { statement } from "../../../kernel/data/statement.ts";
import { CANCELABLE, RESETTABLE, TASK_STATUSES, TASK_TYPES, type TaskStatus, type TaskType } from "../states.ts";

export interface TaskRow {
  id: string;
  task_type: TaskType;
  resource_type: string;
  resource_id: string;
  content_hash: string;
  model_fingerprint: string;
  status: TaskStatus;
  priority: number;
  retry_count: number;
  max_retry: number;
  next_run_at: Date;
  last_error: string | null;
  created_at: Date;
  updated_at: Date;
}

const COLUMNS = `id, task_type, resource_type, resource_id, content_hash, model_fingerprint, status, priority, retry_count,
          max_retry, next_run_at, last_error, created_at, updated_at`;

export interface TaskFilter {
  types: readonly TaskType[];
  statuses: readonly TaskStatus[];
}

// From each type and status the first ones, by their index, and of those the first: else a page would sort all that a
// tenant ever had.
const OF_TENANT = `from unnest($2::text[]) as y(type), unnest($3::text[]) as s(state), lateral (
     select * from lineage.ol_async_task
     where tenant_id = $1 and task_type = y.type and status = s.state`;
const LIST = statement<TaskRow>(
  "lineage.task.list",
  `select ${COLUMNS} ${OF_TENANT}
     order by next_run_at desc, id desc limit $4::int + $5::int
   ) t order by next_run_at desc, id desc limit $4 offset $5`,
);
const COUNT = statement<{ total: number }>("lineage.task.count", `select count(*)::int as total ${OF_TENANT}) t`);

/** Those that were due last come first. */
export async function listTasks(db: Db, tenantId: string, filter: TaskFilter, page: { size: number; offset: number }) {
  const values = [tenantId, filter.types, filter.statuses];
  const [items, [count]] = await Promise.all([
    db.read(LIST, [...values, page.size, page.offset]),
    db.read(COUNT, values),
  ]);
  return { items, total: count?.total ?? 0 };
}

const READ = statement<TaskRow>(
  "lineage.task.read",
  `select ${COLUMNS} from lineage.ol_async_task where tenant_id = $1 and id = $2`,
);

export async function readTask(db: Queryable, tenantId: string, id: string): Promise<TaskRow | undefined> {
  return (await db.rows(READ, [tenantId, id]))[0];
}

export interface AttemptRow {
  attempt_no: number;
  worker_id: string;
  started_at: Date;
  finished_at: Date | null;
  status: string;
  batch_no: string | null;
  input_size: number | null;
  latency_ms: number | null;
  error_type: string | null;
  error_message: string | null;
}

const ATTEMPTS = statement<AttemptRow>(
  "lineage.task.attempts",
  `select a.attempt_no, a.worker_id, a.started_at, a.finished_at, a.status, a.batch_no, a.input_size,
          a.latency_ms::int as latency_ms, a.error_type, a.error_message
   from lineage.ol_async_task t join lineage.ol_async_task_attempt a on a.task_id = t.id
   where t.tenant_id = $1 and t.id = $2 order by a.attempt_no desc limit $3`,
);

/** Newest first. */
export function readAttempts(db: Db, tenantId: string, id: string, limit: number): Promise<AttemptRow[]> {
  return db.read(ATTEMPTS, [tenantId, id, limit]);
}

const RESET = statement<{ id: string }>(
  "lineage.task.reset",
  `update lineage.ol_async_task
   set status = 'PENDING', retry_count = 0, next_run_at = now(), updated_at = now()
   where tenant_id = $1 and id = $2 and status = any($3::text[]) returning id`,
);

/** Answers whether it was one that can be reset. */
export async function resetTask(tx: Queryable, tenantId: string, id: string): Promise<boolean> {
  return (await tx.rows(RESET, [tenantId, id, RESETTABLE])).length > 0;
}

const RESET_ALL = statement<{ id: string }>(
  "lineage.task.reset_all",
  `with picked as materialized (
     select t.id from unnest($2::text[]) as y(type), lateral (
       select id from lineage.ol_async_task
       where tenant_id = $1 and task_type = y.type and status = $3 limit $4 for update skip locked
     ) t limit $4
   ) update lineage.ol_async_task t
   set status = 'PENDING', retry_count = 0, next_run_at = now(), updated_at = now()
   from picked p where t.id = p.id and t.status = $3 returning t.id`,
);

/** A batch of those that have one status; answers how many. */
export async function resetTasks(
  tx: Queryable,
  tenantId: string,
  status: (typeof RESETTABLE)[number],
  limit: number,
): Promise<number> {
  return (await tx.rows(RESET_ALL, [tenantId, TASK_TYPES, status, limit])).length;
}

const CANCEL = statement<{ id: string }>(
  "lineage.task.cancel",
  `update lineage.ol_async_task set status = 'CANCELED', updated_at = now()
   where tenant_id = $1 and id = $2 and status = any($3::text[]) returning id`,
);

/** Answers whether it was one that can be canceled. */
export async function cancelTask(tx: Queryable, tenantId: string, id: string): Promise<boolean> {
  return (await tx.rows(CANCEL, [tenantId, id, CANCELABLE])).length > 0;
}

export interface BatchRow {
  batch_no: string;
  task_type: TaskType;
  model_fingerprint: string;
  worker_id: string;
  planned_size: number;
  success_count: number;
  failed_count: number;
  started_at: Date;
  finished_at: Date | null;
  status: string;
}

const BATCHES_OF_TENANT = `from unnest($2::text[]) as y(type), lateral (
     select * from lineage.ol_async_batch where tenant_id = $1 and task_type = y.type`;
const BATCHES = statement<BatchRow>(
  "lineage.task.batches",
  `select batch_no, task_type, model_fingerprint, worker_id, planned_size, success_count, failed_count, started_at,
          finished_at, status ${BATCHES_OF_TENANT}
     order by created_at desc, id desc limit $3::int + $4::int
   ) b order by created_at desc, id desc limit $3 offset $4`,
);
const COUNT_BATCHES = statement<{ total: number }>(
  "lineage.task.batches_count",
  `select count(*)::int as total ${BATCHES_OF_TENANT}) b`,
);

/** Newest first. */
export async function listBatches(
  db: Db,
  tenantId: string,
  types: readonly TaskType[],
  page: { size: number; offset: number },
) {
  const [items, [count]] = await Promise.all([
    db.read(BATCHES, [tenantId, types, page.size, page.offset]),
    db.read(COUNT_BATCHES, [tenantId, types]),
  ]);
  return { items, total: count?.total ?? 0 };
}

export interface BacklogRow {
  task_type: TaskType;
  status: TaskStatus;
  tasks: number;
}

// By the index of each tenant: what has ended well is history, and never read.
const BACKLOG = statement<BacklogRow>(
  "lineage.task.backlog",
  `select y.type as task_type, s.state as status, sum(c.tasks)::int as tasks
   from unnest($1::text[]) as y(type), unnest($2::text[]) as s(state), lineage.tenant n, lateral (
     select count(*) as tasks from lineage.ol_async_task
     where tenant_id = n.id and task_type = y.type and status = s.state
   ) c group by 1, 2`,
);
const ENDED_WELL: readonly TaskStatus[] = ["SUCCEEDED", "CANCELED"];

export function readBacklog(db: Db): Promise<BacklogRow[]> {
  return db.read(BACKLOG, [TASK_TYPES, TASK_STATUSES.filter((status) => !ENDED_WELL.includes(status))]);
}
