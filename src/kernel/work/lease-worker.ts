/**
 * The loop of everything that is claimed: it claims items up to its slots, runs each, has the results written in batches,
 * and gives back what it cannot finish. A module brings `claim`, `run` and `settle`; the worker knows what is in flight.
 *
 *     claim ──▶ prepare ──▶ run ──▶ settle ──▶ (the item has an outcome)
 *                            │        └─ not written ──▶ lost: given back, and counted
 *                            ├─ its fence is no longer held ──▶ aborted, its result dropped
 *                            └─ shutdown ──▶ aborted after the drain, given back
 *
 * What is held and what is in flight are compared all the time (held-check.ts): a claim may be committed although its answer
 * never came, and an item may be taken away while it runs.
 *
 * A slot is free as soon as the item's work is done. Its result is written meanwhile; how many may wait for that is limited.
 */
import { setTimeout as sleepFor } from "node:timers/promises";
import { createHeldCheck, type HeldRow, type InFlight } from "./held-check.ts";
import { RunControl, ShuttingDown } from "./run-control.ts";
import { type Counts, createService, type OnRun, type Service, type ServiceLog } from "./service.ts";
import type { Session } from "./session.ts";
import { createSettle } from "./settle.ts";
import { LOST_HINT_MS, type Wake } from "./wake.ts";

interface Fenced {
  fence: string;
}

/** Where items come from. */
export interface Queue<Claimed extends Fenced> {
  /** Names the loop, for metrics and the log. */
  name: string;
  /** The hints that say that there may be something to claim. */
  topics: readonly string[];
  claim(limit: number, session: string): Promise<Claimed[]>;
  claimMax?: number;
  /** What a claim counted, for metrics; by default how many items. */
  counts?(claimed: readonly Claimed[]): Counts;
  /** Milliseconds until something is due, Infinity for nothing. Asked before each claim. */
  dueMs?(): Promise<number>;
  /** The same for a queue that knows it from its claim. */
  nextDueMs?(): number;
  /** Whether the end of one item can make room for another, as with a limit for each key: then each end leads to a claim. */
  claimsAfterEnd?: boolean;
}

