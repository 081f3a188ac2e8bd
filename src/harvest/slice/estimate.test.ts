/** Sizes of slices: which basis counts, what a first page tells, and how wide slices are made. */
import { describe, expect, test } from "vitest";
import { DAY_MS, HOUR_MS } from "../../kernel/time/units.ts";
import type { WindowSpec } from "../spec/snapshot.ts";
import { estimateOf, sampledSize, widthFor } from "./estimate.ts";

test("the most reliable basis counts", () => {
  const known = { total: 1, hint: 2, sample: 3, history: 4 };
  expect(estimateOf(known)).toEqual({ records: 1, basis: "TOTAL" });
  expect(estimateOf({ ...known, total: undefined })).toEqual({ records: 2, basis: "HINT" });
  expect(estimateOf({ sample: 3, history: 4 })).toEqual({ records: 3, basis: "SAMPLE" });
  expect(estimateOf({ history: 0 })).toEqual({ records: 0, basis: "HISTORY" });
  expect(estimateOf({})).toBeUndefined();
});

describe("a first page", () => {
  const day = { from: new Date("2026-08-01T00:00:00Z"), to: new Date("2026-08-02T00:00:00Z") };
  const at = (time: string) => new Date(`2026-08-01T${time}Z`);
  const ordered = { monotone: true, order: "ascending" } as const;
  const page = { records: 100, earliest: at("00:00:00"), latest: at("06:00:00") };

  test("that covers a quarter of the window lets expect four times its records", () => {
    expect(sampledSize(ordered, day, page)).toBe(400);
    const newest = { records: 100, earliest: at("18:00:00"), latest: at("23:00:00") };
    expect(sampledSize({ ...ordered, order: "descending" }, day, newest)).toBe(400);
  });

  test("is bounded: all records at the first instant but one do not make billions", () => {
    expect(sampledSize(ordered, day, { ...page, latest: new Date(day.from.getTime() + 1) })).toBe(1_000_000);
  });

  test("tells nothing without an order, without times, at one instant, or outside of the window", () => {
    expect(sampledSize({ ...ordered, monotone: false }, day, page)).toBeUndefined();
    expect(sampledSize(ordered, day, { ...page, latest: undefined })).toBeUndefined();
    expect(sampledSize(ordered, day, { ...page, latest: day.from })).toBeUndefined();
    expect(sampledSize(ordered, day, { ...page, latest: new Date("2026-08-03T00:00:00Z") })).toBeUndefined();
  });
});

describe("the width of slices", () => {
  const window = {
    granularityMs: HOUR_MS,
    align: "hour",
    minWindowMs: HOUR_MS,
    maxWindowMs: DAY_MS,
  } as WindowSpec;
  const perDay = (records: number) => records / DAY_MS;

  test.each([
    [900, 24],
    [1_000, 24],
    [1_001, 12],
    // A fifth of a day is no whole number of hours.
    [4_500, 4],
    [10_000_000, 1],
  ])("of %i records a day, with 1,000 in a slice, is %i hours", (records, hours) => {
    expect(widthFor(window, perDay(records), 1_000)).toBe(hours * HOUR_MS);
  });

  test("is never below `minWindow`, and a whole number of units", () => {
    expect(widthFor({ ...window, minWindowMs: 5 * HOUR_MS }, perDay(50_000), 1_000)).toBe(6 * HOUR_MS);
    expect(
      widthFor(
        { ...window, maxWindowMs: 7 * DAY_MS, granularityMs: DAY_MS, align: "day", minWindowMs: 2 * DAY_MS },
        perDay(500),
        1_000,
      ),
    ).toBe(2 * DAY_MS);
  });
});
