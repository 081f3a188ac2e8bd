/**
 * The distinct ids of a slice, so that repeats on other pages are not counted as records and a source that repeats itself is
 * noticed. Ids are kept as 8 bytes of their hash: a batch stores the hashes of its page, and a run that continues reads them.
 * Among a million ids, two share a hash with a probability of 3 in 100 million.
 */
import { hash } from "node:crypto";

const BYTES = 8;

export interface SeenIds {
  readonly size: number;
  /** The hashes of these keys, and how many of them are new. */
  add(keys: readonly string[]): { hashes: Buffer; added: number };
  /** Adds the hashes of an earlier batch. */
  addHashes(hashes: Buffer): void;
  clear(): void;
}

export function createSeenIds(): SeenIds {
  const seen = new Set<string>();
  return {
    get size() {
      return seen.size;
    },
    add(keys) {
      const before = seen.size;
      const hashes = Buffer.alloc(keys.length * BYTES);
      for (const [index, key] of keys.entries()) {
        const start = index * BYTES;
        hash("sha256", key, "buffer").copy(hashes, start, 0, BYTES);
        seen.add(hashes.toString("latin1", start, start + BYTES));
      }
      return { hashes, added: seen.size - before };
    },
    addHashes(hashes) {
      for (let start = 0; start + BYTES <= hashes.length; start += BYTES) {
        seen.add(hashes.toString("latin1", start, start + BYTES));
      }
    },
    clear: () => seen.clear(),
  };
}
