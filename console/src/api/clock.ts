/**
 * The current time by the server's clock, which also made the timestamps on the page. With a wrong browser clock, recent events
 * would otherwise appear to be in the future.
 */
export interface ServerClock {
  now(): number;
  /** Learns from the header `date` of a reply, which has whole seconds, to a request that was sent at `sentMs`. */
  learn(date: string | null, sentMs: number): void;
}

/** `own` is the clock of the browser. */
export function createServerClock(own: () => number): ServerClock {
  let offsetMs = 0;
  return {
    now: () => own() + offsetMs,
    learn(date, sentMs) {
      const serverMs = Date.parse(date ?? "");
      if (Number.isNaN(serverMs)) return;
      const [least, most] = [serverMs - own(), serverMs + 1_000 - sentMs];
      // Within the error of the header (whole seconds) and the request time, the known offset is kept.
      if (offsetMs >= least && offsetMs <= most) return;
      offsetMs = least <= 0 && most >= 0 ? 0 : (least + most) / 2;
    },
  };
}

export const serverClock = createServerClock(Date.now);

export interface Ticker {
  get(): number;
  subscribe(listener: () => void): () => void;
}

/** The current time in steps, with one timer for all components. */
export function createTicker(now: () => number, stepMs: number): Ticker {
  const listeners = new Set<() => void>();
  let timer: ReturnType<typeof setInterval> | undefined;
  let current = now();
  return {
    get() {
      // Without listeners the timer was stopped, so the value is stale.
      if (timer === undefined && Math.abs(now() - current) >= stepMs) current = now();
      return current;
    },
    subscribe(listener) {
      listeners.add(listener);
      timer ??= setInterval(() => {
        current = now();
        for (const one of listeners) one();
      }, stepMs);
      return () => {
        listeners.delete(listener);
        if (listeners.size > 0) return;
        clearInterval(timer);
        timer = undefined;
      };
    },
  };
}
