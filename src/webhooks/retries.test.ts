import { expect, test } from "vitest";
import { nextTryMs } from "./retries.ts";

test("waits double from a second on, for as many retries as were asked for", () => {
  expect([1, 2, 3, 4].map((failures) => nextTryMs(3, failures))).toEqual([1_000, 2_000, 4_000, undefined]);
  expect(nextTryMs(0, 1)).toBeUndefined();
  expect(nextTryMs(20, 20)).toBe(3_600_000);
});

test("a receiver may ask for a longer wait, and not for a shorter one or one more try", () => {
  expect(nextTryMs(3, 1, 60_000)).toBe(60_000);
  expect(nextTryMs(3, 3, 10)).toBe(4_000);
  expect(nextTryMs(3, 4, 60_000)).toBeUndefined();
});
