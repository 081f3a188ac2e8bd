/**
 * What arrived at a simulator: the time of every request by its rate key, the worst second, and how many were open at once. A
 * test asserts on it that a client kept a limit.
 */
import { SECOND_MS } from "../../kernel/time/units.ts";

/** A limit as the real service states it: requests in an interval, and open requests. */
export interface Limit {
  requests: number;
  intervalMs: number;
  concurrency?: number | undefined;
}

export interface KeyTraffic {
  requests: number;
  /** How many of them were over the limit. */
  refused: number;
  /** The largest number of arrivals in any second. */
  worstSecond: number;
  concurrencyMax: number;
}

export interface TrafficSummary {
  requests: number;
  concurrencyMax: number;
  /** The number of answers by status; `lost` for those that the client did not get whole. */
  answers: Record<string, number>;
  keys: Record<string, KeyTraffic>;
}

export interface Arrival {
  /** Whether the limit lets it in; counted as refused if not. */
  admit(limit: Limit): boolean;
  /** Requests of the key in the last interval, this one included. */
  countIn(intervalMs: number): number;
  /** The answer has ended. */
  leave(status: number | "lost"): void;
}

export interface Traffic {
  arrive(key: string, atMs: number): Arrival;
  summary(): TrafficSummary;
  /** The times of the arrivals of a key, in milliseconds of the server's monotonic clock. */
  arrivals(key: string): readonly number[];
  reset(): void;
}

/** More arrivals than this are counted but not kept. */
const ARRIVALS_MAX = 1_000_000;

interface KeyState extends KeyTraffic {
  arrivals: number[];
  /** The index in `arrivals` where the last second begins. */
  secondStart: number;
  admitted: number[];
  open: number;
}

export function createTraffic(): Traffic {
  let keys = new Map<string, KeyState>();
  let answers = new Map<string, number>();
  let open = 0;
  let concurrencyMax = 0;

  function stateOf(key: string): KeyState {
    let state = keys.get(key);
    if (!state) {
      state = {
        requests: 0,
        refused: 0,
        worstSecond: 0,
        concurrencyMax: 0,
        arrivals: [],
        secondStart: 0,
        admitted: [],
        open: 0,
      };
      keys.set(key, state);
    }
    return state;
  }

  function arrive(key: string, atMs: number): Arrival {
    const state = stateOf(key);
    state.requests += 1;
    state.open += 1;
    open += 1;
    concurrencyMax = Math.max(concurrencyMax, open);
    state.concurrencyMax = Math.max(state.concurrencyMax, state.open);
    note(state, atMs);
    let present = true;
    return {
      countIn: (intervalMs) => state.admitted.filter((time) => atMs - time < intervalMs).length + 1,
      admit({ requests, intervalMs, concurrency }) {
        while (state.admitted[0] !== undefined && atMs - state.admitted[0] >= intervalMs) state.admitted.shift();
        const admitted = state.admitted.length < requests && (concurrency === undefined || state.open <= concurrency);
        if (admitted) state.admitted.push(atMs);
        else state.refused += 1;
        return admitted;
      },
      leave(status) {
        if (!present) return;
        present = false;
        state.open -= 1;
        open -= 1;
        answers.set(String(status), (answers.get(String(status)) ?? 0) + 1);
      },
    };
  }

  return {
    arrive,
    arrivals: (key) => keys.get(key)?.arrivals ?? [],
    summary: () => ({
      requests: [...keys.values()].reduce((sum, state) => sum + state.requests, 0),
      concurrencyMax,
      answers: Object.fromEntries(answers),
      keys: Object.fromEntries(
        [...keys].map(([key, { requests, refused, worstSecond, concurrencyMax: most }]) => [
          key,
          { requests, refused, worstSecond, concurrencyMax: most },
        ]),
      ),
    }),
    reset() {
      keys = new Map();
      answers = new Map();
      concurrencyMax = open;
    },
  };
}

function note(state: KeyState, atMs: number): void {
  if (state.arrivals.length >= ARRIVALS_MAX) return;
  state.arrivals.push(atMs);
  while (atMs - (state.arrivals[state.secondStart] ?? atMs) >= SECOND_MS) state.secondStart += 1;
  state.worstSecond = Math.max(state.worstSecond, state.arrivals.length - state.secondStart);
}
