/**
 * The states of a run and of a node.
 *
 *     run   PENDING ──admitted──▶ RUNNING ──all nodes ended──▶ SUCCESS | FAILED
 *              │                    │ ▲ ▲                                 │
 *              │                   stop │ └────────retry, complete────────┘
 *              │                    ▼   └──resume, retry, complete──┐
 *              │                 STOPPING ──nothing runs──▶ STOPPED ┤
 *              └──────────stop─────────────────────────────────────┘
 *
 *     node  PENDING ──claimed──▶ RUNNING ──▶ SUCCESS
 *              ▲                  ▲  │ ├────▶ SKIPPED   its `if` is false
 *              │                  │  │ └────▶ FAILED    no attempts left ──retry──▶ RETRYING
 *              │              claimed└──────▶ RETRYING  the next attempt is due later
 *              └── SKIPPED, because of its parents; STOPPED, because the run was stopped
 *
 * A person may retry FAILED and STOPPED nodes, end the back-off of a RETRYING one, and complete FAILED, STOPPED, RUNNING and
 * RETRYING ones. The skipped and stopped descendants of such a node become PENDING again. A run's status follows from its nodes; only SUCCESS is final.
 *
 * transition.ts and revive.ts make all moves, with one exception: a claim makes a ready node RUNNING in its own statement
 * (store/live.ts), guarded by the lease, since it depends on nothing else of the run.
 */

export const RUN_STATUSES = ["PENDING", "RUNNING", "SUCCESS", "FAILED", "STOPPING", "STOPPED"] as const;
export type RunStatus = (typeof RUN_STATUSES)[number];

export const NODE_STATUSES = ["PENDING", "RUNNING", "SUCCESS", "FAILED", "RETRYING", "SKIPPED", "STOPPED"] as const;
export type NodeStatus = (typeof NODE_STATUSES)[number];

/** Every legal move of a run. */
export const RUN_NEXT = {
  PENDING: ["RUNNING", "STOPPED"],
  RUNNING: ["SUCCESS", "FAILED", "STOPPING", "STOPPED"], // to STOPPED directly: a revived run whose other nodes stay STOPPED
  STOPPING: ["STOPPED", "SUCCESS", "FAILED"], // the last node succeeded before it stopped; the run timed out
  STOPPED: ["RUNNING"],
  FAILED: ["RUNNING"],
  SUCCESS: [],
} as const satisfies Record<RunStatus, readonly RunStatus[]>;

/** Every legal move of a node. */
export const NODE_NEXT = {
  PENDING: ["RUNNING", "SKIPPED", "STOPPED"],
  RUNNING: ["SUCCESS", "FAILED", "RETRYING", "SKIPPED", "STOPPED"],
  RETRYING: ["RUNNING", "SKIPPED", "STOPPED", "SUCCESS"], // to SUCCESS: completed by hand
  FAILED: ["RETRYING", "SUCCESS", "PENDING"],
  STOPPED: ["RETRYING", "PENDING", "SUCCESS"],
  SKIPPED: ["PENDING", "STOPPED"],
  SUCCESS: ["PENDING"], // only by a retry of an ancestor with `downstream`
} as const satisfies Record<NodeStatus, readonly NodeStatus[]>;

export const ENDED_RUN: ReadonlySet<RunStatus> = new Set(["SUCCESS", "FAILED", "STOPPED"]);
export const ENDED_NODE: ReadonlySet<NodeStatus> = new Set(["SUCCESS", "FAILED", "SKIPPED", "STOPPED"]);
