/**
 * The worker for leased items: it claims items up to its slots, runs each, writes the results in batches, and releases what
 * it cannot finish. A module provides `claim`, `run` and `settle`; the worker tracks what is in flight.
 *
 *     claim ──▶ prepare ──▶ run ──▶ settle ──▶ (the item has an outcome)
 *                            │        └─ not written ──▶ lost: released, and counted
 *                            ├─ its fence is no longer held ──▶ aborted, its result dropped
 *                            └─ shutdown ──▶ aborted after the drain, released
 *
 * Held items and items in flight are compared regularly (held-check.ts): a claim may be committed although its answer was
 * lost, and an item may be reclaimed while it runs.
 *
 * A slot is free as soon as the run has ended, before its result is written. The number of unwritten results is limited.
 */
import { setTimeout as sleepFor } from "node:timers/promises";
import { createHeldCheck, type HeldRow, type InFlight } from "./held-check.ts";
import { RunControl, ShuttingDown } from "./run-control.ts";
import { type Counts, createService, type OnRun, type Service, type ServiceLog } from "./service.ts";
import type { Session } from "./session.ts";
import { createSettle } from "./settle.ts";
import { track } from "./track.ts";
import { LOST_HINT_MS, type Wake } from "./wake.ts";

interface Fenced {
  fence: string;
}

/** A source of items. */
export interface Queue<Claimed extends Fenced> {
  /** The name of the loop in metrics and the log. */
  name: string;
  /** The hints after which it claims. */
  topics: readonly string[];
  claim(limit: number, session: string): Promise<Claimed[]>;
  claimMax?: number;
  /** The counts of a claim, for metrics; by default the number of items. */
  counts?(claimed: readonly Claimed[]): Counts;
  /** Milliseconds until something is due, Infinity for nothing. Read before each claim. */
  dueMs?(): Promise<number>;
  /** The same for a queue that knows it from its claim. */
  nextDueMs?(): number;
  /** Whether an item is ready. Asked after a claim below its limit: it skips locked items, and a rollback sends no hint. */
  isReady?(): Promise<boolean>;
  /** Claim after the end of each item, because it may free a place for another, as with a limit for each key. */
  claimsAfterEnd?: boolean;
}

export interface LeaseWorkerOptions<Claimed extends Fenced, Item extends Fenced, Result, Held extends HeldRow> {
  /** The prefix of the names of its services. */
  name: string;
  /** Left out for leases that expire by themselves. */
  session?: Pick<Session, "id" | "onExpiry">;
  wake: Wake;
  log: ServiceLog;
  onRun?: OnRun;
  /** How many items run at once. */
  slots: number;
  queues: readonly [Queue<Claimed>, ...Queue<Claimed>[]];
  /** Reads what the runs of claimed items need, for all of them at once. Items that it leaves out are released. */
  prepare(claimed: readonly Claimed[]): Promise<readonly Item[]>;
  /** Does the work of one item and returns the result. It throws only when an abort with ShuttingDown or LeaseLost interrupts it. */
  run(item: Item, control: RunControl): Promise<Result>;
  /**
   * Writes results in one transaction, each guarded by its fence. Retried while the database is unavailable. Left out where
   * `run` writes its result itself.
   */
  settle?(results: readonly Result[]): Promise<void>;
  /** How many results are written together; with 1 each is written separately, concurrently with others. */
  settleMax?: number;
  /** The items that the session holds in the database. */
  held?(session: string): Promise<Held[]>;
  /** Releases items that were not finished. */
  release(items: readonly (Held | Item | Claimed)[], reason: ReleaseReason): Promise<unknown>;
  /** Releases items that ran but whose result could not be written; counted, so that they do not run for ever. */
  lose?(items: readonly Held[]): Promise<unknown>;
  /** Reclaims up to `limit` items of expired sessions; answers the number. */
  reclaim?(limit: number): Promise<number>;
  /** The log fields of an item. */
  fields(item: Held | Item): object;
  /** How long a stop waits for runs to end by themselves. */
  drainSeconds: number;
  /** How long an aborted run may take to end before its slot is given to another. */
  abortGraceSeconds?: number;
  checkIntervalMs?: number;
}

