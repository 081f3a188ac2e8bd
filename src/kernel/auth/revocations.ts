/**
 * Tells requests that stay open, such as streams, when the key or session that let them in has ended. A hint says that some
 * have ended; a poll finds those whose hint was lost.
 */

export interface Revocations {
  /** Calls `onEnd` once. Returns what ends the watch. */
  watch(id: string, onEnd: () => void): () => void;
  /** Looks now; for a hint. */
  look(): void;
}

const POLL_MS = 10_000;

export function createRevocations(options: {
  /** Those of the watched ids that have ended. */
  ended(ids: string[]): Promise<readonly string[]>;
}): Revocations {
  const watched = new Map<string, Set<() => void>>();
  let timer: NodeJS.Timeout | undefined;
  let looking: Promise<void> | undefined;
  let lookAgain = false;

  async function tellEnded(): Promise<void> {
    do {
      lookAgain = false;
      for (const id of await options.ended([...watched.keys()])) {
        const listeners = watched.get(id) ?? [];
        watched.delete(id);
        for (const onEnd of listeners) onEnd();
      }
    } while (lookAgain);
  }

  function look(): void {
    clearTimeout(timer);
    timer = undefined;
    if (watched.size === 0) return;
    timer = setTimeout(look, POLL_MS).unref();
    lookAgain = true;
    looking ??= tellEnded()
      .catch(() => {}) // The database is away. The next poll looks again.
      .finally(() => {
        looking = undefined;
      });
  }

  return {
    look,
    watch(id, onEnd) {
      const listeners = watched.get(id) ?? new Set();
      watched.set(id, listeners.add(onEnd));
      timer ??= setTimeout(look, POLL_MS).unref();
      return () => {
        listeners.delete(onEnd);
        if (listeners.size === 0 && watched.get(id) === listeners) watched.delete(id);
      };
    },
  };
}
