/**
 * How the run of a slice is written: run, slice, task, watermark, landing and plan in one transaction, under the fence of the
 * task. If the fence is lost, nothing is written.
 */
import type { Db, Tx } from "../../kernel/data/db.ts";
import type { Bodies } from "../bodies/bodies.ts";
import type { HarvestMetrics } from "../catalogue.ts";
import { accessGranted, pauseRefused, type RefusalDeps } from "../control/refusals.ts";
import type { Landing } from "../landing/landing.ts";
import type { Settle } from "../plan/settle.ts";
import { taskKey } from "../plan/slices.ts";
import { periodAt } from "../plan/window.ts";
import type { CountedPart } from "../slice/divide.ts";
import { type SliceBounds, sliceOf } from "../spec/hashes.ts";
import { advanceCursor, directionOf } from "../store/cursors/backfill-cursors.ts";
import { setEstimate } from "../store/plans/estimates.ts";
import { insertParts, lockRoots, type NewPart, waitForParts } from "../store/plans/parts.ts";
import { lockTasksOf } from "../store/plans/plan-ends.ts";
import { endSlice, insertChildren, markClean } from "../store/plans/slices.ts";
import { endRun, type RunEnd, type TaskContext, taskLease } from "../store/queue/tasks.ts";
import { clearIds } from "../store/records/id-items.ts";
import { advanceChecked } from "../store/records/updates.ts";
import { TASKS_TOPIC } from "../topics.ts";
import type { PreparedTask, SliceEnd } from "./task.ts";
import type { Walk } from "./walk.ts";

export interface FinishDeps extends RefusalDeps {
  db: Db;
  bodies: Pick<Bodies, "prepare">;
  landing: Pick<Landing, "want" | "wantEnded">;
  settle: Settle;
  metrics: HarvestMetrics;
}

export interface Finished {
  walk: Walk;
  end: SliceEnd;
}

const RUN_STATES = {
  complete: "SUCCEEDED",
  incomplete: "PARTIAL",
  failed: "FAILED",
  split: "PARTIAL",
  parts: "PARTIAL",
  later: "PARTIAL",
} as const satisfies Record<SliceEnd["kind"], RunEnd["state"]>;

export async function finishSlice(deps: FinishDeps, { walk, end: ended }: Finished): Promise<void> {
  const { task } = walk;
  const { context } = task;
  const slice = { sliceId: context.slice_id, generation: walk.generation };
  const failures = await walk.failures.prepare(deps.bodies, task.source.list.spec.bodies !== "none");
  await deps.db.tx(async (tx) => {
    if (ended.kind === "split" || ended.kind === "parts") await lockTasksOf(tx, context.plan_id);
    const [held] = await taskLease.hold(tx, [task]);
    if (!held) return;
    const end = await withPause(tx, deps, walk, ended);
    if (context.root_slice_id !== null) await lockRoots(tx, [context.root_slice_id]);
    await failures.commitIn(tx, context.run_id);
    await endRun(tx, {
      runId: context.run_id,
      state: RUN_STATES[end.kind],
      stats: walk.stats,
      error: "reason" in end ? end.reason : null,
      checkpoint: end.kind === "later" ? walk.position : null,
    });
    switch (end.kind) {
      case "complete":
        await complete(deps, tx, walk, slice);
        break;
      case "incomplete":
        await endSlice(tx, slice, "INCOMPLETE", end.reason);
        await land(deps, tx, walk);
        await taskLease.finish(tx, "partial", [{ ...task, error: end.reason }]);
        if (context.part === null) {
          tx.afterCommit(() => deps.log.warn(gapFields(walk, end.reason), "a window is not complete"));
        }
        break;
      case "failed":
        await endSlice(tx, slice, "FAILED", end.reason);
        await land(deps, tx, walk);
        await taskLease.finish(tx, "failed", [{ ...task, error: end.reason }]);
        break;
      case "split":
        if (end.total !== undefined) await setEstimate(tx, slice, { records: end.total, basis: "TOTAL" });
        await endSlice(tx, slice, "SPLIT", end.reason);
        await land(deps, tx, walk); // Its parts may change nothing more, or be cancelled.
        await split(tx, walk, end.at);
        await taskLease.finish(tx, "partial", [{ ...task, error: end.reason }]);
        tx.afterCommit(() => deps.wake.hint(TASKS_TOPIC));
        break;
      case "parts":
        if (context.root_slice_id === null) await waitForParts(tx, slice, end);
        else await endSlice(tx, slice, "SPLIT", end.reason);
        await insertParts(tx, idsOf(context), partsOf(walk, end.parts));
        await taskLease.finish(tx, "partial", [{ ...task, error: end.reason }]);
        tx.afterCommit(() => deps.wake.hint(TASKS_TOPIC));
        break;
      case "later":
        if (end.isClean && walk.batchNo > 0) await markClean(tx, slice);
        await taskLease.finish(tx, "later", [
          {
            ...task,
            delay_seconds: end.delayMs / 1_000,
            wait_reason: end.reason,
            wait_gate: end.gate ?? "",
            failed_tries: end.failedTries ?? (walk.stats.pages > 0 ? 0 : context.failed_tries),
          },
        ]);
        tx.afterCommit(() => deps.wake.hint(TASKS_TOPIC));
        deps.hints.changed(tx, "plan", context.plan_id);
        return;
    }
    await clearIds(tx, context.slice_id);
    const plans = await deps.settle(tx, [context.plan_id]);
    // Backfills and updates of the source waited for it, in other processes too.
    if (plans.length > 0 && context.operation_code === "HARVEST") tx.afterCommit(() => deps.wake.hint(TASKS_TOPIC));
  });
}

