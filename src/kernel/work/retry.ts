/**
 * How often to try again and how long to wait in between: one arithmetic for loops in memory (`withRetry`) and for due
 * times in the database (`retryDelayMs`).
 */
import { setTimeout as sleepFor } from "node:timers/promises";

export type RetryPolicy = ExponentialPolicy | StepsPolicy;

export interface ExponentialPolicy extends Jitter {
  /** All tries together, the first included. */
  maxAttempts: number;
  /** The wait after the first failure. */
  baseMs: number;
  /** What each further wait is multiplied with; 1 or more. */
  factor: number;
  /** No wait is longer. */
  capMs: number;
}

/** A schedule written out: one wait per failure, and no further try once they are used up. */
interface StepsPolicy extends Jitter {
  stepsMs: readonly number[];
}

interface Jitter {
  /**
   * The share of a wait, 0 to 1, that chance may take away: with 0.2 a wait of 10 s is anything from 8 s to 10 s, with 1
   * anything up to 10 s. It only shortens, so the written wait and the cap stay true, and waits at the cap still spread;
   * shortening and lengthening under a cap would let half of those who wait come back at the same moment.
   */
  jitter: number;
}

/**
 * Milliseconds to wait after failure number `attempt` (counted from 1), or undefined when that was the last try.
 * `random` gives a number from 0 up to, but not including, 1.
 */
export function retryDelayMs(policy: RetryPolicy, attempt: number, random: () => number): number | undefined {
  const fullMs = "stepsMs" in policy ? policy.stepsMs[attempt - 1] : exponentialMs(policy, attempt);
  return fullMs === undefined ? undefined : Math.round(fullMs * (1 - policy.jitter * random()));
}

function exponentialMs(policy: ExponentialPolicy, attempt: number): number | undefined {
  if (attempt >= policy.maxAttempts) return undefined;
  // Kept finite, because a base of 0 times Infinity would not be a number.
  const growth = Math.min(policy.factor ** (attempt - 1), Number.MAX_VALUE);
  return Math.min(policy.capMs, policy.baseMs * growth);
}

export interface RetryOptions {
  policy: RetryPolicy;
  /** Whether this failure may pass by itself. Anything else is thrown at once. */
  retryOn: (error: unknown) => boolean;
  sleep?: (ms: number, signal: AbortSignal | undefined) => Promise<void>;
  random?: () => number;
  /** Ends the waiting and forbids further tries; a try under way is not touched. */
  signal?: AbortSignal;
}

/** Runs `work` until it succeeds, fails for good or the policy is used up; then its last error is thrown. */
export async function withRetry<T>(work: (attempt: number) => Promise<T>, options: RetryOptions): Promise<T> {
  const { policy, retryOn, sleep = systemSleep, random = Math.random, signal } = options;
  for (let attempt = 1; ; attempt += 1) {
    signal?.throwIfAborted();
    try {
      return await work(attempt);
    } catch (error) {
      const delayMs = retryDelayMs(policy, attempt, random);
      if (delayMs === undefined || !retryOn(error)) throw error;
      await sleep(delayMs, signal);
    }
  }
}

async function systemSleep(ms: number, signal: AbortSignal | undefined): Promise<void> {
  await sleepFor(ms, undefined, { signal });
}
