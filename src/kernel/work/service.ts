/**
 * The base of every background loop: `runOnce` does the work that there is and returns counts. The service calls it after a
 * hint and otherwise at an interval, one call at a time, backs off while it fails, and drains on `stop`. A hint shortens the
 * pause after a failure, but not below a second, so that many hints cannot make a failing loop spin.
 */
import { setMaxListeners } from "node:events";

export type Counts = Readonly<Record<string, number>>;

export type OnRun = (service: string, outcome: "succeeded" | "failed", counts: Counts) => void;

export interface ServiceLog {
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
}

export interface ServiceOptions {
  name: string;
  /** The longest pause between two runs. */
  intervalMs: number;
  runOnce(signal: AbortSignal): Promise<Counts>;
  log: ServiceLog;
  /** Whether to run again at once, for example because the last batch was full. */
  more?: (counts: Counts) => boolean;
  /** Milliseconds until the next due item that the last run found, if that is before the end of the interval. */
  nextDueMs?: () => number | undefined;
  /** For metrics: after each run, failed ones included. */
  onRun?: OnRun;
}

export interface Service {
  readonly name: string;
  start(): void;
  /** Requests a run; several calls before it starts are one. */
  wake(): void;
  /** Ends the loop after the present run. */
  stop(): Promise<void>;
  /** One run, outside the loop: for tests and for draining. */
  runOnce(): Promise<Counts>;
  /** Resolves after the next run that started after this call: a signal for tests. */
  nextRun(): Promise<Counts>;
}

/** Short enough that after an outage of the database, heartbeats resume well before a lease expires. */
const BACKOFF_MAX_MS = 5_000;
/** The pause after the first failure, and the least after any: measured without it, hints every 10 ms made 94 runs a second. */
const BACKOFF_MIN_MS = 1_000;
/** An item that stays due must not make the loop spin. */
const DUE_PAUSE_MIN_MS = 10;

export function createService(options: ServiceOptions): Service {
  const { name, intervalMs, log } = options;
  const stopping = new AbortController();
  setMaxListeners(0, stopping.signal); // A run passes its signal to a whole batch; by default Node warns of a leak after ten listeners.
  let loop: Promise<void> | undefined;
  let wakeRequested = false;
  let isWakeable = false;
  let endPause: (() => void) | undefined;
  let failuresInARow = 0;
  let observers: { resolve: (counts: Counts) => void; begun: boolean }[] = [];

  async function runOnce(): Promise<Counts> {
    for (const observer of observers) observer.begun = true;
    const counts = await options.runOnce(stopping.signal);
    options.onRun?.(name, "succeeded", counts);
    for (const { resolve } of observers.filter(({ begun }) => begun)) resolve(counts);
    observers = observers.filter(({ begun }) => !begun);
    return counts;
  }

  async function run(): Promise<void> {
    while (!stopping.signal.aborted) {
      wakeRequested = false;
      let pauseMs = intervalMs;
      let pauseMinMs = 0;
      try {
        const counts = await runOnce();
        failuresInARow = 0;
        if (options.more?.(counts)) pauseMs = 0;
        else pauseMs = Math.min(intervalMs, Math.max(DUE_PAUSE_MIN_MS, options.nextDueMs?.() ?? intervalMs));
      } catch (error) {
        failuresInARow += 1;
        options.onRun?.(name, "failed", {});
        pauseMinMs = BACKOFF_MIN_MS;
        pauseMs = Math.min(BACKOFF_MIN_MS * 2 ** (failuresInARow - 1), BACKOFF_MAX_MS);
        log.error(
          { err: error, service: name, failuresInARow, pauseMs },
          "a background run failed and will be tried again",
        );
      }
      if (pauseMinMs > 0) await pause(pauseMinMs);
      if (pauseMs > pauseMinMs && !wakeRequested) {
        isWakeable = true;
        await pause(pauseMs - pauseMinMs);
        isWakeable = false;
      }
    }
  }

  async function pause(ms: number): Promise<void> {
    if (stopping.signal.aborted) return;
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, ms);
      endPause = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }

  function wake(): void {
    wakeRequested = true;
    if (isWakeable) endPause?.();
  }

  return {
    name,
    wake,
    runOnce,
    start() {
      loop ??= run();
    },
    async stop() {
      stopping.abort();
      endPause?.();
      await loop;
    },
    nextRun() {
      return new Promise((resolve) => observers.push({ resolve, begun: false }));
    },
  };
}
