/**
 * Waiting for permits within a process. Requests for the same gates form a lane. A lane has one reservation in flight, for as
 * many of its requests as may go in the next quarter of a second or at once by what is left of a burst, and each goes when its permit is due:
 *
 *     queued ──reserved──▶ due at a time ──in time──▶ taken
 *        ▲                      └──late, or the gate cools down──▶ queued again, first in its lane
 *        └──rejected: asked again after the time that the gate named; a request whose time is up before that is rejected
 *
 * Reservations reach little into the future, because a wait on a slow gate also blocks the fast gates of the same request,
 * and because what is reserved goes even if the rate is cut meanwhile. Tasks of a lane take turns of ten permits.
 *
 * A permit that is used late would move the request closer to the next one, and the service would see more of them in a
 * second than were granted. So a late permit is given up.
 */
import type { KERNEL_METRICS } from "../telemetry/metric-table.ts";
import type { Metrics } from "../telemetry/metrics.ts";
import type { ServiceLog } from "../work/service.ts";
import type { Wake } from "../work/wake.ts";
import { type ClockOffset, createClockOffset } from "./clock-offset.ts";
import { toleranceMs } from "./pace.ts";
import type { AcquireRequest, Allowed, GateRequest, HeldSlots, Rejected } from "./permits.ts";
import { createTurns } from "./turns.ts";

export interface TakeRequest extends GateRequest {
  /** Tasks take turns, so that a long one does not use all permits. */
  task: string;
}

export interface TakeOptions {
  /** At most ten minutes: who has to wait longer should hold nothing meanwhile. */
  maxWaitMs: number;
  /** A cooldown or a spent quota that lasts longer than this rejects at once. `maxWaitMs` if unset. */
  maxPauseMs?: number;
  signal?: AbortSignal;
}

/** Send the request at once, without awaiting anything else. */
export interface Permit {
  kind: "permit";
  waitedMs: number;
  /** When the request may go, by the database's clock. */
  dueAtMs: number;
  ratePerSec: number;
  /** Call it when the body was read, or the request has failed. Does not throw: a slot that is not freed expires. */
  release(): Promise<void>;
}

export interface TakeDeps {
  acquire(request: AcquireRequest): Promise<Allowed | Rejected>;
  release(held: HeldSlots): Promise<void>;
  databaseTimeMs(): Promise<number>;
  wake: Wake;
  log: ServiceLog;
  metrics: Metrics<typeof KERNEL_METRICS>;
}

export interface Take {
  take(request: TakeRequest, options: TakeOptions): Promise<Permit | Rejected>;
  /** A gate cools down since then, by the database's clock: permits that were reserved before are given up. */
  cool(key: string, atMs: number): void;
  waiting(): number;
}

interface Waiter {
  readonly task: string;
  readonly since: number;
  readonly deadline: number;
  readonly maxPauseMs: number;
  isOver(): boolean;
  settle(answer: Permit | Rejected): void;
  fail(error: unknown): void;
}

/** Permits in a row for one task while others wait, and in one reservation. */
export const QUANTUM = 10;
/** How far ahead of its time a permit is reserved. */
const HORIZON_MS = 250;
const WAIT_MS_MAX = 600_000;
const COOLED_MAX = 10_000;

/** A slot was freed, or the gate was opened or declared anew. */
export function gateTopic(key: string): string {
  return `gate ${key}`;
}

