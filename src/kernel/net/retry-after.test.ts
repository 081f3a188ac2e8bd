import { expect, test } from "vitest";
import { HOUR_MS } from "../time/units.ts";
import { retryAfterMs } from "./retry-after.ts";

const now = Date.parse("2025-12-19T08:00:00Z");

test.each([
  ["120", 120_000],
  ["1.5", 1_500],
  [" 7 ", 7_000],
  ["0", 0],
  ["999999999", 3_600_000],
  ["Fri, 19 Dec 2025 08:00:30 GMT", 30_000],
  ["Fri, 19 Dec 2025 07:00:00 GMT", 0],
  ["Fri, 19 Dec 2035 08:00:00 GMT", 3_600_000],
  ["-5", 0],
  ["soon", 0],
  ["Fri, 99 Nov 2025", 0],
  [undefined, 0],
])("Retry-After: %s is %d ms", (header, ms) => {
  expect(retryAfterMs(header, now, HOUR_MS)).toBe(ms);
});
