/**
 * What a relay of the outbox makes of failures: one line in the log for as long as the same failure repeats, and a pause of
 * its claims while the consumer cannot be reached. During such an outage one event at a time is tried; the others wait
 * untouched, however many they are and however long it takes.
 */
import { messageOf } from "../text/message-of.ts";
import { type RetryPolicy, retryDelayMs } from "./retry.ts";
import type { ServiceLog } from "./service.ts";

export interface RelayFailures {
  /** Milliseconds until the next claim, 0 for now. Infinity while the one event of an outage is tried. */
  pauseMs(): number;
  /** How many events to claim, of so many. */
  claimable(limit: number): number;
  claimed(count: number): void;
  /** Of an outage: after how many milliseconds to try the event again. Undefined for any other failure. */
  outageMs(err: unknown): number | undefined;
  failed(err: unknown, fields: { eventId: string; outcome: "retry_later" | "give_up" }): void;
  delivered(): void;
  /** After each delivery, whatever came of it. */
  ended(): void;
}

export interface RelayFailuresOptions {
  consumer: string;
  log: ServiceLog;
  isOutage(error: unknown): boolean;
}

/** The last wait is the longest that a consumer which is back goes unnoticed. */
const PAUSE: RetryPolicy = {
  maxAttempts: Number.POSITIVE_INFINITY,
  baseMs: 1_000,
  factor: 2,
  capMs: 30_000,
  jitter: 0.2,
};

export function createRelayFailures({ consumer, log, isOutage }: RelayFailuresOptions): RelayFailures {
  /** Failures with the same message, since the last delivery. */
  let repeated: { message: string; count: number; sinceMs: number } | undefined;
  /** Tries since the consumer could be reached. */
  let tries = 0;
  let pausedUntilMs = 0;
  let isTrying = false;

  return {
    pauseMs: () => (tries > 0 && isTrying ? Number.POSITIVE_INFINITY : Math.max(0, pausedUntilMs - performance.now())),
    claimable: (limit) => (tries > 0 ? Math.min(1, limit) : limit),
    claimed(count) {
      if (count > 0) isTrying = true;
    },
    outageMs(err) {
      if (!isOutage(err)) return undefined;
      const now = performance.now();
      if (now >= pausedUntilMs) {
        // Of many that fail together, the first counts.
        tries += 1;
        pausedUntilMs = now + (retryDelayMs(PAUSE, tries, Math.random) ?? 0);
      }
      return pausedUntilMs - now;
    },
    failed(err, fields) {
      const message = messageOf(err);
      if (repeated?.message === message) repeated.count += 1;
      else repeated = { message, count: 1, sinceMs: performance.now() };
      if (repeated.count > 1 && fields.outcome === "retry_later") return;
      log.warn({ err, consumer, ...fields }, "an outbox event was not delivered");
    },
    delivered() {
      if (repeated && repeated.count > 1) {
        const seconds = Math.round((performance.now() - repeated.sinceMs) / 1_000);
        log.info({ consumer, failures: repeated.count, seconds }, "outbox events are delivered again");
      }
      repeated = undefined;
      tries = 0;
      pausedUntilMs = 0;
    },
    ended() {
      isTrying = false;
    },
  };
}
