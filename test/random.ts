/** Randomness from a seed, so that a failed run can be repeated: set MILLRACE_TEST_SEED to the one that it printed. */
import { mulberry32 } from "../src/kernel/mulberry32.ts";

export interface Random {
  /** For the message of a failure. */
  seed: number;
  /** A whole number from `min` to `max`, both included. */
  between(min: number, max: number): number;
  chance(probability: number): boolean;
}

export function seededRandom(): Random {
  const seed = Number(process.env["MILLRACE_TEST_SEED"] ?? Math.trunc(Math.random() * 2 ** 31));
  const next = mulberry32(seed);
  return {
    seed,
    between: (min, max) => min + Math.floor(next() * (max - min + 1)),
    chance: (probability) => next() < probability,
  };
}
