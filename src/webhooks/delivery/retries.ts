/** When a delivery is tried again: after 1 s, 2 s, 4 s and so on, unless the receiver asks for more time. */
import { type ExponentialPolicy, retryDelayMs } from "../../kernel/work/retry.ts";

export const RETRY_NUM_MAX = 20;
/** The waits add up to 255 s: a receiver that is restarted or deployed loses nothing. */
export const RETRY_NUM_DEFAULT = 8;
/** The longest wait, whatever `Retry-After` says. */
export const WAIT_MAX_MS = 3_600_000;

/** Milliseconds to wait after this many failures, or undefined when no retry is left. No jitter: the waits are documented. */
export function nextTryMs(retryNum: number, failures: number, retryAfterMs = 0): number | undefined {
  const policy: ExponentialPolicy = {
    maxAttempts: retryNum + 1,
    baseMs: 1_000,
    factor: 2,
    capMs: WAIT_MAX_MS,
    jitter: 0,
  };
  const delayMs = retryDelayMs(policy, failures, () => 0);
  return delayMs === undefined ? undefined : Math.max(delayMs, retryAfterMs);
}
