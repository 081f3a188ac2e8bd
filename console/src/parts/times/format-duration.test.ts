import { expect, test } from "vitest";
import { common } from "../../words/common.ts";
import { formatDuration, relativeText } from "./format-duration.ts";

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

test("a duration has the units of its language", () => {
  const all = [0, 2_300, 12_000, 245_000, 11_520_000, 172_800_000];
  expect(all.map((ms) => formatDuration(ms, common.en))).toEqual([
    "0 ms",
    "2.3 s",
    "12 s",
    "4 m 5 s",
    "3 h 12 m",
    "2 d",
  ]);
  expect(all.map((ms) => formatDuration(ms, common.zh))).toEqual([
    "0 毫秒",
    "2.3 秒",
    "12 秒",
    "4 分 5 秒",
    "3 小时 12 分",
    "2 天",
  ]);
  expect(relativeText(-79_000, false, common.zh)).toBe("1 分 19 秒前");
});
