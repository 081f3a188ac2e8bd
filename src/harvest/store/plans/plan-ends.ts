/** SQL that ends plans: complete, failed or cancelled. */
import type { Queryable } from "../../../kernel/data/db.ts";
import { statement } from "../../../kernel/data/statement.ts";
import type { PlanState } from "../../states.ts";
import { isGap } from "./gaps.ts";

// A lock of its own statement: the next one sees the slices of whoever had the lock before. Of two slices that end at the same
// time, the second one finds no other that is open.
const LOCK = statement(
  "harvest.plan.lock_many",
  "select from harvest.ing_plan where plan_id = any($1::uuid[]) order by plan_id for no key update",
);
// Of a plan that goes on, a slice can be CANCELLED alone, and then its window is missing.
const GAPS = `from harvest.ing_plan_slice g
     where g.plan_id = p.plan_id and ${isGap("g")}`;
const SETTLE = statement<SettledPlan>(
  "harvest.plan.settle",
  `update harvest.ing_plan p
   set status_code = case when p.record_remarks ? 'unsliced' or exists (select ${GAPS}) then 'FAILED' else 'COMPLETE' end,
       ended_at = now(),
       record_remarks = p.record_remarks || case when p.record_remarks ? 'unsliced'
         then jsonb_build_object('reason', format(case when p.operation_code = 'BACKFILL'
                then 'The window before %s could not be sliced: %s' else 'The window from %s on could not be sliced: %s' end,
                p.record_remarks #>> '{unsliced,from}', p.record_remarks #>> '{unsliced,reason}'))
         else coalesce((select jsonb_build_object('reason', format('%s of %s slices are not complete. The first: %s', count(*),
            (select count(*) from harvest.ing_plan_slice s
             where s.plan_id = p.plan_id and s.status_code <> 'SPLIT' and s.root_slice_id is null),
            (array_agg(g.reason order by g.slice_id))[1])) ${GAPS} having count(*) > 0), '{}') end
   where p.plan_id = any($1::uuid[]) and p.status_code = 'READY'
     and not exists (select from harvest.ing_plan_slice o
                     where o.plan_id = p.plan_id and o.status_code = 'READY')
   returning p.plan_id, p.provenance_code, p.endpoint_name, p.operation_code, p.status_code,
             p.record_remarks ->> 'reason' as reason`,
);

export interface SettledPlan {
  plan_id: string;
  provenance_code: string;
  endpoint_name: string;
  operation_code: string;
  status_code: Extract<PlanState, "COMPLETE" | "FAILED">;
  reason: string | null;
}

/** READY -> COMPLETE or FAILED, for those of the plans that have no open slice. */
export async function settlePlans(tx: Queryable, planIds: readonly string[]): Promise<SettledPlan[]> {
  const [, settled] = await Promise.all([tx.rows(LOCK, [planIds]), tx.rows(SETTLE, [planIds])]);
  return settled;
}

const LOCK_TASKS = statement(
  "harvest.plan.lock_tasks",
  "select pg_advisory_xact_lock(hashtextextended('harvest.plan.tasks ' || $1::text, 0))",
);

/**
 * Either tasks are added to a plan or its tasks are cancelled. A cancel locks tasks before their plan, as the end of a task does, so
 * it could not wait for one that was added meanwhile. Call it before a task, a slice or the plan is locked.
 */
export async function lockTasksOf(tx: Queryable, planId: string): Promise<void> {
  await tx.rows(LOCK_TASKS, [planId]);
}

const OPEN_SLICES = statement<{ slice_id: string }>(
  "harvest.slice.open_of_plan",
  "select slice_id::text from harvest.ing_plan_slice where plan_id = $1 and status_code = 'READY'",
);
// Without its fence, the process that executes a task can commit nothing more.
const CANCEL_TASKS = statement<{ task_id: string }>(
  "harvest.task.cancel",
  `with task as (
     update harvest.ing_task
     set status_code = 'CANCELLED', session_id = null, fence = null, scheduled_at = null, wait_reason = null, wait_gate = null,
         finished_at = now()
     where slice_id = any($1::int8[]) and finished_at is null returning task_id
   ),
   run as (
     update harvest.ing_task_run r set status_code = 'CANCELLED', ended_at = now()
     from task where r.task_id = task.task_id and r.status_code = 'RUNNING'
   )
   select task_id::text from task`,
);
// One that is CANCELLED with a reason was cancelled without its plan, and is a gap; the reason of a division goes with its plan.
// Parts have no window: they are those of the slice that waits for them.
const CANCEL_SLICES = statement<{ slice_id: string; endpoint_id: number; window_from: Date; has_changes: boolean }>(
  "harvest.slice.cancel",
  `update harvest.ing_plan_slice s set status_code = 'CANCELLED', reason = $2, ended_at = now()
   where slice_id = any($1::int8[]) and status_code = 'READY'
   returning slice_id::text, endpoint_id, window_from,
     window_from is not null and (inserted + updated + deleted > 0 or is_parted and exists (
       select from harvest.ing_plan_slice p where p.root_slice_id = s.slice_id and p.inserted + p.updated + p.deleted > 0)) as has_changes`,
);
const CLEAR_IDS = statement(
  "harvest.id_item.clear_cancelled",
  "delete from harvest.slice_id_item where slice_id = any($1::int8[])",
);

