/**
 * Random numbers from a seed, so that whoever has it gets the same ones again: for data sets of simulators and for tests. The
 * generator is mulberry32, with 32 bits of state; not for secrets.
 */

/** Answers numbers from 0 up to, but not including, 1. */
export function mulberry32(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
