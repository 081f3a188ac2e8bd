/**
 * The injected clock, for decisions in memory: cache ages, rate windows, log times. Leases and due times use the database's
 * clock instead, because all processes share it.
 */

export interface Clock {
  /** Milliseconds since the epoch. */
  now(): number;
}

export const systemClock: Clock = { now: () => Date.now() };
