/** SQL of the task queue: claims, runs, and how they end. */
import { toArrays, unnest } from "../../../kernel/data/batch.ts";
import type { Queryable, Tx } from "../../../kernel/data/db.ts";
import { statement } from "../../../kernel/data/statement.ts";
import { leaseOn, returning } from "../../../kernel/work/lease.ts";
import type { Counted } from "../../slice/divide.ts";
import type { Part } from "../../slice/parts.ts";
import type { Snapshot } from "../../spec/snapshot.ts";
import type { RunState } from "../../states.ts";
import { WINDOW_OF_SLICE } from "../plans/plan-reads.ts";
import { nextDueOf } from "./next-due.ts";
import { concurrencyNow, isPartitionPaused, isPaused } from "./pauses.ts";

interface ClaimedRow {
  slice_id: string;
  plan_id: string;
  schedule_instance_id: string;
  partition_key: string;
  /** The number of this attempt. */
  attempt_count: number;
}
export type ClaimedTask = ClaimedRow & { task_id: string; fence: string };

/**
 * A harvest of the source runs or is due. One that waits for later, such as for its quota or the end of a pause, keeps nobody waiting.
 * It looks at one task of each endpoint, so that thousands that wait cost nothing; `offset 0` keeps the planner from reading them all
 * into a hash.
 */
export function harvestWaits(source: string): string {
  const isThere = (condition: string) => `exists (
        select from harvest.ing_task h
        where h.partition_key = e.provenance_code || '/' || e.endpoint_name || '/HARVEST' and ${condition} offset 0)`;
  const isDue = isThere("h.status_code = 'QUEUED' and h.scheduled_at <= now()");
  return `exists (
      select from harvest.reg_prov_endpoint_def e
      where e.provenance_code = ${source} and (${isThere("h.status_code = 'EXECUTING'")}
        or not ${isPaused("e.provenance_code", "e.endpoint_name", "'HARVEST'")} and ${isDue}) offset 0)`;
}

/** The operations that make way for HARVEST. The last part of a partition's key is its operation. */
export function isBackground(partitionKey: string): boolean {
  return !partitionKey.endsWith("/HARVEST");
}

export const taskLease = leaseOn({
  name: "harvest.task",
  table: "harvest.ing_task",
  key: { task_id: "int8" },
  state: { column: "status_code", ready: ["QUEUED"], leased: "EXECUTING", dead: "FAILED" },
  dueAt: "scheduled_at",
  orderBy: "t.priority, t.scheduled_at, t.task_id",
  fence: "fence",
  hold: { by: "session", session: "session_id" },
  lost: { column: "lost_count", error: "last_error" },
  onClaim: {
    scheduled_at: "null",
    wait_reason: "null",
    wait_gate: "null",
    started_at: "coalesce(t.started_at, now())",
    attempt_count: "t.attempt_count + 1",
  },
  onReturn: { scheduled_at: "now()" },
  onDead: { scheduled_at: "null", finished_at: "now()" },
  returning: returning<ClaimedRow>(
    "t.slice_id::text, t.plan_id, t.schedule_instance_id, t.partition_key, t.attempt_count",
  ),
  concurrency: {
    column: "partition_key",
    limit: `select case when k.key not like '%/HARVEST' and ${harvestWaits("split_part(k.key, '/', 1)")} then 0 else ${concurrencyNow("p")} end
      from harvest.ing_partition p where p.partition_key = k.key and not ${isPartitionPaused("k.key")}`,
    fairBy: "t.priority",
  },
  outcomes: {
    succeeded: {
      set: "status_code = 'SUCCEEDED', fence = null, finished_at = now(), lost_count = 0, last_error = null",
    },
    partial: {
      set: "status_code = 'PARTIAL', fence = null, finished_at = now(), lost_count = 0, last_error = i.error",
      values: { error: "text" },
    },
    failed: {
      set: "status_code = 'FAILED', fence = null, finished_at = now(), lost_count = 0, last_error = i.error",
      values: { error: "text" },
    },
    later: {
      set: `status_code = 'QUEUED', fence = null, lost_count = 0, wait_reason = i.wait_reason, wait_gate = nullif(i.wait_gate, ''),
            failed_tries = i.failed_tries, scheduled_at = now() + make_interval(secs => i.delay_seconds)`,
      values: { delay_seconds: "float8", wait_reason: "text", wait_gate: "text", failed_tries: "int4" },
    },
  },
});

