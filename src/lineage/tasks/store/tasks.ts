/** SQL that queues and claims tasks: lanes, claims, and expired claims. */
import { itemsByKey, toArrays } from "../../../kernel/data/batch.ts";
import type { Db, Queryable } from "../../../kernel/data/db.ts";
import { statement } from "../../../kernel/data/statement.ts";
import type { TaskStatus, TaskType } from "../states.ts";

export interface NewTask {
  task_type: TaskType;
  resource_type: string;
  resource_id: string;
  content_hash: string;
  model_fingerprint: string;
  /** Which embedding and which summary the asset has once the task is done; null where it needs none. */
  embedding_fingerprint: string | null;
  summary_fingerprint: string | null;
}

const NEW_KEY = { resource_id: "text" };
const NEW_VALUES = {
  task_type: "text",
  resource_type: "text",
  content_hash: "char(64)",
  model_fingerprint: "text",
  embedding_fingerprint: "text",
  summary_fingerprint: "text",
};
const has = (table: string, fingerprint: string) =>
  `(i.${fingerprint} is null or exists (
       select from lineage.${table} r
       where r.tenant_id = $1 and r.node_id = i.resource_id::bigint
         and r.model_fingerprint = i.${fingerprint} and r.content_hash = i.content_hash::text))`;
// What the asset has already needs no task. A task that was done and is wanted once more, because its content came back
// after the asset had another, is set back; a key that does nothing would leave the asset with the other's embedding.
// One that is running is only told, by its time: it may have read the content before it came back. No other row is locked,
// so that an event never waits for the work on tasks.
const ENQUEUE = statement<{ queued: number }>(
  "lineage.task.enqueue",
  `with wanted as materialized (
     select i.*, t.id as task_id, t.status as task_status
     from ${itemsByKey(NEW_KEY, NEW_VALUES, 4)}
     left join lineage.ol_async_task t
       on t.task_type = i.task_type and t.tenant_id = $1 and t.resource_type = i.resource_type
       and t.resource_id = i.resource_id and t.model_fingerprint = i.model_fingerprint and t.content_hash = i.content_hash
     where not (${has("embedding", "embedding_fingerprint")} and ${has("summary", "summary_fingerprint")})
   ), again as materialized (
     select t.id from lineage.ol_async_task t
     where t.id in (select task_id from wanted) and (t.status = any($3::text[]) or t.status = 'RUNNING')
     order by t.id for update
   ), woken as (
     update lineage.ol_async_task t
     set status = case when t.status = 'RUNNING' then t.status else 'PENDING' end,
         retry_count = case when t.status = 'RUNNING' then t.retry_count else 0 end,
         next_run_at = clock_timestamp(), updated_at = now(), last_error = null
     from again a where t.id = a.id returning t.id
   ), made as (
     insert into lineage.ol_async_task
       (task_type, tenant_id, tenant_code, resource_type, resource_id, content_hash, model_fingerprint)
     select task_type, $1, $2, resource_type, resource_id, content_hash, model_fingerprint
     from wanted where task_id is null
       or (task_status = any($3::text[]) and task_id not in (select id from woken)) -- forgotten at this very moment
     order by task_type, resource_type, resource_id, content_hash
     on conflict on constraint uq_task_dedup do nothing returning id
   )
   select ((select count(*) from woken) + (select count(*) from made))::int as queued`,
);

/** Answers how many are to be worked on now that were not before. An item may appear only once. */
export async function enqueueTasks(
  tx: Queryable,
  tenant: { id: string; code: string },
  tasks: readonly NewTask[],
  wantedAgain: readonly TaskStatus[],
): Promise<number> {
  if (tasks.length === 0) return 0;
  const [row] = await tx.rows(ENQUEUE, [
    tenant.id,
    tenant.code,
    wantedAgain,
    ...toArrays({ ...NEW_KEY, ...NEW_VALUES }, tasks),
  ]);
  return row?.queued ?? 0;
}

/** What goes to a model together. */
export interface Lane {
  tenant_id: string;
  task_type: TaskType;
  model_fingerprint: string;
}
export type WaitingLane = Lane & { due_in_ms: number };

const LANE = "tenant_id, task_type, model_fingerprint";
const WAITING = "status in ('PENDING', 'FAILED')";
// Walks the index of what waits from lane to lane, so that 100,000 tasks of one tenant cost one step. A lane's first entry
// is the one that is due first.
const LANES = statement<WaitingLane>(
  "lineage.task.lanes",
  `with recursive lanes as (
     (select ${LANE}, next_run_at, 1 as n from lineage.ol_async_task
      where ${WAITING} and tenant_id > $1::bigint
      order by ${LANE}, next_run_at limit 1)
     union all
     select t.*, l.n + 1 from lanes l, lateral (
       select ${LANE}, next_run_at from lineage.ol_async_task
       where ${WAITING} and (${LANE}) > (l.tenant_id, l.task_type, l.model_fingerprint)
       order by ${LANE}, next_run_at limit 1
     ) t where l.n < $2
   )
   select ${LANE}, (extract(epoch from next_run_at - now()) * 1000)::float8 as due_in_ms from lanes`,
);

