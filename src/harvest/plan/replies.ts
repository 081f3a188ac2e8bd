/** Rows of plans and what is below them, as the API answers them. */
import { capOf, type Estimate } from "../slice/estimate.ts";
import type { Operation } from "../spec/snapshot.ts";
import type { CursorEventRow } from "../store/cursors/cursor-reads.ts";
import type {
  DividedSlice,
  FoundPlan,
  LandingRow,
  PlanRow,
  SliceRow,
  SliceSums,
  Wait,
} from "../store/plans/plan-reads.ts";
import type { ListedSchedule, ScheduleRow } from "../store/plans/schedules.ts";
import type { BatchRow, PlanRunRow, RunRow, TaskRow } from "../store/queue/task-reads.ts";
import { divisionOf, ladderOf } from "./division.ts";
import { lagSecondsOf, type MeasuredCursor, type PlanDetail, type SliceDetail } from "./reads.ts";
import type { Draft, PlanMade } from "./request.ts";
import { boundsOf } from "./window.ts";

export function madeReply(plan: PlanMade) {
  const { scheduleInstanceId: _, warnings, ...reply } = plan;
  return { ...reply, warnings: [...warnings] };
}

export function draftReply(draft: Draft) {
  const { windows, sizes, snapshot, warnings, ...reply } = draft;
  const { spec } = snapshot;
  const { window } = spec;
  return {
    ...reply,
    planId: null,
    status: "DRAFT" as const,
    unslicedFrom: null,
    warnings: [...warnings],
    windows: windows.flatMap((piece) => {
      if (!window || !piece || !("from" in piece)) return [];
      const { from, to } = piece;
      const estimate = sizes.of(piece) ?? null;
      const division = divisionOf(spec, piece, estimate ?? undefined, sizes.earlier(piece)) ?? null;
      return [{ from, to, bounds: boundsOf(window, from, to), estimate, division }];
    }),
    parts: windows.flatMap((piece) => (piece && "part" in piece ? [piece.part] : [])),
    slicedBy: spec.slicing?.by ?? (window ? ("TIME" as const) : null),
    limits: { cap: capOf(spec)?.records ?? null, slice: window?.sliceRecords ?? null },
    ladder: ladderOf(spec),
  };
}

export function planReply(row: PlanRow) {
  return {
    planId: row.plan_id,
    status: row.status_code,
    source: row.provenance_code,
    endpoint: row.endpoint_name,
    operation: row.operation_code as Operation,
    namespace: row.namespace_key,
    window: windowOf(row),
    priority: row.priority,
    plannedAt: row.planned_at,
    createdAt: row.created_at,
    endedAt: row.ended_at,
    paused: row.paused === null ? null : `${row.paused}.`,
    unslicedFrom: row.unsliced_from,
    specFingerprint: row.spec_fingerprint,
    estimate: (row.record_remarks["estimate"] as Estimate | undefined) ?? null,
    remarks: row.record_remarks,
  };
}

export function planDetailReply(detail: PlanDetail) {
  const { plan, slices, tasks, gaps, divided, waits, landings } = detail;
  return {
    ...planReply(plan),
    slices: Object.fromEntries(
      slices.filter(({ slices: count }) => count > 0).map(({ status_code, slices: count }) => [status_code, count]),
    ),
    tasks: Object.fromEntries(tasks.map(({ status_code, tasks: count }) => [status_code, count])),
    reconciliation: reconciliationOf(slices),
    gapWindows: gaps.map(gapReply),
    divided: divided.map(dividedReply),
    waits: [...partialWait(plan), ...waits.map(waitReply)],
    stopped: stoppedReply(detail),
    landing: landingSumsReply(detail),
    landings: landings.map(landingReply),
  };
}

/** Not while runs that had begun before go on. */
function stoppedReply({ plan: { stopped }, tasks }: PlanDetail): string | null {
  const isRunning = tasks.some(({ status_code, tasks: count }) => status_code === "EXECUTING" && count > 0);
  return stopped === null || isRunning ? null : `${stopped}.`;
}

function landingSumsReply({ plan, landingSums, partLandings, hasLake }: PlanDetail) {
  if (plan.landing_table === null) return null;
  const obstacle = obstacleOf(plan, hasLake);
  return {
    engine: plan.landing_engine,
    table: plan.landing_table,
    windows: Object.fromEntries(landingSums.map(({ status_code, windows }) => [status_code, windows])),
    obstacle,
    grain: plan.landing_grain ?? "day",
    partial: obstacle === null ? partLandings : [],
  };
}

