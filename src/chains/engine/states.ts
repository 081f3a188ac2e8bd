/**
 * The lives of a run and of a node.
 *
 *     run   PENDING ──admitted──▶ RUNNING ──all nodes ended──▶ SUCCESS | FAILED
 *              │                    │ ▲ ▲                                 │
 *              │                   stop │ └────────retry, complete────────┘
 *              │                    ▼   └──resume, retry, complete──┐
 *              │                 STOPPING ──nothing runs──▶ STOPPED ┤
 *              └──────────stop─────────────────────────────────────┘
 *
 *     node  PENDING ──claimed──▶ RUNNING ──▶ SUCCESS
 *              ▲                  ▲  │ ├────▶ SKIPPED   its `if` said no
 *              │                  │  │ └────▶ FAILED    no attempt is left ──retry──▶ RETRYING
 *              │              claimed└──────▶ RETRYING  the next attempt is due later
 *              └── SKIPPED, because of its parents; STOPPED, because the run was stopped
 *
 * A person may retry what is FAILED or STOPPED and complete what is FAILED, STOPPED or RUNNING. What was skipped or
 * stopped behind such a node becomes PENDING again. A run's status follows from its nodes; SUCCESS alone is final.
 *
 * All moves are made by transition.ts and revive.ts, with one exception: a claim makes a ready node RUNNING in its own
 * statement (store/live.ts), guarded by the lease, since it needs to know nothing else of the run.
 */

export const RUN_STATUSES = ["PENDING", "RUNNING", "SUCCESS", "FAILED", "STOPPING", "STOPPED"] as const;
export type RunStatus = (typeof RUN_STATUSES)[number];

export const NODE_STATUSES = ["PENDING", "RUNNING", "SUCCESS", "FAILED", "RETRYING", "SKIPPED", "STOPPED"] as const;
export type NodeStatus = (typeof NODE_STATUSES)[number];

/** Every legal move of a run. */
export const RUN_NEXT = {
  PENDING: ["RUNNING", "STOPPED"],
  RUNNING: ["SUCCESS", "FAILED", "STOPPING", "STOPPED"], // at once to STOPPED: a revived run whose other nodes stay stopped
  STOPPING: ["STOPPED", "SUCCESS", "FAILED"], // the last node succeeded before it could be stopped; the time was up
  STOPPED: ["RUNNING"],
  FAILED: ["RUNNING"],
  SUCCESS: [],
} as const satisfies Record<RunStatus, readonly RunStatus[]>;

/** Every legal move of a node. */
export const NODE_NEXT = {
  PENDING: ["RUNNING", "SKIPPED", "STOPPED"],
  RUNNING: ["SUCCESS", "FAILED", "RETRYING", "SKIPPED", "STOPPED"],
  RETRYING: ["RUNNING", "SKIPPED", "STOPPED"],
  FAILED: ["RETRYING", "SUCCESS", "PENDING"],
  STOPPED: ["RETRYING", "PENDING", "SUCCESS"],
  SKIPPED: ["PENDING", "STOPPED"],
  SUCCESS: ["PENDING"], // only by a retry of something before it, with everything behind it
} as const satisfies Record<NodeStatus, readonly NodeStatus[]>;

export const ENDED_RUN: ReadonlySet<RunStatus> = new Set(["SUCCESS", "FAILED", "STOPPED"]);
export const ENDED_NODE: ReadonlySet<NodeStatus> = new Set(["SUCCESS", "FAILED", "SKIPPED", "STOPPED"]);
