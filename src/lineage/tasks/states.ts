/**
 * The life of a task.
 *
 *     PENDING ──claimed──▶ RUNNING ──written back, or nothing left to do──▶ SUCCEEDED
 *       ▲ ▲                 │ │ │ ├──failed──▶ FAILED ──claimed when due──▶ RUNNING
 *       │ │                 │ │ │ └──failed, and no retry is left──▶ DEAD
 *       │ │                 │ │ └──the tenant has another model by now──▶ CANCELED
 *       │ └──given back─────┘ └──its worker was lost: as if it had failed
 *       ├──reset by a person── FAILED | DEAD | CANCELED ◀──canceled by a person── PENDING | FAILED | DEAD
 *       └──wanted once more── SUCCEEDED (its content came back), any but PENDING and RUNNING (its model was chosen again)
 *
 * Only the holder of the claim token leaves RUNNING, or whoever finds that the claim has run out; a person never touches
 * what is running. A worker that finds that the asset has other content by now, which has a task of its own, has nothing
 * left to do: such a task is SUCCEEDED, because CANCELED would keep it from running when that content comes back.
 */

export const TASK_STATUSES = ["PENDING", "RUNNING", "SUCCEEDED", "FAILED", "DEAD", "CANCELED"] as const;
export type TaskStatus = (typeof TASK_STATUSES)[number];

export const TASK_TYPES = ["EMBEDDING", "SQL_SUMMARY"] as const;
export type TaskType = (typeof TASK_TYPES)[number];

/** Every legal move. */
export const TASK_NEXT = {
  PENDING: ["RUNNING", "CANCELED"],
  RUNNING: ["SUCCEEDED", "FAILED", "DEAD", "CANCELED", "PENDING"],
  SUCCEEDED: ["PENDING"],
  FAILED: ["RUNNING", "PENDING", "CANCELED"],
  DEAD: ["PENDING", "CANCELED"],
  CANCELED: ["PENDING"],
} as const satisfies Record<TaskStatus, readonly TaskStatus[]>;

/** What a person may set back to PENDING, and what a person may cancel. */
export const RESETTABLE = ["FAILED", "DEAD", "CANCELED"] as const satisfies readonly TaskStatus[];
export const CANCELABLE = ["PENDING", "FAILED", "DEAD"] as const satisfies readonly TaskStatus[];

/** What is wanted once more: by an event that brings content back, and by the choice of a model. */
export const WANTED_BY_EVENT = ["SUCCEEDED"] as const satisfies readonly TaskStatus[];
export const WANTED_BY_MODEL = ["SUCCEEDED", "FAILED", "DEAD", "CANCELED"] as const satisfies readonly TaskStatus[];