/** `never run`: the answer to its claim was lost, or what its run needs could not be read. */
export type ReleaseReason = "never run" | "shutdown";

export interface LeaseWorker<Claimed> extends Service {
  inFlight(): number;
  /** Resolves when nothing is in flight: for tests. */
  idle(): Promise<void>;
  /** Keeps up to `wanted` slots free for items that the caller is about to lease to this session; answers how many. */
  reserve(wanted: number): number;
  /** Runs items that the caller has leased to this session, in the slots that it reserved. */
  adopt(items: readonly Claimed[], reserved: number): void;
  /** The answer to a write that may have leased items to this session was lost. */
  answerLost(): void;
  /** The loop that compares what is held with what is in flight. */
  readonly checker: Service;
  readonly reclaimer: Service | undefined;
}

const CLAIM_MAX = 500;
const SETTLE_MAX = 100;
const RECLAIM_MAX = 500;
/** A worker holds at most this many times its slots, including items whose result is not written yet. */
const UNSETTLED_FACTOR = 4;
const CHECK_INTERVAL_MS = 5_000;
const ABORT_GRACE_SECONDS = 30;
/** Until items that were locked during a claim are claimed. */
const LOCKED_PAUSE_MS = 100;
/** How long a stop waits for aborted runs before it releases their items. */
const STOP_GRACE_MS = 2_000;

const ABANDONED = Symbol("abandoned");

