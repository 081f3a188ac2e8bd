/**
 * Limits how often one address may present keys that nobody made: each costs a look-up in the database, and whoever sends
 * them has no key whose rate limit could hold them back. Only such failures count, and only keys that this process has not
 * seen to be good are refused for them, so that one guesser behind a proxy cannot lock out the workers who share its
 * address. Look-ups still under way do not count: a fleet whose keys all arrive right after a start must not be refused.
 */

import { kernelError } from "../errors.ts";
import type { Clock } from "../time/clock.ts";

export interface Guesses {
  /** Throws if the address has used up its failures; call it before a look-up. */
  check(address: string): void;
  /** Call it after a look-up that found nobody. */
  count(address: string): void;
}

const FAILURES_PER_WINDOW_MAX = 60;
const WINDOW_MS = 60_000;
const ADDRESSES_MAX = 10_000;

export function createGuesses({ clock }: { clock: Clock }): Guesses {
  /** In the order in which their windows began. */
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
      windows.delete(address); // So that the new window stands last.
      const [oldest] = windows.keys();
      if (windows.size >= ADDRESSES_MAX && oldest !== undefined) windows.delete(oldest);
      windows.set(address, { failures: 1, until: clock.now() + WINDOW_MS });
    },
  };
}
