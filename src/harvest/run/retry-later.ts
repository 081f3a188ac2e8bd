/**
 * When a task whose run failed is tried again. A source that is down is waited for: with pauses that grow, for about 6 hours,
 * so that an outage of a night is a delay and no gap. A run that commits a page begins anew.
 */
import { type ExponentialPolicy, retryDelayMs } from "../../kernel/work/retry.ts";
import type { SliceEnd } from "./task.ts";
import type { Walk } from "./walk.ts";

/** Six pauses of 30 s to 16 min, then one every half an hour: 20 tries take 5.6 to 7 hours. */
const RETRY: ExponentialPolicy = { maxAttempts: 20, baseMs: 30_000, factor: 2, capMs: 1_800_000, jitter: 0.2 };

/** After the requests of a run have failed although they could succeed at another time. */
export function whenReachable(walk: Walk, reason: string, random: () => number): SliceEnd {
  const failedTries = failedTriesOf(walk);
  const delayMs = retryDelayMs(RETRY, failedTries, random);
  if (delayMs === undefined) return { kind: "failed", reason: `${reason}; no page came in ${failedTries} tries` };
  const left = `try ${failedTries + 1} of ${RETRY.maxAttempts} follows`;
  return { kind: "later", isClean: true, delayMs, failedTries, reason: `${reason}; ${left}` };
}

/** After an error of ours, such as a full disk or a lost database. It does not end the slice, however long it lasts. */
export function afterError(walk: Walk, reason: string, random: () => number): SliceEnd {
  const failedTries = failedTriesOf(walk);
  const delayMs = retryDelayMs({ ...RETRY, maxAttempts: Number.POSITIVE_INFINITY }, failedTries, random) ?? RETRY.capMs;
  return { kind: "later", isClean: false, delayMs, failedTries, reason };
}

/** With this run, which failed. */
function failedTriesOf({ stats, task }: Walk): number {
  return stats.pages > 0 ? 1 : task.context.failed_tries + 1;
}
