/**
 * Limits how many requests with unknown keys, or codes of links, one address may make: from then on it is told to wait. A key is looked up before
 * its address is refused, since behind a proxy all callers may have one address, and a guesser must not lock out the others.
 */

import { kernelError } from "../errors.ts";
import type { Clock } from "../time/clock.ts";

export interface UnknownKeyLimit {
  /** Call it for each unknown key. Throws if the address has sent more than the limit. */
  count(address: string): void;
}

const FAILURES_PER_WINDOW_MAX = 60;
const WINDOW_MS = 60_000;
const ADDRESSES_MAX = 10_000;

export interface UnknownKeyLimitOptions {
  clock: Clock;
  /** What is unknown, for the message. */
  what?: "keys" | "codes";
}

export function createUnknownKeyLimit({ clock, what = "keys" }: UnknownKeyLimitOptions): UnknownKeyLimit {
  /** In the order of the start of their windows. */
  const windows = new Map<string, { failures: number; until: number }>();

  return {
    count(address) {
      const window = windows.get(address);
      if (window && window.until > clock.now()) {
        window.failures += 1;
        if (window.failures <= FAILURES_PER_WINDOW_MAX) return;
        throw kernelError(
          "RATE_LIMITED",
          { limit: FAILURES_PER_WINDOW_MAX, seconds: Math.ceil((window.until - clock.now()) / 1000) },
          { who: "This address", what: `requests with unknown ${what}` },
        );
      }
      windows.delete(address); // So that the new window is the last.
      const [oldest] = windows.keys();
      if (windows.size >= ADDRESSES_MAX && oldest !== undefined) windows.delete(oldest);
      windows.set(address, { failures: 1, until: clock.now() + WINDOW_MS });
    },
  };
}
