/** What the fields of the overview can be. The page takes their types from here, so this file imports nothing. */

export const NEED_STATES = ["failed", "stuck", "late", "disabled", "asking"] as const;

/**
 * What something waits for: a table; a permit of a rate gate; room in a pool, or below a limit of its own; a free slot of a worker,
 * or a process that has the role at all; its next try; the end of a quiet period; a person who has paused it; a receiver that asked
 * to wait; its tenant; somebody to claim it.
 */
export const CAUSES = [
  "table",
  "gate",
  "pool",
  "limit",
  "slot",
  "process",
  "retry",
  "quiet",
  "paused",
  "receiver",
  "tenant",
  "claim",
] as const;

export const SOURCE_STATES = ["ok", "idle", "throttled", "slow", "failing"] as const;

/** Whatever waits is counted up to this limit. */
export const COUNTED_MAX = 10_000;
