/** What is asked of gates, and what they answer. */
import type { QuotaUnit, Refusal } from "./store.ts";

/** Of one request at one gate. */
export const COST_MAX = 10_000;

export interface GateRequest {
  /** Every gate that the request passes; each once. */
  gates: readonly RequestedGate[];
  /** As of tasks: a smaller number comes first. What a quota holds back is for numbers below 100; the default is 100. */
  priority?: number;
  /** How long the slots are held if the process neither releases them nor dies: more than the request can take. */
  slotTtlMs?: number;
}

export interface RequestedGate {
  key: string;
  /** How many requests it counts for in the rate, and how many credits by default. A whole number; 1 by default. */
  cost?: number;
  /**
   * Spent of quotas in these units; `requests` are counted by themselves. Without a price a request costs a millionth of a
   * dollar, so that it is refused where the headers of the service say that nothing is left.
   */
  spend?: { credits?: number; usdMicros?: number };
}

export interface AcquireRequest extends GateRequest {
  /** Requests that go `gapMs` apart (0 if a burst covers them); 1 by default, 10 at most. Fewer may be granted. */
  permits?: number;
  /** The longest wait to be granted. A request that would wait longer is rejected. */
  deadlineMs: number;
}

export interface Allowed {
  kind: "allow";
  /** From `answeredAtMs` on: send the first request after this, and not much later (see take.ts). */
  waitMs: number;
  permits: number;
  gapMs: number;
  /** By the database's clock, to measure how long the answer took. */
  answeredAtMs: number;
  /** The lowest rate of the gates at this moment. */
  ratePerSec: number;
  /** To be released: for each gate with a concurrency limit one slot for each permit. */
  held: HeldSlots;
}

export interface HeldSlots {
  readonly fence: string;
  readonly slots: readonly Slot[];
}

interface Slot {
  readonly key: string;
  readonly slot_no: number;
}

/** Nothing was taken. */
export interface Rejected {
  kind: "rejected";
  reason: Refusal;
  /** The gate that refuses for the longest time. */
  key: string;
  retryAfterMs: number;
  answeredAtMs: number;
  /** The quota is not spent: what is left of it is held back for work of higher priority. */
  soft: boolean;
}

/** What a response says about the limits of its service. */
export type GateSignal =
  /** Nothing about its limits. Nothing is written: after a cut the rate rises with time. */
  | { kind: "ok" }
  /** 429, or another refusal for being too fast. Cuts the rate and begins a cooldown: a second, if the service gives none. */
  | { kind: "throttled"; retryAfterMs?: number }
  /** `Retry-After` on any other response: a cooldown alone. */
  | { kind: "wait"; retryAfterMs: number }
  | HeaderSignal;

export interface HeaderSignal {
  kind: "headers";
  /** The limit of requests, per second. */
  ratePerSec?: number;
  concurrency?: number;
  /** Of the declared quota of that unit with the longest window. */
  quotas?: readonly { unit: QuotaUnit; remaining: number; limit?: number; resetAfterMs?: number }[];
}
