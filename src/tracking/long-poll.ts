/**
 * Claims that wait for work. Each stage has one first-in-first-out list of waiters, served by one claim at a time, so that a
 * hundred waiters do not compete for one item. A hint serves the list; a slow poll while there are waiters is the fallback.
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
  /** Aborted when the daemon has disconnected: items claimed for it are released at once. */
  signal: AbortSignal;
}

export interface LongPoll {
  claim(stage: QueueStage, request: WaitingClaim): Promise<ClaimedItem[]>;
  /**
   * Answers all waiters with an empty list, for a graceful shutdown. Resolves when a claim in flight for one of them has been
   * released.
   */
  stop(): Promise<void>;
}

const POLL_INTERVAL_MS = 5_000;
const WAITERS_MAX = 1_000;
const RETRY_AFTER_SECONDS = 5;

interface StageWaiters {
  list: Waiter[];
  serving: Promise<void> | undefined;
  /** Counts hints, so that one during a claim is not missed. */
  hints: number;
  timer: NodeJS.Timeout | undefined;
}

interface Waiter {
  request: WaitingClaim;
  left: boolean;
  answer(items: ClaimedItem[]): void;
  fail(error: unknown): void;
}

export function createLongPoll(deps: { tracking: Tracking; wake: Wake }): LongPoll {
  const { tracking, wake } = deps;
  let stopped = false;
  const stages = Object.fromEntries(
    QUEUE_STAGES.map((stage) => [stage, { list: [], serving: undefined, hints: 0, timer: undefined }]),
  ) as unknown as Record<QueueStage, StageWaiters>;

  for (const stage of QUEUE_STAGES) {
    wake.on(queueTopic(stage), () => {
      stages[stage].hints += 1;
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
    const waiters = stages[stage];
    if (waiters.serving || waiters.list.length === 0) return;
    const hintsSeen = waiters.hints;
    waiters.serving = serveInOrder(stage, waiters)
      // The claim failed. An empty answer would look like an empty queue.
      .catch((error: unknown) => waiters.list.slice().forEach((waiter) => waiter.fail(error)))
      .finally(() => {
        waiters.serving = undefined;
        if (waiters.hints === hintsSeen) schedulePoll(stage);
        else serve(stage);
      });
  }

  async function serveInOrder(stage: QueueStage, waiters: StageWaiters): Promise<void> {
    for (let waiter = waiters.list[0]; waiter; waiter = waiters.list[0]) {
      const items = await claimFor(stage, waiter.request);
      if (items.length === 0 && !waiter.left) return; // The queue is empty; the others keep waiting.
      if (waiter.left) await tracking.release(stage, items);
      else waiter.answer(items);
    }
  }

  function schedulePoll(stage: QueueStage): void {
    const waiters = stages[stage];
    if (waiters.list.length === 0) return;
    waiters.timer ??= setTimeout(() => {
      waiters.timer = undefined;
      serve(stage);
    }, POLL_INTERVAL_MS);
  }

  function enqueue(stage: QueueStage, request: WaitingClaim): Promise<ClaimedItem[]> {
    return new Promise((resolve, reject) => {
      const { list } = stages[stage];
      const answerNothing = () => waiter.answer([]);
      const timer = setTimeout(answerNothing, request.waitSeconds * 1000);
      const waiter: Waiter = {
        request,
        left: false,
        answer(items) {
          remove();
          resolve(items);
        },
        fail(error) {
          remove();
          reject(error);
        },
      };
      function remove(): void {
        waiter.left = true;
        clearTimeout(timer);
        request.signal.removeEventListener("abort", answerNothing);
        list.splice(list.indexOf(waiter), 1);
      }
      request.signal.addEventListener("abort", answerNothing);
      list.push(waiter);
      schedulePoll(stage);
    });
  }

  return {
    async claim(stage, request) {
      const hintsSeen = stages[stage].hints;
      const items = await claimFor(stage, request);
      if (items.length > 0 || request.waitSeconds === 0 || stopped || request.signal.aborted) return items;
      const { length } = stages[stage].list;
      if (length >= WAITERS_MAX) throw kernelError("OVERLOADED", { waiting: length, seconds: RETRY_AFTER_SECONDS });
      const waiting = enqueue(stage, request);
      if (stages[stage].hints !== hintsSeen) serve(stage); // A hint came between the claim and the wait.
      return waiting;
    },
    async stop() {
      stopped = true;
      for (const waiters of Object.values(stages)) {
        clearTimeout(waiters.timer);
        for (const waiter of waiters.list.slice()) waiter.answer([]); // A copy, because each answer removes its waiter.
      }
      for (const { serving } of Object.values(stages)) await serving;
    },
  };
}