/** The first slice whose access is refused fails and pauses the endpoint. The others wait for the end of that pause. */
async function withPause(tx: Tx, deps: FinishDeps, { task: { context } }: Walk, end: SliceEnd): Promise<SliceEnd> {
  if (end.kind !== "failed" || !end.isRefused) return end;
  const { reason } = end;
  const { provenance_code: source, endpoint_name: endpoint, operation_code: operation, plan_id: planId } = context;
  const isPaused = await pauseRefused(tx, deps, { source, endpoint, operation, reason, planId });
  return isPaused ? { kind: "later", isClean: false, delayMs: 0, reason } : end;
}

/** Failed slices are told with their plan: when a source is down, they are many. */
function gapFields({ task: { context } }: Walk, reason: string) {
  const {
    plan_id: planId,
    slice_id: sliceId,
    provenance_code: source,
    namespace_key,
    window_from,
    window_to,
  } = context;
  return { source, endpoint: namespace_key, from: window_from, to: window_to, reason, planId, sliceId };
}

async function complete(
  deps: FinishDeps,
  tx: Tx,
  walk: Walk,
  slice: { sliceId: string; generation: number },
): Promise<void> {
  const { task } = walk;
  const { context, source } = task;
  const { window } = source.list.spec;
  const ended = await endSlice(tx, slice, "COMPLETE", null);
  await taskLease.finish(tx, "succeeded", [task]);
  if (walk.isRefused) {
    await accessGranted(tx, deps, { source: context.provenance_code, endpoint: context.endpoint_name });
  }
  const isCheck = context.plan_strategy === "RANGE";
  const isWindow = window !== undefined && context.window_from !== null && context.root_slice_id === null;
  if (!ended || !(isCheck || isWindow)) return;
  const advance = {
    provenance_code: context.provenance_code,
    operation_code: context.operation_code,
    namespace_scope_code: context.namespace_scope_code,
    namespace_key: context.namespace_key,
    endpointId: context.endpoint_id,
    planMonth: context.plan_month,
    ...slice,
    scheduleInstanceId: context.schedule_instance_id,
    planId: context.plan_id,
    taskId: context.task_id,
    runId: context.run_id,
    exprHash: context.expr_hash,
    maxWindowMs: window?.maxWindowMs ?? 0,
    observedMax: walk.latest?.toISOString() ?? null,
  };
  const moved = isCheck
    ? await advanceChecked(tx, advance)
    : await advanceCursor(tx, { ...advance, cursor_key: window?.watermarkKey ?? "" });
  if (moved) deps.hints.changed(tx, "cursor", `${context.provenance_code}/${context.namespace_key}`);
  const direction = directionOf(context.operation_code);
  if (moved) tx.afterCommit(() => deps.metrics.count("patra_ingest_cursor_advance_events_total", { direction }));
  await land(deps, tx, walk);
}

async function land(deps: FinishDeps, tx: Tx, { task: { context, source } }: Walk): Promise<void> {
  const { window, landing } = source.list.spec;
  // A part lands with its whole.
  if (!window || !landing || !context.window_from || context.root_slice_id !== null) return;
  const period = periodAt(window.timezone, landing.grain, context.window_from);
  const wanted = {
    endpoint_id: context.endpoint_id,
    op_time: period.opTime,
    table_name: landing.table,
    window_from: period.from,
    window_to: period.to,
    plan_id: context.plan_id,
  };
  await deps.landing.want(tx, wanted, landing.engine);
}

async function split(tx: Tx, { task }: Walk, at: Date): Promise<void> {
  const { context } = task;
  const { window_from: from, window_to: to } = context;
  if (!from || !to) throw new Error(`slice ${context.slice_id} has no window to split`);
  const children = [
    { from, to: at },
    { from: at, to },
  ].map((time) => ({ window_from: time.from, window_to: time.to, ...rowOf(task, { dimension: "TIME", time }) }));
  await insertChildren(tx, idsOf(context), children);
}

function partsOf({ task }: Walk, parts: readonly CountedPart[]): NewPart[] {
  const { window_from: from, window_to: to } = task.context;
  const time = from && to && { from, to };
  return parts.map(({ part, total }) => ({
    part,
    expected: total,
    ...rowOf(task, { dimension: "PART", time, part }),
  }));
}

/** A slice of these bounds and its task. */
function rowOf({ context, source: { snapshot } }: PreparedTask, bounds: SliceBounds) {
  const { sliceSpec, sliceSignatureHash, exprHash, exprSnapshot } = sliceOf(
    { snapshot, exprProtoHash: context.expr_proto_hash },
    bounds,
  );
  const scheduleInstanceId = context.schedule_instance_id;
  return {
    slice_spec: sliceSpec,
    slice_signature_hash: sliceSignatureHash,
    expr_hash: exprHash,
    expr_snapshot: exprSnapshot,
    idempotent_key: taskKey({ snapshot, scheduleInstanceId }, { sliceSignatureHash, exprHash }),
  };
}

function idsOf({ plan_id: planId, slice_id: sliceId, task_id: taskId }: TaskContext) {
  return { planId, sliceId, taskId };
}
