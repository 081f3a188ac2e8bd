/** When a node may run: the rules of `runWhen` as a function of how its parents ended. */
import type { RunWhen } from "../definitions/dag.ts";

export interface ParentCounts {
  /** Parents that have not ended, and tables that have not arrived. */
  waiting: number;
  /** Ended FAILED. */
  failed: number;
  skipped: number;
}

export type Decision = "wait" | "run" | "skip";

/**
 * Decides as soon as the remaining parents cannot change the result: `all_success` skips at the first parent that failed or
 * was skipped, `one_failed` runs at the first that failed. Neither waits for the rest.
 */
export function decide(rule: RunWhen, { waiting, failed, skipped }: ParentCounts): Decision {
  switch (rule) {
    case "all_success":
      if (failed + skipped > 0) return "skip";
      return waiting === 0 ? "run" : "wait";
    case "all_done":
      return waiting === 0 ? "run" : "wait";
    case "one_failed":
      if (failed > 0) return "run";
      return waiting === 0 ? "skip" : "wait";
  }
}
