/**
 * Limits how many requests with unknown keys one address may make: each costs a database lookup, and no key's rate limit applies
 * to them. Only failed lookups count, and only keys that this process has not verified before are refused, so that a guesser
 * behind a proxy cannot lock out workers with the same address. Lookups in progress do not count, so that many valid keys may
 * arrive right after a start.
 */

import { kernelError } from "../errors.ts";
import type { Clock } from "../time/clock.ts";

export interface UnknownKeyLimit {
  /** Throws if the address has reached the limit. Call it before a lookup. */
  check(address: string): void;
  /** Call it after a lookup that found no key. */
  count(address: string): void;
}

const FAILURES_PER_WINDOW_MAX = 60;
const WINDOW_MS = 60_000;
const ADDRESSES_MAX = 10_000;

export function createUnknownKeyLimit({ clock }: { clock: Clock }): UnknownKeyLimit {
  /** In the order of the start of their windows. */
  const windows = new Map<string, { failures: number; until: number }>();

  function windowOf(address: string) {
    const window = windows.get(address);
    return window && window.until > clock.now() ? window : undefined;
  }

  return {
    check(address) {
      const window = windowOf(address);
      if (!window || window.failures < FAILURES_PER_WINDOW_MAX) return;
      throw kernelError(
        "RATE_LIMITED",
        { limit: FAILURES_PER_WINDOW_MAX, seconds: Math.ceil((window.until - clock.now()) / 1000) },
        { who: "This address", what: "requests with unknown keys" },
      );
    },

    count(address) {
      const window = windowOf(address);
      if (window) {
        window.failures += 1;
        return;
      }
      windows.delete(address); // So that the new window is the last.
      const [oldest] = windows.keys();
      if (windows.size >= ADDRESSES_MAX && oldest !== undefined) windows.delete(oldest);
      windows.set(address, { failures: 1, until: clock.now() + WINDOW_MS });
    },
  };
}