export interface CancelledSlice {
  endpoint_id: number;
  window_from: Date;
}

/** READY -> CANCELLED, with their tasks, which come first, as in the transaction of a page. Answers those that were READY. */
async function cancelSlices(tx: Queryable, sliceIds: readonly string[], reason: string | null) {
  const [tasks, slices] = await Promise.all([
    tx.rows(CANCEL_TASKS, [sliceIds]),
    tx.rows(CANCEL_SLICES, [sliceIds, reason]),
    tx.rows(CLEAR_IDS, [sliceIds]),
  ]);
  return { tasks, slices, changed: slices.filter(({ has_changes }) => has_changes) };
}

const CANCEL_PLAN = statement<CancelledPlan>(
  "harvest.plan.cancel",
  `update harvest.ing_plan
   set status_code = 'CANCELLED', unsliced_from = null, ended_at = now(),
       record_remarks = record_remarks || jsonb_build_object('reason', $2::text)
   where plan_id = $1 and ended_at is null returning provenance_code, endpoint_name, operation_code, status_code`,
);

export interface CancelledPlan {
  provenance_code: string;
  endpoint_name: string;
  operation_code: string;
  status_code: PlanState;
}

/**
 * Any open state -> CANCELLED, with its open slices and tasks; answers how many tasks, and the slices that have changed records.
 * Undefined if the plan is not open. A slice has no reason then: it was not wanted, so it is not missing.
 */
export async function cancelPlan(
  tx: Queryable,
  planId: string,
  reason: string,
): Promise<{ plan: CancelledPlan; tasks: number; changed: CancelledSlice[] } | undefined> {
  await lockTasksOf(tx, planId);
  const open = await tx.rows(OPEN_SLICES, [planId]);
  const { tasks, changed } = await cancelSlices(
    tx,
    open.map(({ slice_id }) => slice_id),
    null,
  );
  const [plan] = await tx.rows(CANCEL_PLAN, [planId, reason]);
  return plan && { plan, tasks: tasks.length, changed };
}

// A slice that is divided is cancelled with all its parts, and a part with its whole: a window is complete or missing.
const WHOLE = statement<{ slice_id: string; whole_id: string }>(
  "harvest.slice.whole",
  `select s.slice_id::text, w.whole_id::text
   from (select coalesce(root_slice_id, slice_id) as whole_id from harvest.ing_plan_slice where plan_id = $1 and slice_id = $2) w
   join harvest.ing_plan_slice s on s.slice_id = w.whole_id or s.root_slice_id = w.whole_id`,
);

/** READY -> CANCELLED, with its parts and tasks. Undefined if the slice is not open. The caller settles the plan. */
export async function cancelSlice(
  tx: Queryable,
  { planId, sliceId }: { planId: string; sliceId: string },
  reason: string,
): Promise<{ sliceId: string; changed: CancelledSlice[] } | undefined> {
  await lockTasksOf(tx, planId);
  const all = await tx.rows(WHOLE, [planId, sliceId]);
  const { slices, changed } = await cancelSlices(
    tx,
    all.map(({ slice_id }) => slice_id),
    reason,
  );
  const whole = slices.find(({ slice_id }) => slice_id === all[0]?.whole_id);
  return whole && { sliceId: whole.slice_id, changed };
}

const SLICE_OF_TASK = statement<{ planId: string; sliceId: string; status: string }>(
  "harvest.task.slice_of",
  `select plan_id as "planId", slice_id::text as "sliceId", status_code as status from harvest.ing_task where task_id = $1`,
);

export async function sliceOfTask(db: Queryable, taskId: string) {
  return (await db.rows(SLICE_OF_TASK, [taskId]))[0];
}

const STATUS = statement<{ status_code: PlanState }>(
  "harvest.plan.status",
  "select status_code from harvest.ing_plan where plan_id = $1",
);

export async function planStatus(db: Queryable, planId: string): Promise<PlanState | undefined> {
  return (await db.rows(STATUS, [planId]))[0]?.status_code;
}
