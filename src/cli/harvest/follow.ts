/** Follows a plan by polling until it has ended and its windows have landed. Goes on after restarts of the server. */
import { setTimeout as sleepFor } from "node:timers/promises";
import type { OperatorError } from "../../kernel/errors.ts";
import { type ExponentialPolicy, retryDelayMs } from "../../kernel/work/retry.ts";
import { type Client, isTransient } from "../common/client.ts";
import { fetchPlan, isOver, type PlanDetail } from "./api.ts";

export interface PlanFollower {
  onPlan(plan: PlanDetail): void;
  /** The server cannot be reached. Called once, however many attempts follow. */
  onDisconnect(sentence: string): void;
  onReconnect?(): void;
}

/** Short at first, so that the end of a small plan is seen at once. */
const POLL: ExponentialPolicy = {
  maxAttempts: Number.POSITIVE_INFINITY,
  baseMs: 200,
  factor: 1.5,
  capMs: 1_000,
  jitter: 0,
};
const RECONNECT: ExponentialPolicy = { ...POLL, baseMs: 500, factor: 2, capMs: 15_000, jitter: 0.5 };

/** Rejects if the server refuses, or cannot be reached at first; not the latter if the plan `exists`. */
export async function followPlan(
  client: Client,
  planId: string,
  { follower, exists, signal }: { follower: PlanFollower; exists: boolean; signal: AbortSignal },
): Promise<PlanDetail> {
  let wasConnected = exists;
  let polls = 0;
  let failures = 0;
  for (;;) {
    try {
      const plan = await fetchPlan(client, planId, signal);
      wasConnected = true;
      if (failures > 0) follower.onReconnect?.();
      failures = 0;
      follower.onPlan(plan);
      if (isOver(plan)) return plan;
      polls += 1;
    } catch (error) {
      signal.throwIfAborted();
      if (!wasConnected || !isTransient(error)) throw error;
      if (failures === 0) follower.onDisconnect((error as OperatorError).message);
      failures += 1;
    }
    const delayMs =
      failures > 0 ? retryDelayMs(RECONNECT, failures, Math.random) : retryDelayMs(POLL, polls, Math.random);
    await sleepFor(delayMs, undefined, { signal });
  }
}