/** A join that can only be a lookup: with statistics of an empty table, the planner would read whole indexes side by side. */
function lookUp(alias: string, table: string, where: string): string {
  return `cross join lateral (select * from ${table} where ${where} offset 0) ${alias}`;
}

// A run that is still open belongs to a process that was lost.
const START_RUNS = statement(
  "harvest.run.start",
  `with lost as (
     update harvest.ing_task_run r set status_code = 'FAILED', ended_at = now(), error = 'its process was lost'
     from unnest($1::int8[]) as i(task_id)
     ${lookUp("l", "harvest.ing_task_run", "task_id = i.task_id and status_code = 'RUNNING'")}
     where r.run_id = l.run_id
   )
   insert into harvest.ing_task_run (task_id, attempt_no, provenance_code, operation_code, window_from, window_to)
   select t.task_id, i.attempt_no, t.provenance_code, t.operation_code, ${WINDOW_OF_SLICE}
   from ${unnest({ task_id: "int8", attempt_no: "int4" }, "i")}
   ${lookUp("t", "harvest.ing_task", "task_id = i.task_id")}
   ${lookUp("s", "harvest.ing_plan_slice", "slice_id = t.slice_id")}`,
);

/** Call it in the transaction of the claim. */
export async function startRuns(tx: Tx, claimed: readonly ClaimedTask[]): Promise<void> {
  const items = claimed.map(({ task_id, attempt_count }) => ({ task_id, attempt_no: attempt_count }));
  await tx.rows(START_RUNS, toArrays({ task_id: "int8", attempt_no: "int4" }, items));
}

/** What the run of a task needs to know of its plan and slice. */
export interface TaskContext {
  task_id: string;
  run_id: string;
  attempt_no: number;
  /** The runs before this one that failed in a row and committed no page. */
  failed_tries: number;
  /** The source refused access to the endpoint, and has answered nothing since: no other task of the partition runs. */
  is_refused: boolean;
  slice_id: string;
  plan_id: string;
  schedule_instance_id: string;
  endpoint_id: number;
  provenance_code: string;
  endpoint_name: string;
  operation_code: string;
  plan_strategy: string;
  plan_month: string;
  priority: number;
  planned_at: Date;
  plan_from: Date | null;
  plan_to: Date | null;
  window_from: Date | null;
  window_to: Date | null;
  /** Set for a part: the slice that has its window. */
  root_slice_id: string | null;
  part: Part | null;
  namespace_scope_code: string;
  namespace_key: string;
  spec_fingerprint: string;
  expr_proto_hash: string;
  expr_hash: string;
  generation: number;
  batches: number;
  expected: string | null;
  received: string;
  quarantined: string;
  missing: string;
  /** Where the next page begins; null for the first. */
  position: unknown;
  /** When the last page was committed. */
  position_at: Date | null;
  status_code: string;
}

const CONTEXT = statement<TaskContext>(
  "harvest.task.context",
  `select t.task_id::text, r.run_id::text, r.attempt_no, t.failed_tries, k.is_refused, s.slice_id::text, p.plan_id, p.schedule_instance_id, p.endpoint_id,
          p.provenance_code, p.endpoint_name, p.operation_code, p.plan_strategy, to_char(p.plan_month, 'YYYY-MM-DD') as plan_month, p.priority,
          p.planned_at, p.window_from as plan_from, p.window_to as plan_to, ${WINDOW_OF_SLICE}, s.root_slice_id::text, s.part,
          s.namespace_scope_code, s.namespace_key, p.spec_fingerprint, p.expr_proto_hash, s.expr_hash, s.generation, s.batches,
          s.expected::text, s.received::text, s.quarantined::text, s.missing::text, s.position, s.position_at, s.status_code
   from unnest($1::int8[]) as i(task_id)
   ${lookUp("t", "harvest.ing_task", "task_id = i.task_id")}
   ${lookUp("r", "harvest.ing_task_run", "task_id = t.task_id and attempt_no = t.attempt_count")}
   ${lookUp("s", "harvest.ing_plan_slice", "slice_id = t.slice_id")}
   ${lookUp("p", "harvest.ing_plan", "plan_id = t.plan_id")}
   ${lookUp("k", "harvest.ing_partition", "partition_key = t.partition_key")}`,
);