export function createLeaseWorker<Claimed extends Fenced, Item extends Fenced, Result, Held extends HeldRow = HeldRow>(
  options: LeaseWorkerOptions<Claimed, Item, Result, Held>,
): LeaseWorker<Claimed> {
  const { name, session, wake, log, slots } = options;
  const shared = { log, ...(options.onRun ? { onRun: options.onRun } : {}) };
  const sessionId = () => session?.id() ?? "";
  const inFlight = new Map<string, InFlight<Item>>(); // By fence, which is unique.
  /** Claimed items that are being prepared, by fence. */
  const preparing = new Set<string>();
  const working = new Set<Promise<void>>();
  const settling = new Set<Promise<void>>();
  /** Queues that may have more than was claimed. */
  const backlog = new Set<Queue<Claimed>>();
  const interrupted: Item[] = [];
  let busySlots = 0;
  let isStopping = false;

  const claimers = new Map(options.queues.map((queue) => [queue, createClaimer(queue)]));
  const { held, lose } = options;
  const check = createHeldCheck<Item, Held>({
    ...shared,
    name,
    intervalMs: options.checkIntervalMs ?? CHECK_INTERVAL_MS,
    inFlight,
    isPreparing: (fence) => preparing.has(fence),
    held: held && (() => held(sessionId())),
    abort,
    release: (items) => options.release(items, "never run"),
    lose: async (items) => lose?.(items),
    fields: options.fields,
    onReleased: hintAll,
  });
  const reclaimer = options.reclaim && createReclaimer(options.reclaim);
  session?.onExpiry(check.service.wake); // The expired session may be that of this process.
  const unlisten: (() => void)[] = [];

  function createClaimer(queue: Queue<Claimed>): Service {
    let dueAtMs = Number.POSITIVE_INFINITY; // By performance.now().
    return createService({
      ...shared,
      name: queue.name,
      intervalMs: LOST_HINT_MS,
      async runOnce() {
        dueAtMs = Number.POSITIVE_INFINITY;
        const limit = Math.min(freeSlots(), queue.claimMax ?? CLAIM_MAX);
        if (isStopping || limit <= 0) {
          backlog.add(queue);
          return { claimed: 0 };
        }
        busySlots += limit; // Reserved during the claim, because other queues claim too.
        let claimed: Claimed[] = [];
        try {
          // Read before the claim: an item that becomes due in between is in one of the two.
          if (queue.dueMs) dueAtMs = performance.now() + (await queue.dueMs());
          claimed = await claimFrom(queue, limit);
        } finally {
          if (claimed.length < limit) backlog.delete(queue);
          else backlog.add(queue);
          releaseSlots(limit - claimed.length);
        }
        if (claimed.length > 0) await begin(claimed);
        if (claimed.length < limit && (await queue.isReady?.()))
          dueAtMs = Math.min(dueAtMs, performance.now() + LOCKED_PAUSE_MS);
        return queue.counts?.(claimed) ?? { claimed: claimed.length };
      },
      // Without a free slot, the end of a run wakes it.
      nextDueMs: () =>
        freeSlots() <= 0 ? Number.POSITIVE_INFINITY : (queue.nextDueMs?.() ?? dueAtMs - performance.now()),
    });
  }

  async function claimFrom(queue: Queue<Claimed>, limit: number): Promise<Claimed[]> {
    try {
      return await queue.claim(limit, sessionId());
    } catch (error) {
      check.answerLost();
      throw error;
    }
  }

  function createReclaimer(reclaim: (limit: number) => Promise<number>): Service {
    const service = createService({
      ...shared,
      name: `${name}.reclaim`,
      intervalMs: LOST_HINT_MS,
      async runOnce() {
        const reclaimed = await reclaim(RECLAIM_MAX);
        if (reclaimed > 0) hintAll();
        // Two processes that reclaim the same items lock them for a moment, and claims skip locked rows.
        else for (const claimer of claimers.values()) claimer.wake();
        return { reclaimed };
      },
      more: ({ reclaimed = 0 }) => reclaimed >= RECLAIM_MAX,
    });
    session?.onExpiry(service.wake);
    return service;
  }

  /** Other processes may have free slots for what this one releases. */
  function hintAll(): void {
    for (const { topics } of options.queues) for (const topic of topics) wake.hint(topic);
  }

  function freeSlots(): number {
    return Math.min(slots - busySlots, UNSETTLED_FACTOR * slots - inFlight.size);
  }

  function releaseSlots(count: number): void {
    busySlots -= count;
    if (count !== 0) claimBacklog();
  }

  function claimBacklog(): void {
    for (const queue of backlog) claimers.get(queue)?.wake();
  }

  async function begin(claimed: readonly Claimed[]): Promise<void> {
    let items: readonly Item[] = [];
    for (const { fence } of claimed) preparing.add(fence);
    try {
      const prepared = isStopping ? [] : await options.prepare(claimed);
      if (!isStopping) items = prepared; // A stop would not wait for runs that begin now.
    } finally {
      for (const item of items) void track(working, runItem(item));
      for (const { fence } of claimed) preparing.delete(fence);
      if (items.length < claimed.length) await releaseUnprepared(claimed, items);
    }
  }

  async function releaseUnprepared(claimed: readonly Claimed[], items: readonly Item[]): Promise<void> {
    const prepared = new Set(items.map(({ fence }) => fence));
    const left = claimed.filter(({ fence }) => !prepared.has(fence));
    releaseSlots(left.length);
    check.answerLost(); // If the release fails, the check finds them.
    await options
      .release(left, "never run")
      .catch((err: unknown) => log.warn({ err, worker: name }, "claimed items could not be released yet"));
  }

  async function runItem(item: Item): Promise<void> {
    const current: InFlight<Item> = {
      item,
      control: new RunControl(),
      isSettling: false,
      isLost: false,
      abandon: () => {},
    };
    inFlight.set(item.fence, current);
    try {
      const result = await ended(current);
      releaseSlots(1);
      if (result === ABANDONED || current.isLost) return;
      current.isSettling = true;
      if (settle) await track(settling, settle(item.fence, result));
    } catch (err) {
      if (!current.isSettling) releaseSlots(1);
      onFailure(current, err);
    } finally {
      inFlight.delete(item.fence);
      afterEnd();
    }
  }

  function ended(current: InFlight<Item>): Promise<Result | typeof ABANDONED> {
    return new Promise((resolve, reject) => {
      current.abandon = () => resolve(ABANDONED);
      options.run(current.item, current.control).then(resolve, reject);
    });
  }

  function onFailure({ item, control, isLost, isSettling }: InFlight<Item>, err: unknown): void {
    if (isLost) return;
    if (!isSettling && control.reason instanceof ShuttingDown) {
      interrupted.push(item);
      return;
    }
    check.resultLost(item.fence);
    const message = held
      ? "an item could not be finished; it is released"
      : "an item could not be finished; it is reclaimed when its lease expires";
    log.error({ err, worker: name, ...options.fields(item) }, message);
  }

  /** The limit of unwritten results may have kept free slots from claiming. */
  function afterEnd(): void {
    claimBacklog();
    for (const [queue, claimer] of claimers) if (queue.claimsAfterEnd) claimer.wake();
  }

  const settle = options.settle && createSettle(options.settle, options.settleMax ?? SETTLE_MAX);

  function abort(current: InFlight<Item>, reason: Error): void {
    current.control.abort(reason);
    const graceMs = (options.abortGraceSeconds ?? ABORT_GRACE_SECONDS) * 1_000;
    const timer = setTimeout(() => {
      if (inFlight.get(current.item.fence) !== current || current.isSettling) return;
      log.warn(
        { worker: name, ...options.fields(current.item) },
        "a run does not react to its abort signal and is abandoned",
      );
      check.answerLost();
      current.abandon();
    }, graceMs);
    timer.unref();
  }

  async function stop(): Promise<void> {
    isStopping = true;
    for (const end of unlisten) end();
    await Promise.all([...claimers.values(), ...(reclaimer ? [reclaimer] : [])].map((service) => service.stop()));
    await finished(options.drainSeconds * 1_000);
    for (const { control } of inFlight.values()) control.abort(new ShuttingDown());
    await finished(STOP_GRACE_MS);
    // A result that is being written counts: released now, its item would run twice.
    await Promise.allSettled(settling);
    const left = [...inFlight.values()];
    for (const current of left) current.isLost = true; // Their results no longer count, because the release below returns them.
    await releaseLast([...interrupted, ...left.map(({ item }) => item)]);
    await check.service.stop();
  }

  async function releaseLast(items: readonly Item[]): Promise<void> {
    if (items.length === 0) return;
    try {
      await options.release(items, "shutdown");
      hintAll();
    } catch (err) {
      // The session ends with the process, and others reclaim them.
      log.warn({ err, worker: name, items: items.length }, "items could not be released at the stop");
    }
  }

  /** Waits for all runs to end and be settled, but no longer than `ms`. */
  async function finished(ms: number): Promise<void> {
    const endsAtMs = performance.now() + ms;
    const allEnded = new AbortController();
    const time = sleepFor(ms, undefined, { signal: allEnded.signal }).catch(() => undefined);
    // More may begin meanwhile: items that were being adopted.
    while (working.size > 0 && performance.now() < endsAtMs) await Promise.race([Promise.all(working), time]);
    allEnded.abort();
  }

  const [first] = claimers.values();
  return {
    ...(first as Service),
    name,
    inFlight: () => inFlight.size,
    async idle() {
      while (working.size > 0) await Promise.all(working);
    },
    start() {
      for (const [{ topics }, claimer] of claimers) {
        for (const topic of topics) unlisten.push(wake.on(topic, claimer.wake));
        claimer.start();
      }
      check.service.start();
      reclaimer?.start();
    },
    stop,
    reserve(wanted) {
      // With a backlog, older or more urgent items go first, and only a claim knows which those are.
      const hasBacklog = backlog.has(options.queues[0]);
      const reserved = isStopping || hasBacklog ? 0 : Math.max(0, Math.min(wanted, freeSlots()));
      busySlots += reserved;
      return reserved;
    },
    adopt(items, reserved) {
      releaseSlots(reserved - items.length);
      if (items.length === 0) return;
      const begun = begin(items).catch((err: unknown) =>
        log.error({ err, worker: name }, "adopted items could not be started and are released"),
      );
      void track(working, begun);
    },
    answerLost: check.answerLost,
    checker: check.service,
    reclaimer,
  };
}
