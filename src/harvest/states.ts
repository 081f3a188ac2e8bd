/**
 * The lives of plans, slices, tasks and runs. Codes are the seed's.
 *
 *     plan    DRAFT -> SLICING -> READY -> COMPLETE          every slice is COMPLETE
 *                         |  ^       `---> FAILED            no slice is open, and one is FAILED or INCOMPLETE
 *                         v  |
 *                       PARTIAL                              too many tasks are queued: the rest is sliced later. READY if that
 *                                                            cannot be done, and then FAILED
 *             any open state -> CANCELLED
 *
 *     slice   READY -> COMPLETE                              the end was seen and the counts agree
 *               |----> INCOMPLETE                            more than the source answers for one query, or the counts differ
 *               |----> SPLIT                                 its children take its window
 *               |----> FAILED
 *               `----> CANCELLED
 *
 *     task    QUEUED -> EXECUTING -> SUCCEEDED, FAILED, PARTIAL
 *               ^           |                                later, after a rate limit, a quota, a budget or a lost process
 *               `-----------'                                CANCELLED from either
 *
 *     run     RUNNING -> SUCCEEDED, FAILED, PARTIAL, CANCELLED
 *
 * Only the holder of a task's fence moves the task, its run and its slice out of EXECUTING, RUNNING and READY. A slice that is
 * INCOMPLETE or FAILED, or was cancelled without its plan, stays a gap: the watermark does not pass it until another plan completes its
 * window, or a person accepts it.
 */
export const PLAN_NEXT = {
  DRAFT: ["SLICING", "CANCELLED"],
  SLICING: ["READY", "PARTIAL", "CANCELLED"],
  PARTIAL: ["SLICING", "READY", "CANCELLED"],
  READY: ["COMPLETE", "FAILED", "CANCELLED"],
  COMPLETE: [],
  FAILED: [],
  CANCELLED: [],
} as const satisfies Record<PlanState, readonly PlanState[]>;
export type PlanState = "DRAFT" | "SLICING" | "READY" | "PARTIAL" | "FAILED" | "COMPLETE" | "CANCELLED";

export const SLICE_NEXT = {
  READY: ["COMPLETE", "INCOMPLETE", "SPLIT", "FAILED", "CANCELLED"],
  COMPLETE: [],
  INCOMPLETE: [],
  SPLIT: [],
  FAILED: [],
  CANCELLED: [],
} as const satisfies Record<SliceState, readonly SliceState[]>;
export type SliceState = "READY" | "FAILED" | "COMPLETE" | "INCOMPLETE" | "SPLIT" | "CANCELLED";

export const TASK_NEXT = {
  QUEUED: ["EXECUTING", "CANCELLED"],
  EXECUTING: ["QUEUED", "SUCCEEDED", "FAILED", "PARTIAL", "CANCELLED"],
  SUCCEEDED: [],
  FAILED: [],
  PARTIAL: [],
  CANCELLED: [],
} as const satisfies Record<TaskState, readonly TaskState[]>;
export type TaskState = "QUEUED" | "EXECUTING" | "SUCCEEDED" | "FAILED" | "PARTIAL" | "CANCELLED";

export type RunState = "RUNNING" | "SUCCEEDED" | "FAILED" | "PARTIAL" | "CANCELLED";
