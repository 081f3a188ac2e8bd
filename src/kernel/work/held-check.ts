/**
 * Compares the items that a worker's session holds in the database with those in flight: every few seconds while something
 * runs, and for a minute after an answer was lost. A run whose item is no longer held is aborted. An item that is held but
 * not in flight is released, because nothing reclaims what a live session holds.
 */
import { LeaseLost, type RunControl } from "./run-control.ts";
import { createService, type OnRun, type Service, type ServiceLog } from "./service.ts";

/** A row that this process holds, as the database sees it. */
export interface HeldRow {
  fence: string;
  /** Why its run should end early although it is still held; the result counts. */
  stop?: string | null;
}

export interface InFlight<Item> {
  item: Item;
  control: RunControl;
  isSettling: boolean;
  /** The lease is lost, so the result is dropped. */
  isLost: boolean;
  /** Frees the slot without waiting for the run. */
  abandon(): void;
}

export interface HeldCheckOptions<Item, Held extends HeldRow> {
  name: string;
  log: ServiceLog;
  onRun?: OnRun;
  intervalMs: number;
  /** By fence. */
  inFlight: ReadonlyMap<string, InFlight<Item>>;
  /** Whether it was claimed and is about to be in flight. */
  isPreparing(fence: string): boolean;
  /** Left out for leases that expire by themselves: then there is nothing to check. */
  held: (() => Promise<Held[]>) | undefined;
  abort(current: InFlight<Item>, reason: Error): void;
  /** Releases items that this process has not run. */
  release(items: readonly Held[]): Promise<unknown>;
  /** Releases items that ran but whose result could not be written; counted as a loss. */
  lose(items: readonly Held[]): Promise<unknown>;
  fields(item: Held | Item): object;
  onReleased(): void;
}

export interface HeldCheck {
  readonly service: Service;
  /** The answer to a write that may have leased items to this session was lost. */
  answerLost(): void;
  /** The item ran, and its result could not be written. */
  resultLost(fence: string): void;
}

/** How long checks continue after a lost answer: longer than the database may take to finish the statement. */
const UNCERTAIN_MS = 60_000;
/** A held item may be about to be in flight. It is released if it is not after this share of the check interval. */
const UNKNOWN_SHARE = 0.6;

export function createHeldCheck<Item extends { fence: string }, Held extends HeldRow>(
  options: HeldCheckOptions<Item, Held>,
): HeldCheck {
  const { name, log, inFlight, intervalMs } = options;
  /** Held and not in flight, by fence: since when. */
  const unknown = new Map<string, number>();
  /** Ran, but their result could not be written. */
  const unsettled = new Set<string>();
  let uncertainUntilMs = 0;

  const service = createService({
    name: `${name}.check`,
    intervalMs,
    log,
    ...(options.onRun ? { onRun: options.onRun } : {}),
    runOnce: check,
  });

  function answerLost(): void {
    uncertainUntilMs = performance.now() + UNCERTAIN_MS;
    service.wake();
  }

  async function check(): Promise<{ aborted: number; given_back: number }> {
    const running = [...inFlight.values()].filter(({ isSettling }) => !isSettling);
    const isUncertain = performance.now() < uncertainUntilMs || unknown.size > 0;
    if (!options.held || (running.length === 0 && !isUncertain)) return { aborted: 0, given_back: 0 };
    let rows: Held[];
    let released = 0;
    try {
      rows = await options.held();
      released = await releaseUnknown(rows);
    } catch (error) {
      if (isUncertain) answerLost(); // Until a check has succeeded.
      throw error;
    }
    const held = new Map(rows.map((row) => [row.fence, row]));
    let aborted = 0;
    for (const current of running) {
      const row = held.get(current.item.fence);
      if (row && !row.stop) continue;
      if (current.isSettling || !inFlight.has(current.item.fence)) continue; // It ended meanwhile.
      if (!row && !current.isLost) {
        current.isLost = true;
        log.warn(
          { worker: name, ...options.fields(current.item) },
          "a run lost its lease; it is aborted and its result dropped",
        );
      }
      if (current.control.reason) continue;
      options.abort(current, row ? new Error(row.stop ?? "") : new LeaseLost());
      aborted += 1;
    }
    return { aborted, given_back: released };
  }

  async function releaseUnknown(rows: readonly Held[]): Promise<number> {
    const now = performance.now();
    const seenBefore = new Map(unknown);
    unknown.clear();
    const overdue: Held[] = [];
    for (const row of rows) {
      if (inFlight.has(row.fence) || options.isPreparing(row.fence)) continue;
      const since = seenBefore.get(row.fence) ?? now;
      unknown.set(row.fence, since);
      if (now - since >= UNKNOWN_SHARE * intervalMs) overdue.push(row);
    }
    for (const fence of unsettled) if (!unknown.has(fence)) unsettled.delete(fence); // Another process has it, or it has ended.
    if (overdue.length === 0) return 0;
    const [ran, neverRan] = [overdue.filter(hasRun), overdue.filter((row) => !hasRun(row))];
    if (neverRan.length > 0) await options.release(neverRan);
    if (ran.length > 0) await options.lose(ran);
    for (const { fence } of overdue) {
      unknown.delete(fence);
      unsettled.delete(fence);
    }
    logReleased(neverRan, "items that were held but not in flight were released");
    logReleased(ran, "items whose result could not be written were released");
    options.onReleased();
    return overdue.length;
  }

  const hasRun = ({ fence }: Held) => unsettled.has(fence);

  function logReleased(items: readonly Held[], message: string): void {
    const [first] = items;
    if (first) log.warn({ worker: name, items: items.length, first: options.fields(first) }, message);
  }

  return {
    service,
    answerLost,
    resultLost(fence) {
      if (options.held) unsettled.add(fence);
      answerLost();
    },
  };
}