export function taskContexts(db: Queryable, taskIds: readonly string[]): Promise<TaskContext[]> {
  return db.rows(CONTEXT, [taskIds]);
}

const SNAPSHOTS = statement<{ spec_fingerprint: string; snapshot: Snapshot }>(
  "harvest.snapshot.read",
  "select spec_fingerprint, snapshot from harvest.snapshot where spec_fingerprint = any($1)",
);

export async function readSnapshots(db: Queryable, fingerprints: readonly string[]): Promise<Map<string, Snapshot>> {
  const rows = await db.rows(SNAPSHOTS, [fingerprints]);
  return new Map(rows.map(({ spec_fingerprint, snapshot }) => [spec_fingerprint, snapshot]));
}

const END_RUN = statement(
  "harvest.run.end",
  `update harvest.ing_task_run set status_code = $2, ended_at = now(), stats = $3, error = $4, checkpoint = $5
   where run_id = $1 and status_code = 'RUNNING'`,
);

const COUNTS = statement<{ counted: Counted }>(
  "harvest.run.counts",
  `select checkpoint -> 'counted' as counted from harvest.ing_task_run
   where task_id = $1 and checkpoint ? 'counted' order by attempt_no desc limit 1`,
);

/** What the last run that stopped while it divided the slice had counted. */
export async function countsOfTask(db: Queryable, taskId: string): Promise<Counted | undefined> {
  return (await db.rows(COUNTS, [taskId]))[0]?.counted;
}

const END_OF_TASKS = statement(
  "harvest.run.end_of_tasks",
  `update harvest.ing_task_run set status_code = 'CANCELLED', ended_at = now(), error = $2
   where task_id = any($1) and status_code = 'RUNNING'`,
);

/** For tasks that are released without a result. */
export async function endRunsOf(tx: Queryable, taskIds: readonly string[], reason: string): Promise<void> {
  await tx.rows(END_OF_TASKS, [taskIds, reason]);
}

const PLANS_OF_TASKS = statement<{ plan_id: string }>(
  "harvest.task.plans",
  "select distinct plan_id from harvest.ing_task where task_id = any($1)",
);

export async function plansOfTasks(db: Queryable, taskIds: readonly string[]): Promise<string[]> {
  return (await db.rows(PLANS_OF_TASKS, [taskIds])).map(({ plan_id }) => plan_id);
}

export interface RunEnd {
  runId: string;
  state: Exclude<RunState, "RUNNING">;
  stats: object;
  error: string | null;
  /** Where the next run continues. */
  checkpoint: unknown;
}

export async function endRun(tx: Queryable, { runId, state, stats, error, checkpoint }: RunEnd): Promise<void> {
  await tx.rows(END_RUN, [runId, state, JSON.stringify(stats), error, JSON.stringify(checkpoint ?? null)]);
}

// A task that is locked is being claimed, or made due by another.
const MAKE_DUE = statement(
  "harvest.task.make_due",
  `update harvest.ing_task set scheduled_at = now(), wait_reason = null, wait_gate = null
   where task_id in (select task_id from harvest.ing_task where wait_gate = any($1) and status_code = 'QUEUED'
                     for update skip locked)`,
);

/** Tasks that wait for these gates go on now. */
export async function makeDueForGates(tx: Queryable, keys: readonly string[]): Promise<void> {
  await tx.rows(MAKE_DUE, [keys]);
}

const HARVEST_WAITS = statement<{ waits: boolean }>(
  "harvest.task.harvest_waits",
  `select ${harvestWaits("$1")} as waits`,
);

/** Whether a harvest of the source runs or is due, in whichever process. */
export async function doesHarvestWait(db: Queryable, source: string): Promise<boolean> {
  return (await db.rows(HARVEST_WAITS, [source]))[0]?.waits ?? false;
}

/** Milliseconds until a task of the future is due; Infinity if there is none. */
export const nextTaskDueMs = nextDueOf("harvest.task.next_due", {
  table: "harvest.ing_task",
  isQueued: "t.status_code = 'QUEUED'",
  level: "partition_key",
  dueAt: "scheduled_at",
});
