/**
 * Whether the server answers, and since when it does not. A request that got no answer asks once more at once; if that fails, too, the
 * server is away, and is asked again until it answers. Any answer to any request ends it.
 */
export interface Reach {
  /** When the first request got no answer; undefined while the server answers. */
  awaySince(): number | undefined;
  subscribe(listener: () => void): () => void;
  answered(): void;
  /** At this time. */
  unanswered(atMs: number): void;
}

/** `probe` asks for something small, and reports what came of it like every request. */
export function createReach(probe: () => Promise<void>, wait: () => Promise<void>): Reach {
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
    awaySince: () => (isAway ? firstMs : undefined),
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
