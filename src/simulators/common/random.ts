/** Random numbers that a seed repeats, so that a data set and its faults are the same in every run. */
import { mulberry32 } from "../../kernel/mulberry32.ts";

export interface Random {
  /** From 0 up to, but not including, 1. */
  next(): number;
  /** A whole number from 0 up to, but not including, `limit`. */
  below(limit: number): number;
  pick<T>(values: readonly [T, ...T[]]): T;
  shuffled<T>(values: readonly T[]): T[];
}

/** Fast enough for 100,000 records at a start. */
export function randomFrom(seed: number): Random {
  const next = mulberry32(seed);
  const below = (limit: number) => Math.floor(next() * limit);
  return {
    next,
    below,
    pick: (values) => values[below(values.length)] ?? values[0],
    shuffled(values) {
      const drawn = values.map((value) => ({ value, place: next() }));
      return drawn.sort((one, other) => one.place - other.place).map(({ value }) => value);
    },
  };
}
