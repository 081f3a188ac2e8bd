/**
 * The present by the clock of the server, which has made the times that pages show: a browser with a wrong clock would otherwise
 * show what has just happened as something to come.
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
      // What is known fits, mostly: the time of the reply and the cut to seconds must not move the clock.
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

/** The present in steps, with one timer for all who show it. */
export function createTicker(now: () => number, stepMs: number): Ticker {
  const listeners = new Set<() => void>();
  let timer: ReturnType<typeof setInterval> | undefined;
  let current = now();
  return {
    get() {
      // Without a listener no timer has kept it up to date.
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
