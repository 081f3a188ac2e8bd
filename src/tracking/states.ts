/**
 * The states of one shard of a file in one stage.
 *
 *     new ──start──▶ started ──done──▶ done
 *      │                │└── its worker was lost, or released it ──▶ new
 *      └─────fail───────┴──fail──▶ failed ──retry──▶ new
 *
 * A stage starts only when the one before it is done, and `done` is final. `start` has exactly one winner. The first
 * stage, event-ingest, belongs to the whole file: registering a file starts it, so it is never `new`, and its `retry`
 * goes back to `started`.
 */

export const STATUSES = ["new", "started", "done", "failed"] as const;
export type Status = (typeof STATUSES)[number];

/** In the order in which a shard goes through them. */
export const STAGES = ["event-ingest", "shard-splitter", "shard-worker", "mysql-sender"] as const;
export type Stage = (typeof STAGES)[number];

/** The stages with a pull queue: all but the first. */
export const QUEUE_STAGES = ["shard-splitter", "shard-worker", "mysql-sender"] as const;
export type QueueStage = (typeof QUEUE_STAGES)[number];

export const TRANSITIONS = ["start", "done", "fail", "retry"] as const;
export type Transition = (typeof TRANSITIONS)[number];

/** The transitions of a whole file in event-ingest. Registering a file starts it. */
export const FILE_TRANSITIONS = ["done", "fail", "retry"] as const;
export type FileTransition = (typeof FILE_TRANSITIONS)[number];

/** Every legal move. */
export const NEXT = {
  new: ["started", "failed"],
  started: ["done", "failed", "new"], // back to `new` only when the worker was lost, or released the item
  failed: ["new"],
  done: [],
} as const satisfies Record<Status, readonly Status[]>;

/** The statuses that a caller's transition may start from, and the one it leads to. */
export const MOVES = {
  start: { from: ["new"], to: "started" },
  done: { from: ["started"], to: "done" },
  fail: { from: ["new", "started"], to: "failed" },
  retry: { from: ["failed"], to: "new" },
} as const satisfies Record<Transition, { from: readonly Status[]; to: Status }>;

export const FILE_MOVES = {
  done: { from: "started", to: "done" },
  fail: { from: "started", to: "failed" },
  retry: { from: "failed", to: "started" },
} as const satisfies Record<FileTransition, { from: Status; to: Status }>;

/**
 * Why a shard is stuck in a stage: it failed; its lease has expired and it was not reclaimed; it was started without a lease
 * long ago. A retry puts it back into its queue.
 */
export const STUCK_REASONS = ["failed", "lease_expired", "started_long"] as const;
export type StuckReason = (typeof STUCK_REASONS)[number];

export function stageBefore(stage: QueueStage): Stage {
  return STAGES[STAGES.indexOf(stage) - 1] as Stage;
}

/** The stage whose queue fills when this one is done. */
export function stageAfter(stage: Stage): QueueStage | undefined {
  return STAGES[STAGES.indexOf(stage) + 1] as QueueStage | undefined;
}
