/** When a node may run: the rules of `runWhen`, as a function of what has become of its parents. */
import type { RunWhen } from "../definitions/dag.ts";

export interface ParentCounts {
  /** Not ended yet; tables that have not arrived count too. */
  waiting: number;
  /** Ended FAILED. */
  failed: number;
  skipped: number;
}

export type Verdict = "wait" | "run" | "skip";

/**
 * A rule decides as soon as nothing can change its mind: `all_success` skips at the first parent that failed or was
 * skipped, `one_failed` runs at the first that failed, and neither waits for the rest.
 */
export function judge(rule: RunWhen, { waiting, failed, skipped }: ParentCounts): Verdict {
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