export function createTake(deps: TakeDeps): Take {
  const lanes = new Map<string, Lane>();
  const cooledAtMs = new Map<string, number>();
  const offset = createClockOffset(deps.databaseTimeMs, () => performance.now());

  function laneOf(request: GateRequest): Lane {
    const { gates, priority, slotTtlMs } = request;
    const id = JSON.stringify([gates, priority, slotTtlMs]);
    const lane = lanes.get(id) ?? createLane(deps, request, { offset, cooledAtMs, onEmpty: () => lanes.delete(id) });
    lanes.set(id, lane);
    return lane;
  }

  return {
    take({ task, ...request }, { maxWaitMs, maxPauseMs = Number.POSITIVE_INFINITY, signal }) {
      return new Promise((resolve, reject) => {
        signal?.throwIfAborted();
        const since = performance.now();
        const lane = laneOf(request);
        let isOver = false;
        const end = () => {
          isOver = true;
          signal?.removeEventListener("abort", abort);
          lane.leave(waiter);
        };
        const abort = () => waiter.fail(signal?.reason);
        const waiter: Waiter = {
          task,
          since,
          deadline: since + Math.min(maxWaitMs, WAIT_MS_MAX),
          maxPauseMs,
          isOver: () => isOver,
          settle(answer) {
            end();
            resolve(answer);
          },
          fail(error) {
            end();
            reject(error);
          },
        };
        signal?.addEventListener("abort", abort);
        lane.enter(waiter);
      });
    },
    cool(key, atMs) {
      if (cooledAtMs.size >= COOLED_MAX) cooledAtMs.clear();
      cooledAtMs.set(key, atMs);
    },
    waiting: () => [...lanes.values()].reduce((sum, lane) => sum + lane.waiting(), 0),
  };
}

interface Lane {
  enter(waiter: Waiter): void;
  leave(waiter: Waiter): void;
  waiting(): number;
}

interface DuePermit {
  waiter: Waiter;
  held: HeldSlots;
  dueAtMs: number;
  /** The same by the local clock. */
  due: number;
}

interface Surroundings {
  offset: ClockOffset;
  /** When gates have begun to cool down, by the database's clock. */
  cooledAtMs: ReadonlyMap<string, number>;
  onEmpty(): void;
}

