/** Moves the watermark over a slice that was not ended by a run of its own: a gap that was accepted, or one whose parts have ended. */
import type { Tx } from "../../kernel/data/db.ts";
import type { HarvestHints, HarvestMetrics } from "../catalogue.ts";
import { advanceCursor, directionOf } from "../store/cursors/backfill-cursors.ts";
import type { GapSlice } from "../store/plans/gaps.ts";

export interface WatermarkDeps {
  hints: HarvestHints;
  metrics: HarvestMetrics;
}

/** `slice` is locked, with the last run of its own. */
export async function advanceOver(
  { hints, metrics }: WatermarkDeps,
  tx: Tx,
  { planId, sliceId }: { planId: string; sliceId: string },
  slice: GapSlice,
): Promise<void> {
  const { window, window_from, task_id, run_id } = slice;
  if (!window || !window_from) return;
  if (task_id === null) throw new Error(`slice ${sliceId} has ended, and never had a task`);
  const moved = await advanceCursor(tx, {
    provenance_code: slice.provenance_code,
    operation_code: slice.operation_code,
    cursor_key: window.watermarkKey,
    namespace_scope_code: slice.namespace_scope_code,
    namespace_key: slice.namespace_key,
    endpointId: slice.endpoint_id,
    planMonth: slice.plan_month,
    sliceId,
    generation: slice.generation,
    scheduleInstanceId: slice.schedule_instance_id,
    planId,
    taskId: task_id,
    runId: run_id,
    exprHash: slice.expr_hash,
    maxWindowMs: window.maxWindowMs,
    observedMax: null,
  });
  if (!moved) return;
  hints.changed(tx, "cursor", `${slice.provenance_code}/${slice.namespace_key}`);
  const direction = directionOf(slice.operation_code);
  tx.afterCommit(() => metrics.count("patra_ingest_cursor_advance_events_total", { direction }));
}
