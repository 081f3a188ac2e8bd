/**
 * Compares what the database says a worker's session holds with what the worker has in flight: every few seconds while
 * something runs, and for a minute after an answer was lost. A run whose item is no longer held is aborted; an item that is
 * held and not in flight is given back, for nobody else takes back what a live session holds.
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
  /** Somebody else decides what becomes of the item: the result is dropped. */
  isLost: boolean;
  /** Goes on without the run. */
  abandon(): void;
}

export interface HeldCheckOptions<Item, Held extends HeldRow> {
  name: string;
  log: ServiceLog;
  onRun?: OnRun;
  intervalMs: number;
  /** By fence. */
  inFlight: ReadonlyMap<string, InFlight<Item>>;
  /** Left out for leases that expire by themselves: then there is nothing to check. */
  held: (() => Promise<Held[]>) | undefined;
  abort(current: InFlight<Item>, reason: Error): void;
  /** Gives back items of which this process has not run any. */
  release(items: readonly Held[]): Promise<unknown>;
  /** Gives back items that ran without a result that could be written. */
  lose(items: readonly Held[]): Promise<unknown>;
  fields(item: Held | Item): object;
  onGivenBack(): void;
}

export interface HeldCheck {
  readonly service: Service;
  /** The answer to a write that may have leased items to this session was lost. */
  answerLost(): void;
  /** The item ran, and its result could not be written. */
  resultLost(fence: string): void;
}

/** How long checks go on after a lost answer: longer than the database may take to finish the statement. */
const UNCERTAIN_MS = 60_000;
/** A held item that is not in flight may be about to be. After this share of the pause between checks it is not. */
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
    let givenBack = 0;
    try {
      rows = await options.held();
      givenBack = await giveBackUnknown(rows);
    } catch (error) {
      if (isUncertain) answerLost(); // Not before a check has succeeded.
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
    return { aborted, given_back: givenBack };
  }

  async function giveBackUnknown(rows: readonly Held[]): Promise<number> {
    const now = performance.now();
    const seenBefore = new Map(unknown);
    unknown.clear();
    const overdue: Held[] = [];
    for (const row of rows) {
      if (inFlight.has(row.fence)) continue;
      const since = seenBefore.get(row.fence) ?? now;
      unknown.set(row.fence, since);
      if (now - since >= UNKNOWN_SHARE * intervalMs) overdue.push(row);
    }
    for (const fence of unsettled) if (!unknown.has(fence)) unsettled.delete(fence); // Somebody else has it.
    if (overdue.length === 0) return 0;
    const [ran, neverRan] = [overdue.filter(hasRun), overdue.filter((row) => !hasRun(row))];
    if (neverRan.length > 0) await options.release(neverRan);
    if (ran.length > 0) await options.lose(ran);
    for (const { fence } of overdue) {
      unknown.delete(fence);
      unsettled.delete(fence);
    }
    const [first] = overdue.map(options.fields);
    log.warn({ worker: name, items: overdue.length, first }, "items that were held but not run were given back");
    options.onGivenBack();
    return overdue.length;
  }

  const hasRun = ({ fence }: Held) => unsettled.has(fence);

  return {
    service,
    answerLost,
    resultLost(fence) {
      unsettled.add(fence);
      answerLost();
    },
  };
}
