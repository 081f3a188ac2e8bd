import { expect, test } from "vitest";
import { common } from "../../words/common.ts";
import { relativeText } from "./durations.ts";

test.each([
  ["what has happened is never ahead, whatever the clocks say", 95_000, false, "just now"],
  ["what happened a moment ago is not counted in milliseconds", -800, false, "just now"],
  ["what has happened has an age", -95_000, false, "1 m 35 s ago"],
  ["what is due is ahead", 95_000, true, "in 1 m 35 s"],
  ["what is due at this moment says so", -800, true, "now"],
  ["what is overdue says since when", -95_000, true, "due 1 m 35 s ago"],
])("%s", (_, aheadMs, isDue, expected) => {
  expect(relativeText(aheadMs, isDue, common.en)).toBe(expected);
});
