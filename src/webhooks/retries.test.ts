import { expect, test } from "vitest";
import { nextTryMs, retryAfterMs } from "./retries.ts";

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

const now = Date.parse("2025-12-19T08:00:00Z");

test.each([
  ["120", 120_000],
  [" 7 ", 7_000],
  ["0", 0],
  ["999999999", 3_600_000],
  ["Fri, 19 Dec 2025 08:00:30 GMT", 30_000],
  ["Fri, 19 Dec 2025 07:00:00 GMT", 0],
  ["Fri, 19 Dec 2035 08:00:00 GMT", 3_600_000],
  ["-5", 0],
  ["1.5", 0],
  ["soon", 0],
  ["Fri, 99 Nov 2025", 0],
  [undefined, 0],
])("Retry-After: %s asks for %d ms", (header, ms) => {
  expect(retryAfterMs(header, now)).toBe(ms);
});
