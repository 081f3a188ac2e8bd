/**
 * Retry policies: how often to try again and how long to wait, for loops in memory (`withRetry`) and for due times in the
 * database (`retryDelayMs`).
 */
import { setTimeout as sleepFor } from "node:timers/promises";

export type RetryPolicy = ExponentialPolicy | StepsPolicy;

export interface ExponentialPolicy extends Jitter {
  /** The number of attempts, including the first. */
  maxAttempts: number;
  /** The wait after the first failure. */
  baseMs: number;
  /** The factor of each further wait; 1 or more. */
  factor: number;
  /** No wait is longer. */
  capMs: number;
}

/** A fixed schedule: one wait per failure, and no further attempt after the last. */
interface StepsPolicy extends Jitter {
  stepsMs: readonly number[];
}

interface Jitter {
  /**
   * The largest share of a wait, 0 to 1, that is randomly subtracted: with 0.2 a wait of 10 s is 8 s to 10 s, with 1 it is
   * 0 s to 10 s. It only shortens, so that no wait exceeds the cap and waits at the cap still spread; jitter in both
   * directions under a cap would make half of the retries coincide.
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
  /** Whether this failure is temporary. Any other is thrown at once. */
  retryOn: (error: unknown) => boolean;
  sleep?: (ms: number, signal: AbortSignal | undefined) => Promise<void>;
  random?: () => number;
  /** Ends the wait and prevents further attempts; a running attempt is not aborted. */
  signal?: AbortSignal;
}

/** Runs `work` until it succeeds, fails permanently or has no attempt left; then throws its last error. */
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
