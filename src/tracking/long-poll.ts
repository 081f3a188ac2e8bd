/**
 * Claims that wait for work. Waiting daemons stand in one line per stage and are served in turn, by one claim at a time,
 * so that a hundred of them do not all run for the same item. The line moves on a wake-up hint; a slow poll, only while
 * somebody waits, is the safety net.
 */
import { kernelError } from "../kernel/errors.ts";
import type { Wake } from "../kernel/work/wake.ts";
import { QUEUE_STAGES, type QueueStage } from "./states.ts";
import { type ClaimedItem, queueTopic, type Tracking } from "./tracking.ts";

export interface WaitingClaim {
  limit: number;
  worker: string;
  leaseSeconds: number;
  waitSeconds: number;
  /** Aborted when the daemon has hung up: what was claimed for it goes back to the queue at once. */
  signal: AbortSignal;
}

export interface LongPoll {
  claim(stage: QueueStage, request: WaitingClaim): Promise<ClaimedItem[]>;
  /**
   * Answers everyone who waits with nothing, at once, for a graceful shutdown. Resolves when what was just being claimed
   * for one of them is back in its queue.
   */
  stop(): Promise<void>;
}

const POLL_INTERVAL_MS = 5_000;
const LINE_LENGTH_MAX = 1_000;
const RETRY_AFTER_SECONDS = 5;

interface Line {
  places: Place[];
  serving: Promise<void> | undefined;
  /** Counts hints, so that one that comes while a claim is under way is not missed. */
  hints: number;
  timer: NodeJS.Timeout | undefined;
}

interface Place {
  request: WaitingClaim;
  gone: boolean;
  leave(items: ClaimedItem[]): void;
  fail(error: unknown): void;
}

export function createLongPoll(deps: { tracking: Tracking; wake: Wake }): LongPoll {
  const { tracking, wake } = deps;
  let stopped = false;
  const lines = Object.fromEntries(
    QUEUE_STAGES.map((stage) => [stage, { places: [], serving: undefined, hints: 0, timer: undefined }]),
  ) as unknown as Record<QueueStage, Line>;

  for (const stage of QUEUE_STAGES) {
    wake.on(queueTopic(stage), () => {
      lines[stage].hints += 1;
      serve(stage);
    });
  }

  async function claimFor(stage: QueueStage, request: WaitingClaim): Promise<ClaimedItem[]> {
    const items = await tracking.claim(stage, request);
    if (!request.signal.aborted || items.length === 0) return items;
    await tracking.release(stage, items);
    return [];
  }

  function serve(stage: QueueStage): void {
    const line = lines[stage];
    if (line.serving || line.places.length === 0) return;
    const hintsSeen = line.hints;
    line.serving = serveInTurn(stage, line)
      // The database is away: an empty answer would look like an empty queue.
      .catch((error: unknown) => line.places.slice().forEach((place) => place.fail(error)))
      .finally(() => {
        line.serving = undefined;
        if (line.hints === hintsSeen) keepPolling(stage);
        else serve(stage);
      });
  }

  async function serveInTurn(stage: QueueStage, line: Line): Promise<void> {
    for (let place = line.places[0]; place; place = line.places[0]) {
      const items = await claimFor(stage, place.request);
      if (items.length === 0 && !place.gone) return; // The queue is empty; the rest goes on waiting.
      if (place.gone) await tracking.release(stage, items);
      else place.leave(items);
    }
  }

  function keepPolling(stage: QueueStage): void {
    const line = lines[stage];
    if (line.places.length === 0) return;
    line.timer ??= setTimeout(() => {
      line.timer = undefined;
      serve(stage);
    }, POLL_INTERVAL_MS);
  }

  function join(stage: QueueStage, request: WaitingClaim): Promise<ClaimedItem[]> {
    return new Promise((resolve, reject) => {
      const { places } = lines[stage];
      const giveUp = () => place.leave([]);
      const timer = setTimeout(giveUp, request.waitSeconds * 1000);
      const place: Place = {
        request,
        gone: false,
        leave(items) {
          goAway();
          resolve(items);
        },
        fail(error) {
          goAway();
          reject(error);
        },
      };
      function goAway(): void {
        place.gone = true;
        clearTimeout(timer);
        request.signal.removeEventListener("abort", giveUp);
        places.splice(places.indexOf(place), 1);
      }
      request.signal.addEventListener("abort", giveUp);
      places.push(place);
      keepPolling(stage);
    });
  }

  return {
    async claim(stage, request) {
      const hintsSeen = lines[stage].hints;
      const items = await claimFor(stage, request);
      if (items.length > 0 || request.waitSeconds === 0 || stopped || request.signal.aborted) return items;
      const { length } = lines[stage].places;
      if (length >= LINE_LENGTH_MAX) throw kernelError("OVERLOADED", { waiting: length, seconds: RETRY_AFTER_SECONDS });
      const waiting = join(stage, request);
      if (lines[stage].hints !== hintsSeen) serve(stage); // Something came between the first try and joining the line.
      return waiting;
    },
    async stop() {
      stopped = true;
      for (const line of Object.values(lines)) {
        clearTimeout(line.timer);
        for (const place of line.places.slice()) place.leave([]); // Leaving changes the line.
      }
      for (const { serving } of Object.values(lines)) await serving;
    },
  };
}
