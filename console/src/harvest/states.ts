/** The states of sources, plans, slices, tasks and runs as the six states of the console, in one place. */
import type { State } from "../parts/states/state.ts";
import type {
  CursorEvent,
  Pause,
  PlanStatus,
  RunStatus,
  Slice,
  SliceStatus,
  SourceSummary,
  Stretch,
  TaskStatus,
} from "./api.ts";

export const PLAN_STATES = {
  DRAFT: "waiting",
  SLICING: "running",
  READY: "running",
  PARTIAL: "running",
  COMPLETE: "success",
  FAILED: "failed",
  CANCELLED: "stopped",
} as const satisfies Record<PlanStatus, State>;

export const SLICE_STATES = {
  READY: "waiting",
  COMPLETE: "success",
  INCOMPLETE: "failed",
  SPLIT: "skipped",
  FAILED: "failed",
  CANCELLED: "stopped",
} as const satisfies Record<SliceStatus, State>;

export const TASK_STATES = {
  QUEUED: "waiting",
  EXECUTING: "running",
  SUCCEEDED: "success",
  PARTIAL: "skipped",
  FAILED: "failed",
  CANCELLED: "stopped",
} as const satisfies Record<TaskStatus, State>;

/** A run that ended in part is continued by another one. */
export const RUN_STATES = {
  RUNNING: "running",
  SUCCEEDED: "success",
  PARTIAL: "waiting",
  FAILED: "failed",
  CANCELLED: "stopped",
} as const satisfies Record<RunStatus, State>;

export const STRETCH_STATES = {
  complete: "success",
  accepted: "skipped",
  open: "running",
  gap: "failed",
  none: "waiting",
} as const satisfies Record<Stretch["kind"], State>;

export const EVENT_STATES = {
  advance: "success",
  rewind: "stopped",
  gap: "failed",
  accepted: "skipped",
} as const satisfies Record<CursorEvent["kind"], State>;

/** A slice with committed pages is shown as running, one with an accepted gap as skipped. */
export function sliceState({ status, batches, accepted }: Pick<Slice, "status" | "batches" | "accepted">): State {
  if (status === "READY" && batches > 0) return "running";
  return accepted === null ? SLICE_STATES[status] : "skipped";
}

/** The pause shown for the whole source: a pause of all of it, or an automatic one after access was denied. */
export function activePauseOf(pauses: readonly Pause[] | undefined, source: string): Pause | undefined {
  const own = pauses?.filter((pause) => pause.source === source);
  return (
    own?.find(({ endpoint, operation }) => endpoint === null && operation === null) ??
    own?.find(({ automatic }) => automatic)
  );
}

/** The lag of a source grows and what it waits for passes by time alone, also while nothing runs that would say so. */
export const SUMMARY_PACE = { atMostEveryMs: 2_000, atLeastEveryMs: 30_000 } as const;

export type Health = "failing" | "missing" | "waiting" | "harvesting" | "behind" | "unscheduled" | "upToDate" | "never";

/** Open plans first, then problems that need attention. */
export function healthOf({ lastPlan, missingWindows, waiting, openPlans, watermark, nextAt }: SourceSummary): Health {
  const isBehind = watermark === null || watermark.lagSeconds > 0;
  if (openPlans > 0) return waiting === null ? "harvesting" : "waiting";
  if (missingWindows > 0) return "missing";
  if (lastPlan === null) return "never";
  // A failed plan does not matter once its gaps were harvested or accepted.
  if (lastPlan.status === "FAILED" && isBehind) return "failing";
  if (watermark === null || !isBehind) return "upToDate";
  // Without a schedule nothing is overdue.
  return nextAt === null ? "unscheduled" : "behind";
}

export const HEALTH_STATES = {
  failing: "failed",
  missing: "failed",
  waiting: "waiting",
  harvesting: "running",
  behind: "waiting",
  unscheduled: "skipped",
  upToDate: "success",
  never: "skipped",
} as const satisfies Record<Health, State>;

/** The reason shown in the row of a source: that of the last plan, or of the wait. */
export function reasonOf(summary: SourceSummary): string | null {
  const { lastPlan, waiting } = summary;
  const health = healthOf(summary);
  if (health === "waiting") return waiting?.reason ?? null;
  return health === "failing" || health === "missing" ? (lastPlan?.reason ?? null) : null;
}
