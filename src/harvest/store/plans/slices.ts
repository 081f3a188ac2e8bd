/** SQL that moves a slice: started again, split in time, ended. The caller holds the fence of its task. */
import { toArrays, unnest } from "../../../kernel/data/batch.ts";
import type { Queryable } from "../../../kernel/data/db.ts";
import { statement } from "../../../kernel/data/statement.ts";
import type { SliceState } from "../../states.ts";

const RESTART = statement<{ generation: number }>(
  "harvest.slice.restart",
  `update harvest.ing_plan_slice
   set generation = generation + 1, batches = 0, position = null, position_at = null, expected = null, received = 0,
       missing = 0, quarantined = 0
   where slice_id = $1 and generation = $2 and status_code = 'READY' returning generation`,
);

/** Begins the next generation at the first page; undefined if the slice is no longer there. */
export async function restartSlice(tx: Queryable, sliceId: string, generation: number): Promise<number | undefined> {
  return (await tx.rows(RESTART, [sliceId, generation]))[0]?.generation;
}

const END = statement(
  "harvest.slice.end",
  `update harvest.ing_plan_slice set status_code = $3, reason = $4, ended_at = now()
   where slice_id = $1 and generation = $2 and status_code = 'READY' returning slice_id`,
);

/** False if the slice is no longer there. */
export async function endSlice(
  tx: Queryable,
  slice: { sliceId: string; generation: number },
  state: Extract<SliceState, "COMPLETE" | "INCOMPLETE" | "FAILED" | "SPLIT">,
  reason: string | null,
): Promise<boolean> {
  return (await tx.rows(END, [slice.sliceId, slice.generation, state, reason])).length === 1;
}

export interface ChildSlice {
  window_from: Date;
  window_to: Date;
  slice_spec: object;
  slice_signature_hash: string;
  expr_hash: string;
  expr_snapshot: object;
  idempotent_key: string;
}

const CHILD = {
  window_from: "timestamptz",
  window_to: "timestamptz",
  slice_spec: "jsonb",
  slice_signature_hash: "text",
  expr_hash: "text",
  expr_snapshot: "jsonb",
  idempotent_key: "text",
};
// The children take the numbers behind the last slice of the plan. The lock of the plan keeps two splits apart.
const SPLIT = statement<{ slice_id: string }>(
  "harvest.slice.split",
  `with parent as (
     select s.*, (select max(slice_no) from harvest.ing_plan_slice where plan_id = s.plan_id) as last_no
     from harvest.ing_plan_slice s where s.slice_id = $1
   ),
   child as (
     insert into harvest.ing_plan_slice
       (plan_id, parent_slice_id, slice_no, provenance_code, endpoint_id, operation_code, namespace_scope_code, namespace_key,
        window_from, window_to, slice_spec, slice_signature_hash, expr_hash, expr_snapshot, status_code)
     select p.plan_id, p.slice_id, p.last_no + i.no, p.provenance_code, p.endpoint_id, p.operation_code,
            p.namespace_scope_code, p.namespace_key, i.window_from, i.window_to, i.slice_spec, i.slice_signature_hash,
            i.expr_hash, i.expr_snapshot, 'READY'
     from parent p, (select *, row_number() over (order by window_from)::int4 as no from ${unnest(CHILD, "u", 3)}) i
     returning slice_id, slice_signature_hash, expr_hash
   )
   insert into harvest.ing_task
     (schedule_instance_id, plan_id, slice_id, provenance_code, operation_code, partition_key, credential_id, params, expr_hash,
      idempotent_key, priority, scheduled_at)
   select t.schedule_instance_id, t.plan_id, c.slice_id, t.provenance_code, t.operation_code, t.partition_key, t.credential_id,
          t.params, c.expr_hash, i.idempotent_key, t.priority, now()
   from child c join ${unnest(CHILD, "i", 3)} on i.slice_signature_hash = c.slice_signature_hash, harvest.ing_task t
   where t.task_id = $2
   returning slice_id::text`,
);
const LOCK_PLAN = statement("harvest.plan.lock", "select from harvest.ing_plan where plan_id = $1 for no key update");

/** Inserts the children with their tasks. The caller ends the parent as SPLIT. */
export async function insertChildren(
  tx: Queryable,
  parent: { planId: string; sliceId: string; taskId: string },
  children: readonly ChildSlice[],
): Promise<void> {
  await tx.rows(LOCK_PLAN, [parent.planId]);
  await tx.rows(SPLIT, [parent.sliceId, parent.taskId, ...toArrays(CHILD, children)]);
}

const MARK_CLEAN = statement(
  "harvest.slice.mark_clean",
  `update harvest.ing_plan_slice set position = position || '{"isClean": true}'
   where slice_id = $1 and generation = $2 and position is not null`,
);

/** No request is under way: the next run may use the token of the position. */
export async function markClean(tx: Queryable, slice: { sliceId: string; generation: number }): Promise<void> {
  await tx.rows(MARK_CLEAN, [slice.sliceId, slice.generation]);
}

const CLAIM_CLEAN = statement(
  "harvest.slice.claim_clean",
  "update harvest.ing_plan_slice set position = position - 'isClean' where slice_id = $1 and generation = $2",
);

/** The token of the position is about to be used. */
export async function claimClean(tx: Queryable, slice: { sliceId: string; generation: number }): Promise<void> {
  await tx.rows(CLAIM_CLEAN, [slice.sliceId, slice.generation]);
}

/** A slice with a window that was ended after it had changed records. */
export interface EndedSlice {
  plan_id: string;
  endpoint_id: number;
  window_from: Date;
}

const FAIL_OF_TASKS = statement<EndedSlice & { root_slice_id: string | null; has_changes: boolean }>(
  "harvest.slice.fail_of_tasks",
  `with run as (
     update harvest.ing_task_run set status_code = 'FAILED', ended_at = now(), error = $2
     where task_id = any($1) and status_code = 'RUNNING'
   ), ids as (
     delete from harvest.slice_id_item d using harvest.ing_task t where t.task_id = any($1) and d.slice_id = t.slice_id
   )
   update harvest.ing_plan_slice s set status_code = 'FAILED', reason = $2, ended_at = now()
   from harvest.ing_task t where t.task_id = any($1) and s.slice_id = t.slice_id and s.status_code = 'READY'
   returning s.plan_id, s.root_slice_id::text, s.endpoint_id, s.window_from,
             s.window_from is not null and s.inserted + s.updated + s.deleted > 0 as has_changes`,
);

/** Ends the slices of tasks that are given up; answers their plans, the slices that they are parts of, and those that have changed records. */
export async function failSlicesOf(
  tx: Queryable,
  taskIds: readonly string[],
  reason: string,
): Promise<{ plans: string[]; roots: string[]; changed: EndedSlice[] }> {
  const ended = await tx.rows(FAIL_OF_TASKS, [taskIds, reason]);
  return {
    plans: [...new Set(ended.map(({ plan_id }) => plan_id))],
    roots: ended.flatMap(({ root_slice_id }) => root_slice_id ?? []),
    changed: ended.filter(({ has_changes }) => has_changes),
  };
}
