/**
 * The states of an instance, which is a model for one opTime, and of its runs. The first table that arrives creates it.
 *
 *                  ┌──────────── a table is missing ◀───────────┐
 *                  ▼                                            │
 *     idle ──▶ waiting ──▶ quiet ──▶ ready ──claim──▶ running ──┴──▶ idle
 *                 └──────────┴────▶ asking ──:run──▶ ready  │ ▲ │
 *                                                           │ │ └─ failed ─▶ retrying ── the back-off is over ─▶ ready
 *                                                           ▼ │ claim
 *                                         its chain runs parked ──▶ returned
 *
 * - `waiting`: tables that it needs have not arrived.
 * - `quiet`: all have arrived, but one so recently that it may arrive again.
 * - `asking`: it has succeeded, something newer has arrived, and a person must start the rerun.
 * - `ready`: to be claimed by a worker.
 * - `running`: leased. An arrival sets `again`, and the instance is considered again when the run ends.
 * - `parked`: the run of its chain does the work, and no slot is held. When that run ends, the instance is `returned` in the
 *   same transaction. If it failed and is retried, resumed or completed by hand, the instance is parked again: the model's
 *   run continues.
 * - `returned`: the run of its chain has ended; a worker claims the instance to store the result.
 * - `retrying`: an attempt has failed and the model's `retry` allows another one, which is due later. The run has not ended: the next
 *   attempt has the same generation. An arrival, an edit or a person starts it at once, with all attempts again.
 * - `idle`: nothing to do. It has used everything, its last run failed, or its rerun policy is `ignore`.
 */
const INSTANCE_NEXT = {
  idle: ["waiting", "quiet", "asking", "ready", "parked", "returned"],
  waiting: ["idle", "quiet", "asking", "ready", "parked", "returned"],
  quiet: ["idle", "waiting", "asking", "ready", "parked", "returned"],
  asking: ["idle", "waiting", "quiet", "ready", "parked", "returned"],
  ready: ["running", "idle", "waiting", "quiet", "asking"], // not to `running`: an arrival was retracted
  running: ["idle", "ready", "parked", "returned", "retrying"],
  parked: ["returned"],
  returned: ["running"],
  retrying: ["idle", "waiting", "ready", "parked", "returned"],
} as const satisfies Record<InstanceState, readonly InstanceState[]>;
export const INSTANCE_STATES = [
  "idle",
  "waiting",
  "quiet",
  "asking",
  "ready",
  "running",
  "parked",
  "returned",
  "retrying",
] as const;
export type InstanceState = (typeof INSTANCE_STATES)[number];

/** Whether a run of it is under way: it has started and not ended. */
export function isUnderWay(state: InstanceState): state is "running" | "parked" | "returned" {
  return state === "running" || state === "parked" || state === "returned";
}

/** Whether its run has not ended: it is under way, or is tried again later. */
export function isOpen(state: InstanceState): boolean {
  return isUnderWay(state) || state === "retrying";
}

/** A decision that breaks this table is a bug. Claims and requests are guarded by their statements. */
export function assertMove(from: InstanceState, to: InstanceState): void {
  const legal: readonly InstanceState[] = INSTANCE_NEXT[from];
  if (!legal.includes(to)) throw new Error(`an instance cannot move from ${from} to ${to}`);
}

/** An attempt of a run starts as RUNNING and ends once, or again after its FAILED chain was continued. */
export const TASK_STATUSES = ["RUNNING", "SUCCESS", "FAILED"] as const;
export type TaskStatus = (typeof TASK_STATUSES)[number];

export const MODEL_STATES = { unpublished: 0, published: 1 } as const;

/** What happens when a table arrives again after a success: it runs, it needs approval, or nothing. */
export const RERUN_POLICIES = ["auto", "ask", "ignore"] as const;
export type RerunPolicy = (typeof RERUN_POLICIES)[number];

/** What started a run. */
export type Trigger = "arrival" | "deadline" | "run" | "retry" | "edit" | "backfill";
