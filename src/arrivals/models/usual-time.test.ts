import { expect, test } from "vitest";
import { DAY_MS, HOUR_MS } from "../../kernel/time/units.ts";
import { usualDelays } from "./usual-time.ts";

/** Days with the hours after their end at which they came. */
const days = (...hours: number[]) =>
  hours.map((hour, day) => ({ endMs: day * DAY_MS, atMs: day * DAY_MS + hour * HOUR_MS }));
const delays = (arrived: ReturnType<typeof days>) => usualDelays(arrived, DAY_MS).map((ms) => ms / HOUR_MS);

test("days that came one by one have their delays, in whatever order they are read", () => {
  expect(delays(days(5, 6, 4))).toEqual([5, 6, 4]);
  expect(delays(days(5, 6, 4).toReversed())).toEqual([5, 6, 4]);
});

test("days that were loaded together say nothing about when one usually comes", () => {
  // Ten days at one moment, 230 days later.
  const together = Array.from({ length: 10 }, (_, day) => ({ endMs: day * DAY_MS, atMs: 240 * DAY_MS }));
  expect(delays(together)).toEqual([]);
  // The last five days were repaired on one morning; those before came as usual.
  const repaired = days(5, 5, 6, 5).concat(
    [4, 5, 6, 7, 8].map((day) => ({ endMs: day * DAY_MS, atMs: 9 * DAY_MS + day * 60_000 })),
  );
  expect(delays(repaired)).toEqual([5, 5, 6, 5]);
});

test("one day that came months later is no usual day", () => {
  expect(delays(days(24 * 200))).toEqual([]);
  expect(delays(days(48, 49, 50))).toEqual([48, 49, 50]);
});
