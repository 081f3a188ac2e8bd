/** Computes the next state and due time of a task from its outcome. */
import { MINUTE_MS } from "../../kernel/time/units.ts";
import { type RetryPolicy, retryDelayMs } from "../../kernel/work/retry.ts";
import type { TaskResult } from "./store/results.ts";
import type { ClaimedTask } from "./store/tasks.ts";
import type { Outcome } from "./work.ts";

/** No jitter: what failed together comes again together, as one batch. */
const POLICY: RetryPolicy = { stepsMs: [1, 5, 15, 60, 360].map((minutes) => minutes * MINUTE_MS), jitter: 0 };
/** A service that fails is asked again after this time, with one batch, unless it says when. */
export const HOLD_MS = MINUTE_MS;

const OUTDATED = "The asset is gone or has other content by now.";
const WITHDRAWN = "The tenant has another model by now.";

export function resultOf(task: ClaimedTask, outcome: Outcome | "released", claimToken: string): TaskResult {
  const { id, due } = task;
  const base = { id, claim_token: claimToken, due, delay_seconds: 0, retries: 0, outdated: false } as const;
  switch (outcome) {
    case "done":
      return { ...base, status: "SUCCEEDED", attempt_status: "SUCCEEDED", error: null, error_type: null };
    case "outdated":
      return {
        ...base,
        status: "SUCCEEDED",
        outdated: true,
        attempt_status: "CANCELED",
        error: OUTDATED,
        error_type: "OUTDATED",
      };
    case "withdrawn":
      return { ...base, status: "CANCELED", attempt_status: "CANCELED", error: WITHDRAWN, error_type: "WITHDRAWN" };
    case "released":
      return { ...base, status: "PENDING", attempt_status: "CANCELED", error: null, error_type: "RELEASED" };
    default: {
      const failed = {
        ...base,
        attempt_status: "FAILED",
        error: outcome.message,
        error_type: outcome.failure,
      } as const;
      // To wait one's turn is no failure of the task: it uses up no retry.
      if (outcome.failure === "RATE_LIMITED") {
        return { ...failed, status: "FAILED", delay_seconds: (outcome.retryAfterMs || HOLD_MS) / 1_000 };
      }
      const delayMs =
        task.retry_count < task.max_retry ? retryDelayMs(POLICY, task.retry_count + 1, () => 0) : undefined;
      if (delayMs === undefined) return { ...failed, status: "DEAD" };
      return {
        ...failed,
        status: "FAILED",
        retries: 1,
        delay_seconds: Math.max(delayMs, outcome.retryAfterMs) / 1_000,
      };
    }
  }
}
