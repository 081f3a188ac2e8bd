/** Randomness from a seed, so that a failed run can be repeated: set MILLRACE_TEST_SEED to the one that it printed. */

export interface Random {
  /** For the message of a failure. */
  seed: number;
  /** A whole number from `min` to `max`, both included. */
  between(min: number, max: number): number;
  chance(probability: number): boolean;
}

export function seededRandom(): Random {
  const seed = Number(process.env["MILLRACE_TEST_SEED"] ?? Math.trunc(Math.random() * 2 ** 31));
  let state = seed;
  // mulberry32
  function next(): number {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  }
  return {
    seed,
    between: (min, max) => min + Math.floor(next() * (max - min + 1)),
    chance: (probability) => next() < probability,
  };
}
