import { expect, test } from "vitest";
import { earlierThan, laterThan, withColumns, zoomedTo } from "./columns.ts";

const days = (count: number) => Array.from({ length: count }, (_, at) => String(20250101 + at));
const MOVED = { from: undefined, to: undefined, at: undefined, until: undefined };

test("the ranges before and after meet the one that is shown, and keep its length", () => {
  const shown = { grain: "day", opTimes: days(3), later: true } as const;
  expect(earlierThan(shown, {})).toEqual({ ...MOVED, to: "20250101", last: undefined });
  expect(laterThan(shown, { to: "20250103", last: 120 })).toEqual({ ...MOVED, from: "20250103", last: 120 });
  expect(laterThan(shown, { from: "20250101", to: "20250103" })).toEqual({ ...MOVED, from: "20250103", last: 3 });
  expect(laterThan({ ...shown, later: false }, {})).toBeUndefined();
});

test("names begin somewhere, periods do not", () => {
  const shown = { grain: null, opTimes: ["a", "b"], later: false };
  expect(earlierThan(shown, {})).toBeUndefined();
  expect(earlierThan(shown, { last: 2 })).toMatchObject({ to: "a" });
  expect(earlierThan(shown, { from: "a" })).toMatchObject({ to: "a" });
  expect(earlierThan({ ...shown, grain: "day", opTimes: [] }, {})).toBeUndefined();
});

test("another number of columns keeps the end, unless that is the newest", () => {
  expect(withColumns(400, days(45), {})).toEqual({ from: undefined, to: undefined, last: 400 });
  expect(withColumns(45, days(400), { from: "20250101" })).toMatchObject({ to: "20250500", last: undefined });
});

test("a zoom shows the columns of a cell in the middle, or as near to it as the map goes", () => {
  const map = days(600);
  expect(zoomedTo(map, 300, 301)).toEqual({ ...MOVED, from: map[279], last: undefined });
  expect(zoomedTo(map, 0, 1)).toMatchObject({ from: map[0] });
  expect(zoomedTo(map, 598, 599)).toMatchObject({ from: map[555] });
});
