import { expect, test } from "vitest";
import { mulberry32 } from "./mulberry32.ts";

test("a seed repeats its numbers, which are those of the published generator", () => {
  const first = (seed: number) => {
    const next = mulberry32(seed);
    return [next(), next(), next()].map((value) => Math.round(value * 2 ** 32));
  };
  expect(first(0)).toEqual([1_144_304_738, 1_416_247, 958_946_056]);
  expect(first(7)).toEqual(first(7));
  expect(first(-1)).toEqual(first(2 ** 32 - 1));
});