function createLane(deps: TakeDeps, request: GateRequest, { offset, cooledAtMs, onEmpty }: Surroundings): Lane {
  const { metrics } = deps;
  const turns = createTurns<Waiter>(QUANTUM);
  let isPumping = false;
  /** Permits that are reserved and not yet due. */
  let pending = 0;
  let blocked: { until: number; by: Rejected } | undefined;
  /** The pump sleeps until then. */
  let wakeAt = Number.POSITIVE_INFINITY;
  let wakeUp = () => {};

  async function pump(): Promise<void> {
    if (isPumping) return;
    isPumping = true;
    const ends = request.gates.map(({ key }) => deps.wake.on(gateTopic(key), () => wakeUp()));
    while (turns.all().length > 0) await reserve();
    for (const end of ends) end();
    isPumping = false;
    blocked = undefined; // From here on, nobody would learn that the gate was opened.
    if (pending === 0) onEmpty();
  }

  async function reserve(): Promise<void> {
    const batch = turns.peek(QUANTUM);
    let isHinted = false;
    wakeUp = () => {
      isHinted = true;
    };
    try {
      await offset.ready();
      const answer = await deps.acquire({ ...request, permits: batch.length, deadlineMs: HORIZON_MS });
      offset.learn(answer.answeredAtMs);
      if (answer.kind === "allow") {
        blocked = undefined;
        handOut(batch, answer);
      } else if (!isHinted) await waitOut(answer); // Hinted: the gate changed while the answer was on its way.
    } catch (error) {
      for (const waiter of batch) waiter.fail(error);
    }
  }

  function handOut(batch: readonly Waiter[], answer: Allowed): void {
    const start = offset.toLocal(answer.answeredAtMs) + answer.waitMs;
    const waiters = batch.filter((waiter) => !waiter.isOver());
    for (let index = 0; index < answer.permits; index += 1) {
      const held = slotsOfPermit(answer, index);
      const waiter = waiters[index];
      if (!waiter) {
        void free(held);
        continue;
      }
      turns.serve(waiter);
      pending += 1;
      const afterMs = index * answer.gapMs;
      const dueAtMs = answer.answeredAtMs + answer.waitMs + afterMs;
      at(start + afterMs, () => {
        pending -= 1;
        use({ waiter, held, dueAtMs, due: start + afterMs }, answer);
      });
    }
  }

  function use({ waiter, held, dueAtMs, due }: DuePermit, { ratePerSec, answeredAtMs }: Allowed): void {
    const now = performance.now();
    const isCooling = request.gates.some(({ key }) => answeredAtMs < (cooledAtMs.get(key) ?? 0));
    const isGivenUp = isCooling || now > due + toleranceMs(ratePerSec);
    if (isGivenUp || waiter.isOver()) {
      void free(held);
      metrics.count("millrace_gate_permits_given_up_total", {});
      if (!waiter.isOver()) {
        turns.putBack(waiter);
        void pump();
      } else if (pending === 0 && !isPumping) onEmpty();
      return;
    }
    const waitedMs = now - waiter.since;
    metrics.observe("millrace_gate_wait_seconds", {}, waitedMs / 1_000);
    let released: Promise<void> | undefined;
    const release = () => (released ??= free(held));
    waiter.settle({ kind: "permit", waitedMs, dueAtMs, ratePerSec, release });
    if (pending === 0 && !isPumping) onEmpty();
  }

  async function waitOut(by: Rejected): Promise<void> {
    const now = performance.now();
    blocked = { until: now + by.retryAfterMs, by };
    for (const waiter of turns.all()) rejectIfHopeless(waiter);
    const deadlines = turns.all().map(({ deadline }) => deadline);
    // Spread, so that processes do not ask in the same moment.
    const ahead = by.reason === "OVER_DEADLINE" ? HORIZON_MS * (1 + Math.random()) * 0.5 : 0;
    wakeAt = Math.min(blocked.until - ahead, ...deadlines);
    if (deadlines.length === 0 || wakeAt <= now) return;
    await new Promise<void>((resolve) => {
      const cancel = at(wakeAt, resolve);
      wakeUp = () => {
        cancel();
        resolve();
      };
    });
  }

  function rejectIfHopeless(waiter: Waiter): void {
    if (!blocked) return;
    const now = performance.now();
    const { until, by } = blocked;
    const isPause = by.reason === "COOLDOWN" || by.reason === "QUOTA";
    // A slot may become free at any moment.
    const isHopeless = waiter.deadline < (by.reason === "SLOTS" ? now : until);
    if (isHopeless || (isPause && until - now > waiter.maxPauseMs)) {
      waiter.settle({ ...by, retryAfterMs: Math.max(1, Math.ceil(until - now)) });
    }
  }

  async function free(held: HeldSlots): Promise<void> {
    try {
      await deps.release(held);
    } catch (err) {
      deps.log.warn({ err }, "a slot of a gate was not freed; it expires by itself");
    }
  }

  return {
    enter(waiter) {
      turns.add(waiter);
      if (blocked && blocked.until > performance.now()) rejectIfHopeless(waiter);
      if (waiter.deadline < wakeAt) wakeUp();
      void pump();
    },
    leave(waiter) {
      turns.drop(waiter);
      if (turns.all().length === 0) wakeUp(); // Ends the sleep of a lane that nobody waits in.
    },
    waiting: () => turns.all().length + pending,
  };
}

/** Each gate has one slot for each permit, in the same order. */
function slotsOfPermit({ held, permits }: Allowed, index: number): HeldSlots {
  return { fence: held.fence, slots: held.slots.filter((_, place) => place % permits === index) };
}

/** Calls `fn` at the local time, never before it: timers fire up to a millisecond early. Returns what cancels it. */
function at(time: number, fn: () => void): () => void {
  let timer: NodeJS.Timeout | undefined;
  const wait = () => {
    const leftMs = time - performance.now();
    if (leftMs <= 0) fn();
    else timer = setTimeout(wait, Math.ceil(leftMs));
  };
  wait();
  return () => clearTimeout(timer);
}
