/**
 * Maps moments of the database's clock to the process's monotonic clock. An answer takes an unknown time to arrive, so the
 * difference of the clocks is taken from the fastest answer: a moment is then never mapped to an earlier one, and the delay
 * of a slow answer can be told.
 */

/** How much of the distance to a slower answer is believed, so that clocks may drift. */
const FORGET_SHARE = 0.02;
/** A larger distance is a clock that was set. */
const SET_MS = 1_000;
/** The first answers of a process are slow: they open connections, and code is not compiled yet. */
const FIRST_ANSWERS_MAX = 16;
/** An answer this fast cannot have been delayed by more. */
const FAST_MS = 3;

export interface ClockOffset {
  /** Asks for the time until the offset is known; once for a process. */
  ready(): Promise<void>;
  /** A time of the database that has come at this moment. */
  learn(databaseMs: number): void;
  toLocal(databaseMs: number): number;
}

/** `now` is the local clock. */
export function createClockOffset(askTime: () => Promise<number>, now: () => number): ClockOffset {
  let offset = Number.NEGATIVE_INFINITY;
  let known: Promise<void> | undefined;

  function learn(databaseMs: number): void {
    const seen = databaseMs - now();
    const wasSet = offset - seen > SET_MS;
    offset = seen >= offset || wasSet ? seen : offset - (offset - seen) * FORGET_SHARE;
  }

  async function ask(): Promise<void> {
    for (let asked = 0; asked < FIRST_ANSWERS_MAX; asked += 1) {
      const started = now();
      learn(await askTime());
      if (now() - started <= FAST_MS) return;
    }
  }

  return {
    ready() {
      known ??= ask().catch((error: unknown) => {
        known = undefined;
        throw error;
      });
      return known;
    },
    learn,
    toLocal: (databaseMs) => databaseMs - offset,
  };
}
