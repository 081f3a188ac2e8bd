/**
 * The injected clock, for what is decided in memory: cache ages, rate windows, log times. Leases and due times read the
 * database's clock instead, because only that one is shared by all processes.
 */

export interface Clock {
  /** Milliseconds since the epoch. */
  now(): number;
}

export const systemClock: Clock = { now: () => Date.now() };
