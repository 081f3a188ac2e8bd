/** Delivers batches of events. Retries while the server is busy or unreachable, and splits a refused batch to find the bad event. */

import { setTimeout as sleep } from "node:timers/promises";
import type { OperatorError } from "../../kernel/errors.ts";
import { counted } from "../../kernel/text/sentences.ts";
import { type ExponentialPolicy, retryDelayMs } from "../../kernel/work/retry.ts";
import { type Client, isTransient, Refusal } from "../common/client.ts";

export interface FoundEvent {
  file: string;
  line: number;
  /** JSON, unchanged from the file. */
  text: string;
}

export interface Refused {
  file: string;
  line: number;
  reason: string;
}

interface BatchReply {
  failed_events: { index: number; reason: string; retriable: boolean }[];
}

/** The rate limit of a tenant can ask for a wait of up to a minute. */
const BUSY: ExponentialPolicy = { maxAttempts: 12, baseMs: 500, factor: 2, capMs: 15_000, jitter: 0.5 };
/** Longer than the largest batch takes. */
const BATCH_SECONDS = 120;

/** Returns the events that were refused. Throws if the server stays unreachable, or refuses the key. */
type Deliver = (events: readonly FoundEvent[]) => Promise<Refused[]>;

interface Failure {
  event: FoundEvent;
  reason: string;
  /** Whether a retry may succeed. */
  retriable: boolean;
}

/** `onWait` is called with the reason before each wait. */
export function createDelivery(client: Client, path: string, onWait: (reason: string) => void): Deliver {
  let wasReached = false;

  async function attempt(events: readonly FoundEvent[]): Promise<Failure[]> {
    try {
      const reply = await client.call<BatchReply>({
        method: "POST",
        path,
        json: `[${events.map(({ text }) => text).join(",")}]`,
        waitSeconds: BATCH_SECONDS,
      });
      return reply.failed_events.flatMap(({ index, reason, retriable }) => {
        const event = events[index];
        return event ? [{ event, reason, retriable }] : [];
      });
    } catch (error) {
      if (!(error instanceof Refusal) || (error.status !== 400 && error.status !== 413)) throw error;
      // One event or the whole batch may be at fault: halves show which.
      const [event] = events;
      if (event && events.length === 1) return [{ event, reason: error.message, retriable: false }];
      const middle = Math.ceil(events.length / 2);
      return [...(await attempt(events.slice(0, middle))), ...(await attempt(events.slice(middle)))];
    }
  }

  /** A server that was never reached probably has a wrong address. */
  const isWorthRetrying = (error: unknown) => isTransient(error) && (wasReached || error instanceof Refusal);

  return async (events) => {
    const reasons = new Map<FoundEvent, string>();
    for (const event of events) {
      const problem = problemOf(event);
      if (problem !== undefined) reasons.set(event, problem);
    }
    let left = events.filter((event) => !reasons.has(event));
    for (let tries = 1; left.length > 0; tries += 1) {
      const delayMs = retryDelayMs(BUSY, tries, Math.random);
      try {
        const failures = await attempt(left);
        wasReached = true;
        const busy = delayMs === undefined ? [] : failures.filter(({ retriable }) => retriable);
        for (const failure of failures) if (!busy.includes(failure)) reasons.set(failure.event, failure.reason);
        left = busy.map(({ event }) => event);
        if (busy[0]) onWait(`${counted(left.length, "event")} to retry: ${busy[0].reason}`);
      } catch (error) {
        if (delayMs === undefined || !isWorthRetrying(error)) throw error;
        onWait((error as OperatorError).message);
      }
      if (left.length > 0) await sleep(delayMs);
    }
    return events.flatMap((event) => {
      const reason = reasons.get(event);
      return reason === undefined ? [] : [{ file: event.file, line: event.line, reason }];
    });
  };
}

/** An event that is not JSON would make the whole batch invalid. */
function problemOf({ text }: FoundEvent): string | undefined {
  try {
    JSON.parse(text);
    return undefined;
  } catch (error) {
    return `It is not JSON: ${(error as Error).message}.`;
  }
}
