/**
 * The shape of every background loop: `runOnce` does what there is to do and returns counts; the service calls it on a
 * wake-up hint and otherwise at an interval, one call at a time, backs off while it fails, and drains on `stop`. A hint
 * shortens the pause after a failure, but not below a second: many hints must not turn a failing loop into a spin.
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
  /** The longest pause between two runs, wake-ups apart. */
  intervalMs: number;
  runOnce(signal: AbortSignal): Promise<Counts>;
  log: ServiceLog;
  /** Whether to run again at once, because the last run found a full batch. */
  more?: (counts: Counts) => boolean;
  /** Milliseconds until something is due that the last run knew of, if that is before the interval ends. */
  nextDueMs?: () => number | undefined;
  /** For metrics: after each run, failed ones included. */
  onRun?: OnRun;
}

export interface Service {
  readonly name: string;
  start(): void;
  /** Asks for a run soon; many calls before it begins are one. */
  wake(): void;
  /** Ends the loop after the run under way. */
  stop(): Promise<void>;
  /** One run, outside the loop: for tests and for draining. */
  runOnce(): Promise<Counts>;
  /** Resolves after the next run that began after this call: a signal for tests. */
  nextRun(): Promise<Counts>;
}

/** So short that after an outage of the database reclaims and heartbeats are back well before a lease runs out. */
const BACKOFF_MAX_MS = 5_000;
/** The pause after the first failure, and the least after any: measured without it, hints every 10 ms made 94 runs a second. */
const BACKOFF_MIN_MS = 1_000;
/** Something that is due but does not go away must not turn the loop into a spin. */
const DUE_PAUSE_MIN_MS = 10;

export function createService(options: ServiceOptions): Service {
  const { name, intervalMs, log } = options;
  const stopping = new AbortController();
  setMaxListeners(0, stopping.signal); // A run hands its signal to a whole batch; Node would take that for a leak.
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
