import { expect, test } from "vitest";
import { nextTryMs, RETRY_NUM_DEFAULT } from "./retries.ts";

test("waits double from one second on, up to the number of retries", () => {
  expect([1, 2, 3, 4].map((failures) => nextTryMs(3, failures))).toEqual([1_000, 2_000, 4_000, undefined]);
  expect(nextTryMs(0, 1)).toBeUndefined();
  expect(nextTryMs(20, 20)).toBe(3_600_000);
});

test("by default a receiver may be down for four minutes", () => {
  const waits = Array.from({ length: 9 }, (_, index) => nextTryMs(RETRY_NUM_DEFAULT, index + 1));
  expect(waits.slice(0, 3)).toEqual([1_000, 2_000, 4_000]);
  expect(waits[8]).toBeUndefined();
  expect(waits.reduce((sum: number, wait) => sum + (wait ?? 0), 0)).toBe(255_000);
});

test("a receiver can lengthen a wait, but not shorten it or add a retry", () => {
  expect(nextTryMs(3, 1, 60_000)).toBe(60_000);
  expect(nextTryMs(3, 3, 10)).toBe(4_000);
  expect(nextTryMs(3, 4, 60_000)).toBeUndefined();
});