/** The lanes of the tenants behind one, in the order of the tenants, with the time until something is due in them. */
export function waitingLanes(db: Queryable, afterTenant: string, limit: number): Promise<WaitingLane[]> {
  return db.rows(LANES, [afterTenant, limit]);
}

export interface ClaimedTask {
  id: string;
  resource_id: string;
  content_hash: string;
  retry_count: number;
  max_retry: number;
  /** When it was due, exactly: if that changes while it runs, it was asked for again. */
  due: string;
}

// The batch and the attempts are written with the claim: after a crash they show who had them.
const CLAIM = statement<ClaimedTask>(
  "lineage.task.claim",
  `with picked as materialized (
     select id from lineage.ol_async_task
     where tenant_id = $1 and task_type = $2 and model_fingerprint = $3 and ${WAITING} and next_run_at <= now()
     order by next_run_at, priority, id limit $4 for update skip locked
   ), claimed as (
     update lineage.ol_async_task t
     set status = 'RUNNING', claim_token = $5, claim_until = now() + make_interval(secs => $6), updated_at = now()
     from picked p where t.id = p.id
     returning t.id, t.resource_id, t.content_hash, t.retry_count, t.max_retry, t.next_run_at::text as due
   ), batch as (
     insert into lineage.ol_async_batch
       (batch_no, task_type, tenant_id, model_fingerprint, worker_id, planned_size, started_at, status)
     select $5, $2, $1, $3, $7, count(*), now(), 'RUNNING' from claimed having count(*) > 0
   ), attempts as (
     insert into lineage.ol_async_task_attempt (task_id, attempt_no, worker_id, started_at, status, batch_no, input_size)
     select c.id, coalesce((select max(a.attempt_no) from lineage.ol_async_task_attempt a where a.task_id = c.id), 0) + 1,
            $7, now(), 'RUNNING', $5, count(*) over ()
     from claimed c
   )
   select * from claimed order by id`,
);

export interface ClaimRequest {
  lane: Lane;
  limit: number;
  /** The number of the batch, which is also the token of its claims. */
  batchNo: string;
  seconds: number;
  workerId: string;
}

export function claimTasks(db: Queryable, request: ClaimRequest): Promise<ClaimedTask[]> {
  const { lane, limit, batchNo, seconds, workerId } = request;
  return db.rows(CLAIM, [lane.tenant_id, lane.task_type, lane.model_fingerprint, limit, batchNo, seconds, workerId]);
}

const EXTEND = statement<{ id: string }>(
  "lineage.task.extend",
  `update lineage.ol_async_task set claim_until = now() + make_interval(secs => $3)
   where id = any($1::bigint[]) and status = 'RUNNING' and claim_token = $2 returning id`,
);

/** Answers whether any of them is still held. */
export async function extendClaims(db: Queryable, ids: readonly string[], batchNo: string, seconds: number) {
  return (await db.rows(EXTEND, [ids, batchNo, seconds])).length > 0;
}

const NEXT_EXPIRY = statement<{ ms: number | null }>(
  "lineage.task.next_expiry",
  `select (extract(epoch from min(claim_until) - now()) * 1000)::float8 as ms
   from lineage.ol_async_task where status = 'RUNNING'`,
);

/** Milliseconds until a claim runs out, unless it is extended; Infinity if nothing is claimed. */
export async function nextExpiryMs(db: Queryable): Promise<number> {
  return (await db.rows(NEXT_EXPIRY))[0]?.ms ?? Number.POSITIVE_INFINITY;
}

const LOST = "The process that worked on it was lost.";
export interface LostTask {
  id: string;
  tenant_id: string;
  task_type: TaskType;
  status: TaskStatus;
}
// Counted like a failure, since it may be the task that ends its workers; tried again at once, since more likely it is not.
const RECLAIM = statement<LostTask>(
  "lineage.task.reclaim",
  `with picked as materialized (
     select t.id, t.claim_token from lineage.ol_async_task t
     where t.status = 'RUNNING' and t.claim_until <= now() order by t.id limit $1 for update skip locked
   ), lost as (
     update lineage.ol_async_task t
     set status = case when t.retry_count >= t.max_retry then 'DEAD' else 'FAILED' end,
         retry_count = least(t.retry_count + 1, t.max_retry), next_run_at = now(), updated_at = now(),
         claim_token = null, claim_until = null, last_error = $2
     from picked p where t.id = p.id returning t.id::text, t.tenant_id::text, t.task_type, t.status
   ), attempts as (
     update lineage.ol_async_task_attempt a
     set status = 'FAILED', finished_at = now(), error_type = 'LOST', error_message = $2
     from picked p where a.task_id = p.id and a.batch_no = p.claim_token and a.status = 'RUNNING'
   ), batches as (
     update lineage.ol_async_batch b
     set status = 'FAILED', finished_at = now(), failed_count = p.tasks
     from (select claim_token, count(*) as tasks from picked group by claim_token) p
     where b.batch_no = p.claim_token and b.status = 'RUNNING'
   )
   select * from lost`,
);

/** Takes back what lost processes had claimed. */
export function reclaimTasks(db: Db, limit: number): Promise<LostTask[]> {
  return db.rows(RECLAIM, [limit, LOST]);
}
