/** Delivers batches of events: patiently while the sink is busy or away, and down to the single event that is to blame. */
import { setTimeout as sleep } from "node:timers/promises";
import type { OperatorError } from "../../kernel/errors.ts";
import { type ExponentialPolicy, retryDelayMs } from "../../kernel/work/retry.ts";
import { type Client, mayPass, Refusal } from "../common/client.ts";

export interface FoundEvent {
  file: string;
  line: number;
  /** JSON, as it is written in the file. */
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

/** A tenant that sends too much is asked to wait for up to a minute. */
const BUSY: ExponentialPolicy = { maxAttempts: 12, baseMs: 500, factor: 2, capMs: 15_000, jitter: 0.5 };
/** Longer than a batch of the largest size takes. */
const BATCH_SECONDS = 120;

/** Answers which events were refused for good. Throws if the sink stays away, or refuses everything that this key sends. */
type Deliver = (events: readonly FoundEvent[]) => Promise<Refused[]>;

interface Failure {
  event: FoundEvent;
  reason: string;
  /** Whether it may be taken if it is sent again. */
  retriable: boolean;
}

/** `onWait` is told why, whenever it waits to try again. */
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
      // About one of them, or about all together: halves tell.
      const [event] = events;
      if (event && events.length === 1) return [{ event, reason: error.message, retriable: false }];
      const middle = Math.ceil(events.length / 2);
      return [...(await attempt(events.slice(0, middle))), ...(await attempt(events.slice(middle)))];
    }
  }

  /** A sink that was never reached is more likely misnamed than busy. */
  const isWorthWaiting = (error: unknown) => mayPass(error) && (wasReached || error instanceof Refusal);

  return async (events) => {
    const reasons = new Map<FoundEvent, string>();
    for (const event of events) {
      const complaint = complaintOf(event);
      if (complaint !== undefined) reasons.set(event, complaint);
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
        if (busy[0])
          onWait(`${left.length === 1 ? "1 event has" : `${left.length} events have`} to wait: ${busy[0].reason}`);
      } catch (error) {
        if (delayMs === undefined || !isWorthWaiting(error)) throw error;
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

/** One that is no JSON would spoil the whole batch. */
function complaintOf({ text }: FoundEvent): string | undefined {
  try {
    JSON.parse(text);
    return undefined;
  } catch (error) {
    return `It is not JSON: ${(error as Error).message}.`;
  }
}