function obstacleOf({ namespace_key, endpoint_name, landing_engine }: FoundPlan, hasLake: boolean): string | null {
  if (namespace_key !== endpoint_name) return "Its parameters select a part of the records.";
  return hasLake || landing_engine !== null
    ? null
    : "The server has no lake: set MILLRACE_LAKE_DIR or MILLRACE_DATA_DIR.";
}

/** Records that came more often than once: what was stored, in whichever way, beyond those that are counted as received. */
function repeatedOf(
  stored: Pick<SliceSums, "inserted" | "updated" | "unchanged" | "deleted">,
  received: number,
): number {
  return stored.inserted + stored.updated + stored.unchanged + stored.deleted - received;
}

/**
 * A slice that was split is counted by its children; what it changed before, it has changed. So is what a slice brought before
 * it started again. `repeated` is the difference.
 */
function reconciliationOf(all: readonly SliceSums[]) {
  const whole = all.filter(({ status_code }) => status_code !== "SPLIT");
  const sum = (rows: readonly SliceSums[], name: Exclude<keyof SliceSums, "status_code">) =>
    rows.reduce((total, row) => total + (row[name] ?? 0), 0);
  const isAnnounced = whole.some(({ expected }) => expected !== null);
  const received = sum(whole, "received");
  const stored = {
    inserted: sum(all, "inserted"),
    updated: sum(all, "updated"),
    unchanged: sum(all, "unchanged"),
    deleted: sum(all, "deleted"),
  };
  return {
    expected: isAnnounced ? sum(whole, "expected") : null,
    received,
    repeated: repeatedOf(stored, received),
    ...stored,
    quarantined: sum(whole, "quarantined"),
    missing: sum(whole, "missing"),
    gaps: sum(whole, "gaps"),
    acceptedGaps: sum(whole, "accepted"),
  };
}

function gapReply(row: SliceRow) {
  const { expected, received, quarantined, missing } = row;
  return {
    sliceId: Number(row.slice_id),
    window: windowOf(row),
    status: row.status_code,
    reason: row.reason,
    missing: expected === null ? null : Math.max(0, expected - received - quarantined - missing),
    accepted: acceptedOf(row),
  };
}

function dividedReply(row: DividedSlice) {
  return {
    sliceId: Number(row.slice_id),
    window: windowOf(row),
    status: row.status_code,
    expected: row.expected,
    by: row.dimensions,
    parts: row.parts,
  };
}

function acceptedOf({ accepted_at: at, accepted_by: by, accepted_reason: reason }: SliceRow) {
  return at === null || by === null || reason === null ? null : { at, by, reason };
}

function partialWait({ status_code, operation_code, unsliced_from }: PlanRow) {
  if (status_code !== "PARTIAL") return [];
  const at = unsliced_from?.toISOString() ?? "";
  const rest = operation_code === "BACKFILL" ? `before ${at}` : `from ${at} on`;
  return [{ reason: `The queue is full: the window ${rest} is sliced when it is half empty.`, tasks: 0, until: null }];
}

function waitReply(wait: Wait) {
  const { wait_reason, tasks, until, pause, partition_key, running, concurrency, is_refused, is_due } = wait;
  if (pause !== null) return { reason: `${pause}.`, tasks, until: null };
  if (is_refused && running >= concurrency && (wait_reason === null || is_due)) {
    const reason = `They follow when a task of ${partition_key} is answered: its source refused access before.`;
    return { reason, tasks, until: null };
  }
  return { reason: wait_reason ?? turnReason(wait), tasks, until: wait_reason === null ? null : until };
}

/** Of tasks that are due. */
function turnReason({ partition_key, running, concurrency }: Wait): string {
  if (running < concurrency) return "They wait for a worker.";
  return `They wait for their turn: ${running} tasks of ${partition_key} run, as many as may at once.`;
}

function landingReply(row: LandingRow) {
  return {
    table: row.table_name,
    opTime: row.op_time,
    window: windowOf(row),
    status: row.status_code,
    rows: row.rows,
    error: row.last_error,
    landedAt: row.landed_at,
  };
}

export function sliceReply(row: SliceRow) {
  const { expected, received, inserted, updated, unchanged, deleted, quarantined, missing } = row;
  return {
    sliceId: Number(row.slice_id),
    parentSliceId: row.parent_slice_id === null ? null : Number(row.parent_slice_id),
    rootSliceId: row.root_slice_id === null ? null : Number(row.root_slice_id),
    number: row.slice_no,
    window: windowOf(row),
    part: row.part,
    isParted: row.is_parted,
    status: row.status_code,
    reason: row.reason,
    generation: row.generation,
    batches: row.batches,
    estimate: estimateReply(row),
    expected,
    received,
    repeated: repeatedOf(row, received),
    inserted,
    updated,
    unchanged,
    deleted,
    quarantined,
    missing,
    accepted: acceptedOf(row),
    signature: row.slice_signature_hash,
    createdAt: row.created_at,
    endedAt: row.ended_at,
  };
}

