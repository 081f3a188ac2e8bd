/** The states of tenants, events, runs and tasks as the six states of the console, in one place. */
import type { State } from "../parts/states/state.ts";
import type { AttemptStatus, EventState, TaskStatus, TenantState } from "./api.ts";

export const TENANT_STATES = { NEW: "waiting", SYNCING: "running", READY: "success" } as const satisfies Record<
  TenantState,
  State
>;

export const EVENT_STATES = {
  APPLIED: "success",
  BUFFERED: "waiting",
  SKIPPED: "skipped",
  DEAD: "failed",
} as const satisfies Record<EventState, State>;

export const TASK_STATES = {
  PENDING: "waiting",
  RUNNING: "running",
  SUCCEEDED: "success",
  // It is tried again; what is not is DEAD.
  FAILED: "waiting",
  DEAD: "failed",
  CANCELED: "stopped",
} as const satisfies Record<TaskStatus, State>;

/** Of attempts and batches: what failed has failed, while its task may be tried again. */
export const ATTEMPT_STATES = {
  RUNNING: "running",
  SUCCEEDED: "success",
  FAILED: "failed",
  CANCELED: "stopped",
} as const satisfies Record<AttemptStatus, State>;

const RUN_STATES: Readonly<Record<string, State>> = {
  COMPLETE: "success",
  FAIL: "failed",
  ABORT: "stopped",
  START: "running",
  RUNNING: "running",
};
/** What the producer says of the run. */
export function runState(eventType: string | null): State {
  return RUN_STATES[eventType ?? ""] ?? "skipped";
}