export interface LeaseWorkerOptions<Claimed extends Fenced, Item extends Fenced, Result, Held extends HeldRow> {
  /** Begins the names of the loops that check and reclaim. */
  name: string;
  /** Left out for leases that expire by themselves. */
  session?: Pick<Session, "id" | "onExpiry">;
  wake: Wake;
  log: ServiceLog;
  onRun?: OnRun;
  /** How many items run at once. */
  slots: number;
  queues: readonly [Queue<Claimed>, ...Queue<Claimed>[]];
  /** Reads what the runs of claimed items need, for all of them at once. Items that it leaves out are given back. */
  prepare(claimed: readonly Claimed[]): Promise<readonly Item[]>;
  /**
   * Does the work of one item and answers what came of it. It throws only when `control` was aborted with ShuttingDown or
   * LeaseLost and that cut it short.
   */
  run(item: Item, control: RunControl): Promise<Result>;
  /**
   * Writes results in one transaction, each guarded by its fence. Tried again while the database is away. Left out where `run`
   * writes its result itself.
   */
  settle?(results: readonly Result[]): Promise<void>;
  /** How many results are written together; with 1 each is written by itself, at the same time as others. */
  settleMax?: number;
  /** What the database says that the session holds. */
  held?(session: string): Promise<Held[]>;
  /** Gives back items that were not finished. */
  release(items: readonly (Held | Item | Claimed)[], reason: ReleaseReason): Promise<unknown>;
  /** Gives back held items that were run and whose result could not be written; counted, so that they do not run for ever. */
  lose?(items: readonly Held[]): Promise<unknown>;
  /** Takes back what expired sessions held, up to `limit`; answers how many items. */
  reclaim?(limit: number): Promise<number>;
  /** What the log says of an item. */
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
/** How many times its slots a worker may hold, counting items whose result is not written yet. */
const UNSETTLED_FACTOR = 4;
const CHECK_INTERVAL_MS = 5_000;
const ABORT_GRACE_SECONDS = 30;
/** How long a stop waits for aborted runs before it gives their items back. */
const STOP_GRACE_MS = 2_000;

const ABANDONED = Symbol("abandoned");

export function createLeaseWorker<Claimed extends Fenced, Item extends Fenced, Result, Held extends HeldRow = HeldRow>(
  options: LeaseWorkerOptions<Claimed, Item, Result, Held>,
): LeaseWorker<Claimed> {
  const { name, session, wake, log, slots } = options;
  const shared = { log, ...(options.onRun ? { onRun: options.onRun } : {}) };
  const sessionId = () => session?.id() ?? "";
  const inFlight = new Map<string, InFlight<Item>>(); // By fence, which no two items share.
  const working = new Set<Promise<void>>();
  /** Queues that may have more than was claimed. */
  const backlog = new Set<Queue<Claimed>>();
  const cutShort: Item[] = [];
  let busySlots = 0;
  let isStopping = false;

  const claimers = new Map(options.queues.map((queue) => [queue, createClaimer(queue)]));
  const { held, lose } = options;
  const check = createHeldCheck<Item, Held>({
    ...shared,
    name,
    intervalMs: options.checkIntervalMs ?? CHECK_INTERVAL_MS,
    inFlight,
    held: held && (() => held(sessionId())),
    abort,
    release: (items) => options.release(items, "never run"),
    lose: async (items) => lose?.(items),
    fields: options.fields,
    onGivenBack: hintAll,
  });
  const reclaimer = options.reclaim && createReclaimer(options.reclaim);
  session?.onExpiry(check.service.wake); // It may be the session of this process.
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
        busySlots += limit; // Held while the claim is under way, for other queues claim too.
        let claimed: Claimed[] = [];
        try {
          // Asked before the claim: what becomes due in between is in one or the other.
          if (queue.dueMs) dueAtMs = performance.now() + (await queue.dueMs());
          claimed = await claimFrom(queue, limit);
        } finally {
          if (claimed.length < limit) backlog.delete(queue);
          else backlog.add(queue);
          release(limit - claimed.length);
        }
        if (claimed.length > 0) await begin(claimed);
        return queue.counts?.(claimed) ?? { claimed: claimed.length };
      },
      nextDueMs: queue.nextDueMs ?? (() => dueAtMs - performance.now()),
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
        return { reclaimed };
      },
      more: ({ reclaimed = 0 }) => reclaimed >= RECLAIM_MAX,
    });
    session?.onExpiry(service.wake);
    return service;
  }

  /** Other processes may have room for what this one gives back. */
  function hintAll(): void {
    for (const { topics } of options.queues) for (const topic of topics) wake.hint(topic);
  }

  function freeSlots(): number {
    return Math.min(slots - busySlots, UNSETTLED_FACTOR * slots - inFlight.size);
  }

  function release(count: number): void {
    busySlots -= count;
    if (count !== 0) claimBacklog();
  }

  function claimBacklog(): void {
    for (const queue of backlog) claimers.get(queue)?.wake();
  }

  async function begin(claimed: readonly Claimed[]): Promise<void> {
    let items: readonly Item[] = [];
    try {
      items = await options.prepare(claimed);
    } finally {
      if (items.length < claimed.length) await giveBackUnprepared(claimed, items);
    }
    for (const item of items) {
      const work = carryOut(item);
      working.add(work);
      void work.finally(() => working.delete(work));
    }
  }

  async function giveBackUnprepared(claimed: readonly Claimed[], items: readonly Item[]): Promise<void> {
    const prepared = new Set(items.map(({ fence }) => fence));
    const left = claimed.filter(({ fence }) => !prepared.has(fence));
    release(left.length);
    check.answerLost(); // Should the release fail, the check finds them.
    await options
      .release(left, "never run")
      .catch((err: unknown) => log.warn({ err, worker: name }, "claimed items could not be given back yet"));
  }

  async function carryOut(item: Item): Promise<void> {
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
      release(1);
      if (result === ABANDONED || current.isLost) return;
      current.isSettling = true;
      await settle?.(item.fence, result);
    } catch (err) {
      if (!current.isSettling) release(1);
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
      cutShort.push(item);
      return;
    }
    check.resultLost(item.fence);
    log.error({ err, worker: name, ...options.fields(item) }, "an item could not be finished; it is given back");
  }

  /** All slots may have been free, and only the unwritten results too many. */
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
    const left = [...inFlight.values()];
    for (const current of left) current.isLost = true; // From now on the release below decides.
    await giveBackLast([...cutShort, ...left.map(({ item }) => item)]);
    await check.service.stop();
  }

  async function giveBackLast(items: readonly Item[]): Promise<void> {
    if (items.length === 0) return;
    try {
      await options.release(items, "shutdown");
      hintAll();
    } catch (err) {
      // The session ends with the process, and others take them back.
      log.warn({ err, worker: name, items: items.length }, "items could not be given back at the stop");
    }
  }

  /** Waits for all runs to end and be settled, but no longer than `ms`. */
  async function finished(ms: number): Promise<void> {
    if (working.size === 0) return;
    const enough = new AbortController();
    const all = Promise.all(working).finally(() => enough.abort());
    const time = sleepFor(ms, undefined, { signal: enough.signal }).catch(() => undefined);
    await Promise.race([all, time]);
    enough.abort();
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
      // With a backlog, what is ready longer or matters more goes first, and the database knows which that is.
      const hasBacklog = backlog.has(options.queues[0]);
      const reserved = isStopping || hasBacklog ? 0 : Math.max(0, Math.min(wanted, freeSlots()));
      busySlots += reserved;
      return reserved;
    },
    adopt(items, reserved) {
      release(reserved - items.length);
      if (items.length === 0) return;
      const begun = begin(items).catch((err: unknown) =>
        log.error({ err, worker: name }, "adopted items could not be started and are given back"),
      );
      working.add(begun);
      void begun.finally(() => working.delete(begun));
    },
    answerLost: check.answerLost,
    checker: check.service,
    reclaimer,
  };
}
