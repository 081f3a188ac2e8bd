/**
 * Tells requests that stay open, such as streams, when the key that let them in is revoked. A hint says that some key was
 * revoked; a poll finds revocations whose hint was lost.
 */
import type { Db } from "../data/db.ts";
import { statement } from "../data/statement.ts";

export interface Revocations {
  /** Calls `onRevoked` once. Returns what ends the watch. */
  watch(keyId: string, onRevoked: () => void): () => void;
  /** Looks now; for a hint. */
  look(): void;
}

const POLL_MS = 10_000;

const REVOKED = statement<{ id: string }>(
  "kernel.keys.revoked",
  `select asked.id from unnest($1::uuid[]) asked (id)
   where not exists (select from kernel.api_key k where k.id = asked.id and k.revoked_at is null)`,
);

export function createRevocations({ db }: { db: Db }): Revocations {
  const watched = new Map<string, Set<() => void>>();
  let timer: NodeJS.Timeout | undefined;
  let looking: Promise<void> | undefined;
  let lookAgain = false;

  async function tellRevoked(): Promise<void> {
    do {
      lookAgain = false;
      for (const { id } of await db.rows(REVOKED, [[...watched.keys()]])) {
        const listeners = watched.get(id) ?? [];
        watched.delete(id);
        for (const onRevoked of listeners) onRevoked();
      }
    } while (lookAgain);
  }

  function look(): void {
    clearTimeout(timer);
    timer = undefined;
    if (watched.size === 0) return;
    timer = setTimeout(look, POLL_MS).unref();
    lookAgain = true;
    looking ??= tellRevoked()
      .catch(() => {}) // The database is away. The next poll looks again.
      .finally(() => {
        looking = undefined;
      });
  }

  return {
    look,
    watch(keyId, onRevoked) {
      const listeners = watched.get(keyId) ?? new Set();
      watched.set(keyId, listeners.add(onRevoked));
      timer ??= setTimeout(look, POLL_MS).unref();
      return () => {
        listeners.delete(onRevoked);
        if (listeners.size === 0 && watched.get(keyId) === listeners) watched.delete(keyId);
      };
    },
  };
}