/** What the source announced is better than what was expected of it before. */
function estimateReply({ expected, estimated, estimate_basis: basis, operation_code }: SliceRow): Estimate | null {
  if (operation_code === "UPDATE") return null;
  if (expected !== null) return { records: expected, basis: "TOTAL" };
  return estimated === null || basis === null ? null : { records: estimated, basis };
}

export function taskReply(row: TaskRow) {
  return {
    taskId: Number(row.task_id),
    planId: row.plan_id,
    sliceId: Number(row.slice_id),
    partition: row.partition_key,
    window: windowOf(row),
    status: row.status_code,
    priority: row.priority,
    scheduledAt: row.scheduled_at,
    waitReason: row.wait_reason,
    attempts: row.attempt_count,
    lost: row.lost_count,
    error: row.last_error,
    createdAt: row.created_at,
    startedAt: row.started_at,
    finishedAt: row.finished_at,
  };
}

export function runReply(row: RunRow) {
  return {
    runId: Number(row.run_id),
    attempt: row.attempt_no,
    status: row.status_code,
    window: windowOf(row),
    checkpoint: row.checkpoint,
    stats: row.stats,
    error: row.error,
    startedAt: row.started_at,
    endedAt: row.ended_at,
  };
}

export function sliceDetailReply({ slice, tasks, runs }: SliceDetail) {
  return {
    ...sliceReply(slice),
    tasks: tasks.map((task) => ({
      ...taskReply(task),
      runs: runs.filter(({ task_id }) => task_id === task.task_id).map(runReply),
    })),
  };
}

export function planRunReply(row: PlanRunRow) {
  return {
    runId: Number(row.run_id),
    taskId: Number(row.task_id),
    sliceId: Number(row.slice_id),
    slice: row.slice_no,
    attempt: row.attempt_no,
    status: row.status_code,
    error: row.error,
    startedAt: row.started_at,
    endedAt: row.ended_at,
  };
}

export function batchReply(row: BatchRow) {
  return {
    sliceId: Number(row.slice_id),
    generation: row.generation,
    number: row.batch_no,
    phase: row.phase,
    status: row.status_code,
    pageNo: row.page_no,
    pageSize: row.page_size,
    beforeToken: row.before_token,
    afterToken: row.after_token,
    nextUrl: row.next_url,
    request: row.request,
    response: row.response_digest,
    stats: row.stats,
    credentialVersion: row.credential_version,
    bodyHash: row.body_hash,
    createdAt: row.created_at,
  };
}

export function scheduleReply(row: ScheduleRow) {
  return {
    scheduleId: row.schedule_id,
    source: row.provenance_code,
    name: row.schedule_name,
    endpoint: row.endpoint_name,
    operation: row.operation_code,
    cron: row.cron,
    timeZone: row.time_zone,
    params: row.params,
    priority: row.priority,
    paused: row.paused_at !== null,
    nextAt: row.paused_at === null ? row.next_at : null,
  };
}

export function listedScheduleReply(row: ListedSchedule) {
  const { held, last_at: lastAt, last_remarks: remarks, last_status: status } = row;
  return {
    ...scheduleReply(row),
    held: held === null ? null : `${held}.`,
    lastAt,
    last: remarks && status ? { ...remarks, status } : remarks,
  };
}

export function cursorReply(row: MeasuredCursor) {
  const { closedUntil } = row;
  return {
    source: row.provenance_code,
    operation: row.operation_code as Operation,
    key: row.cursor_key,
    scope: row.namespace_scope_code,
    namespace: row.namespace_key,
    type: row.cursor_type_code,
    value: row.cursor_value,
    observedMax: row.observed_max_value,
    closedUntil,
    acceptedGaps: row.accepted_gaps,
    lagSeconds: lagSecondsOf(row, closedUntil),
    planId: row.plan_id,
    updatedAt: row.updated_at,
  };
}

export function cursorEventReply(row: CursorEventRow) {
  return {
    key: row.cursor_key,
    direction: row.direction_code,
    from: row.prev_value,
    to: row.new_value,
    observedMax: row.observed_max_value,
    planId: row.plan_id,
    sliceId: Number(row.slice_id),
    generation: row.generation,
    taskId: Number(row.task_id),
    runId: row.run_id === null ? null : Number(row.run_id),
    at: row.created_at,
  };
}

function windowOf({ window_from: from, window_to: to }: { window_from: Date | null; window_to: Date | null }) {
  return from && to ? { from, to } : null;
}
