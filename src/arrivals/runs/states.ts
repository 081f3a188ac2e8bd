/**
 * The life of a model for one opTime, and of one of its runs. An instance begins with the first table that arrives for it.
 *
 *                  ┌──────────── a table is missing ◀───────────┐
 *                  ▼                                            │
 *     idle ──▶ waiting ──▶ quiet ──▶ ready ──claim──▶ running ──┴──▶ idle
 *                 └──────────┴────▶ asking ──:run──▶ ready
 *
 * - `waiting`: tables that it needs have not arrived.
 * - `quiet`: all are here, but one of them so lately that it may come again.
 * - `asking`: it has run before, something newer is here, and its owner wants to be asked first.
 * - `ready`: to be claimed by a worker.
 * - `running`: leased. What arrives now sets `again`, and the end of the run decides anew.
 * - `idle`: nothing to do: it has used what there is, or its last run failed, or its owner ignores reruns.
 */
const INSTANCE_NEXT = {
  idle: ["waiting", "quiet", "asking", "ready"],
  waiting: ["idle", "quiet", "asking", "ready"],
  quiet: ["idle", "waiting", "asking", "ready"],
  asking: ["idle", "waiting", "quiet", "ready"],
  ready: ["running", "idle"],
  running: ["idle", "ready"],
} as const satisfies Record<InstanceState, readonly InstanceState[]>;
export const INSTANCE_STATES = ["idle", "waiting", "quiet", "asking", "ready", "running"] as const;
export type InstanceState = (typeof INSTANCE_STATES)[number];

/** A decision that breaks this table is a bug; the statements guard what workers and people do. */
export function assertMove(from: InstanceState, to: InstanceState): void {
  const legal: readonly InstanceState[] = INSTANCE_NEXT[from];
  if (!legal.includes(to)) throw new Error(`a model cannot go from ${from} to ${to}`);
}

/** A run is made RUNNING and ends once. */
export const TASK_STATUSES = ["RUNNING", "SUCCESS", "FAILED"] as const;
export type TaskStatus = (typeof TASK_STATUSES)[number];

export const MODEL_STATES = { unpublished: 0, published: 1 } as const;

/** What an owner wants when a table arrives again after a success: a run, to be asked, or nothing. */
export const RERUN_POLICIES = ["auto", "ask", "ignore"] as const;
export type RerunPolicy = (typeof RERUN_POLICIES)[number];

/** Why a run was begun. */
export type Trigger = "arrival" | "deadline" | "run" | "backfill";
