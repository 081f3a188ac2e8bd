import { describe, expect, test } from "vitest";
import { barOf, brushed, instantOf, placeOf, ticksOf, timesOf } from "./lanes.ts";

const MINUTE_MS = 60_000;
const utc = () => 0;
/** An hour whose last bucket has just begun. */
const axis = {
  from: "2026-11-16T10:00:00.000Z",
  to: "2026-11-16T11:00:30.000Z",
  bucketMs: MINUTE_MS,
  buckets: 61,
};

describe("the chart of lanes", () => {
  test("has round times on its axis, and no more than fit", () => {
    const times = ticksOf(axis, utc).map(({ atMs }) => new Date(atMs).toISOString().slice(11, 16));
    expect(times).toEqual(["10:00", "10:10", "10:20", "10:30", "10:40", "10:50", "11:00"]);
    expect(ticksOf({ ...axis, from: "2026-11-09T10:00:00.000Z" }, utc).length).toBeLessThanOrEqual(8);
  });

  test("has the midnights of the chosen zone on the axis of a week, also where its clock changes", () => {
    const week = { ...axis, from: "2026-10-21T10:00:00.000Z", to: "2026-10-28T10:00:00.000Z" };
    // Berlin: an hour less from 2026-10-25 01:00 UTC on.
    const berlin = (atMs: number) => (atMs < Date.parse("2026-10-25T01:00:00Z") ? 120 : 60) * MINUTE_MS;
    const times = ticksOf(week, berlin).map(({ atMs }) => new Date(atMs).toISOString().slice(5, 16));
    const before = ["10-21T22:00", "10-22T22:00", "10-23T22:00", "10-24T22:00"];
    const after = ["10-25T23:00", "10-26T23:00", "10-27T23:00"];
    expect(times).toEqual([...before, ...after]);
    const instants = ["2026-10-25T01:30Z", "2026-10-25T12:00Z"].map((local) => instantOf(Date.parse(local), berlin));
    expect(instants.map((at) => new Date(at).toISOString().slice(5, 16))).toEqual(["10-24T23:30", "10-25T11:00"]);
  });

  test("cuts the last bucket at the end of the range", () => {
    const [from, to] = timesOf(axis, 60);
    expect(to - from).toBe(30_000);
    const { left, width } = placeOf(axis, 60);
    expect(left + width).toBeCloseTo(1);
  });

  test("shows one failure among many, and never more than the bar", () => {
    const rare = barOf({ ended: 100, failed: 1, stopped: 0 }, 100);
    expect(rare.failed).toBeGreaterThan(0.1);
    expect(rare.failed + rare.succeeded).toBeCloseTo(1);
    expect(barOf({ ended: 3, failed: 3, stopped: 0 }, 3)).toEqual({ failed: 1, stopped: 0, succeeded: 0 });
  });

  test("chooses whole buckets, whichever way it is dragged, and at least one", () => {
    const chosen = { from: "2026-11-16T10:15:00.000Z", to: "2026-11-16T10:31:00.000Z" };
    expect(brushed(axis, 0.25, 0.5)).toEqual(chosen);
    expect(brushed(axis, 0.5, 0.25)).toEqual(chosen);
    expect(brushed(axis, 0.25, 0.25)).toEqual({ ...chosen, to: "2026-11-16T10:16:00.000Z" });
    expect(brushed(axis, -1, 2)).toEqual({ from: axis.from, to: axis.to });
  });
});
