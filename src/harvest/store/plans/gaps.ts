/** SQL of gaps: which slices are one, and how one is accepted. */
import type { Queryable } from "../../../kernel/data/db.ts";
import { statement } from "../../../kernel/data/statement.ts";
import type { WindowSpec } from "../../spec/snapshot.ts";
import type { SliceState } from "../../states.ts";

/**
 * A condition on a row of `ing_plan_slice`: it ended, and its window is missing. A slice that was cancelled has a reason only if it
 * was cancelled without its plan; those of a cancelled plan were not wanted. Parts are no gaps, but the slice that has their window.
 */
export function isGap(slice: string): string {
  return `${slice}.status_code in ('FAILED', 'INCOMPLETE', 'CANCELLED') and ${slice}.reason is not null and ${slice}.root_slice_id is null`;
}

/**
 * Complete slices `d` of the namespace of `slice` that overlap its window. `maxWindowMs` is that of its definition: a slice that reaches into
 * the window from further back than twice as much does not exist, and without that bound the index is read from the first slice on.
 */
export function completeOver(slice: string, maxWindowMs: string): string {
  return `harvest.ing_plan_slice d
       where d.endpoint_id = ${slice}.endpoint_id and d.operation_code = ${slice}.operation_code
         and d.namespace_scope_code = ${slice}.namespace_scope_code and d.namespace_key = ${slice}.namespace_key
         and d.window_from >= ${slice}.window_from - make_interval(secs => 2 * coalesce(${maxWindowMs}, 0) / 1000)
         and d.window_from < ${slice}.window_to and d.window_to > ${slice}.window_from and d.status_code = 'COMPLETE'`;
}

/** Of a row `n` of `snapshot`. */
export const MAX_WINDOW_MS = "(n.snapshot #>> '{spec,window,maxWindowMs}')::float8";

/**
 * The same for what plans and time lines show: a slice that had failed before its plan was cancelled is none where the window is complete,
 * by an earlier plan or a later one. Nothing is missing there, and after a rewind the next plan takes the window.
 */
export function isShownGap(slice: string): string {
  const isComplete = `(select coalesce(range_agg(tstzrange(d.window_from, d.window_to)) @> tstzrange(${slice}.window_from, ${slice}.window_to), false)
       from ${completeOver(slice, MAX_WINDOW_MS)})`;
  // `offset 0` keeps the lookup of one plan: otherwise all cancelled ones may be read.
  return `${isGap(slice)} and (${slice}.accepted_at is not null or not exists (
       select from harvest.ing_plan o join harvest.snapshot n on n.spec_fingerprint = o.spec_fingerprint
       where o.plan_id = ${slice}.plan_id and o.status_code = 'CANCELLED' and ${isComplete} offset 0))`;
}

/** A slice with what an advance of its watermark needs. */
export interface GapSlice {
  status_code: SliceState;
  is_gap: boolean;
  accepted_at: Date | null;
  /** Set for a part: the slice that has its window. */
  root_slice_id: string | null;
  generation: number;
  provenance_code: string;
  endpoint_id: number;
  operation_code: string;
  namespace_scope_code: string;
  namespace_key: string;
  window_from: Date | null;
  expr_hash: string;
  plan_month: string;
  schedule_instance_id: string;
  window: WindowSpec | null;
  /** The last ones; there is no run if it was cancelled before it was executed. */
  task_id: string | null;
  run_id: string | null;
}

const LOCK = statement<GapSlice>(
  "harvest.slice.lock_gap",
  `select s.status_code, ${isGap("s")} as is_gap, s.accepted_at, s.root_slice_id::text, s.generation, s.provenance_code, s.endpoint_id, s.operation_code,
          s.namespace_scope_code, s.namespace_key, s.window_from, s.expr_hash, p.plan_month::text, p.schedule_instance_id,
          n.snapshot #> '{spec,window}' as window, r.task_id::text, r.run_id::text
   from harvest.ing_plan_slice s
   join harvest.ing_plan p on p.plan_id = s.plan_id
   join harvest.snapshot n on n.spec_fingerprint = p.spec_fingerprint
   left join lateral (
     select t.task_id, r.run_id from harvest.ing_task t left join harvest.ing_task_run r on r.task_id = t.task_id
     where t.slice_id = s.slice_id order by r.run_id desc nulls last, t.task_id desc limit 1
   ) r on true
   where s.plan_id = $1 and s.slice_id = $2 for no key update of s`,
);

/** Undefined if the plan has no such slice. */
export async function lockGap(tx: Queryable, planId: string, sliceId: string): Promise<GapSlice | undefined> {
  return (await tx.rows(LOCK, [planId, sliceId]))[0];
}

const ACCEPT = statement(
  "harvest.slice.accept",
  `update harvest.ing_plan_slice s set accepted_at = clock_timestamp(), accepted_by = $2, accepted_reason = $3
   where s.slice_id = $1 and ${isGap("s")} and s.accepted_at is null`,
);

export async function acceptGap(tx: Queryable, sliceId: string, by: string, reason: string): Promise<void> {
  await tx.rows(ACCEPT, [sliceId, by, reason]);
}
