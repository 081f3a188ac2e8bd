/**
 * Looks up who holds a secret by its hash. To avoid a statement for every request, what was found is cached for some seconds.
 * Look-ups of others share statements, of which one is in flight at a time, so that a flood of unknown secrets costs the
 * database little.
 */
import { createHash } from "node:crypto";
import { createGroupCommit } from "../data/group-commit.ts";
import type { Clock } from "../time/clock.ts";

export interface HashLookup<Found> {
  find(hash: Buffer): Promise<Found | undefined>;
  /** Drops what is cached, for a hint that something has changed. */
  clear(): void;
}

export interface HashLookupOptions<Found> {
  clock: Clock;
  /** What there is for these hashes, in any order. */
  read(hashes: readonly Buffer[]): Promise<readonly (readonly [hash: Buffer, found: Found])[]>;
}

const CACHE_MS = 10_000;
const CACHED_MAX = 10_000;

export function createHashLookup<Found>({ clock, read }: HashLookupOptions<Found>): HashLookup<Found> {
  const cache = new Map<string, { found: Found; atMs: number }>();
  /** In progress, so that many requests with one secret share a look-up. */
  const lookups = new Map<string, Promise<Found | undefined>>();
  const statements = createGroupCommit<Buffer, Found | undefined>({
    identity: idOf,
    async write(hashes) {
      const all = new Map((await read(hashes)).map(([hash, found]) => [idOf(hash), found]));
      return hashes.map((hash) => all.get(idOf(hash)));
    },
  });
  let clears = 0;

  function lookUp(id: string, hash: Buffer): Promise<Found | undefined> {
    const present = lookups.get(id);
    if (present) return present;
    const lookup = statements.add(hash).finally(() => {
      if (lookups.get(id) === lookup) lookups.delete(id);
    });
    lookups.set(id, lookup);
    return lookup;
  }

  return {
    async find(hash) {
      const id = idOf(hash);
      const known = cache.get(id);
      // The clock may be set back.
      if (known && Math.abs(clock.now() - known.atMs) < CACHE_MS) return known.found;
      const clearsBefore = clears;
      const found = await lookUp(id, hash);
      // After a change meanwhile it may no longer be true, so it is not cached.
      if (found === undefined || clears !== clearsBefore) return found;
      if (cache.size >= CACHED_MAX) cache.clear();
      cache.set(id, { found, atMs: clock.now() });
      return found;
    },
    clear() {
      clears += 1;
      cache.clear();
      lookups.clear(); // One in progress may have read the rows before the change.
    },
  };
}

/** A hash as text, such as the key of a map. */
export function idOf(hash: Buffer): string {
  return hash.toString("base64");
}

/** No slow hash is needed: the secrets have 128 random bits or more and cannot be guessed. */
export function hashOf(secret: string): Buffer {
  return createHash("sha256").update(secret).digest();
}
