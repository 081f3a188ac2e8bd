/**
 * Tracks whether the server responds, and since when it does not. After a request without a response, the server is probed once
 * immediately. If the probe fails too, the server counts as unreachable and is probed until it responds. Any response to any
 * request ends that.
 */
export interface Connectivity {
  /** When the first request got no response; undefined while the server responds. */
  unreachableSince(): number | undefined;
  subscribe(listener: () => void): () => void;
  answered(): void;
  /** A request sent at `atMs` got no response. */
  unanswered(atMs: number): void;
}

/** `probe` asks for something small, and reports what came of it like every request. */
export function createConnectivity(probe: () => Promise<void>, wait: () => Promise<void>): Connectivity {
  const listeners = new Set<() => void>();
  let firstMs: number | undefined;
  let isAway = false;
  /** Requests that end meanwhile change it. */
  const isUnanswered = () => firstMs !== undefined;
  function set(away: boolean): void {
    if (isAway === away) return;
    isAway = away;
    for (const listener of listeners) listener();
  }
  async function watch(): Promise<void> {
    for (await probe(); isUnanswered(); await probe()) {
      set(true);
      await wait();
    }
  }
  return {
    unreachableSince: () => (isAway ? firstMs : undefined),
    subscribe(listener) {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
    answered() {
      firstMs = undefined;
      set(false);
    },
    unanswered(atMs) {
      if (firstMs !== undefined) return;
      firstMs = atMs;
      void watch();
    },
  };
}
