import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS } from "../../kernel/time/units.ts";
import type { WindowSpec } from "../spec/snapshot.ts";
import {
  boundsOf,
  closedUntil,
  closesAt,
  instantOf,
  inWholeUnits,
  middleOf,
  partPeriods,
  periodAt,
  type Range,
  rangeBefore,
  slicesBackwards,
  slicesOf,
} from "./window.ts";

const DAYS: WindowSpec = {
  supportsUpdatedSince: true,
  watermarkKey: "updated",
  granularityMs: DAY_MS,
  format: "yyyy-MM-dd",
  timezone: "UTC",
  safetyLagMs: 0,
  align: "day",
  minWindowMs: DAY_MS,
  maxWindowMs: DAY_MS,
  monotone: false,
  order: "ascending",
  tolerance: 0,
  boundaryPolicy: "[from,to)",
};
const SECONDS: WindowSpec = { ...DAYS, granularityMs: SECOND_MS, format: "iso", align: "min", minWindowMs: MINUTE_MS };

/** Clocks change there at midnight, by half an hour, just after midnight, or not at all. */
const ZONES = [
  "UTC",
  "Europe/Berlin",
  "America/New_York",
  "America/Sao_Paulo",
  "America/St_Johns",
  "Asia/Beirut",
  "Asia/Kolkata",
  "Australia/Lord_Howe",
];
const windows = fc.record({
  granularityMs: fc.constantFrom(SECOND_MS, MINUTE_MS, 7 * MINUTE_MS, HOUR_MS, 6 * HOUR_MS, DAY_MS, 3 * DAY_MS),
  timezone: fc.constantFrom(...ZONES),
  maxWindowMs: fc.constantFrom(HOUR_MS, 5 * HOUR_MS, DAY_MS, 2 * DAY_MS, 30 * DAY_MS),
  minWindowMs: fc.constantFrom(MINUTE_MS, HOUR_MS, DAY_MS, 2 * DAY_MS),
  align: fc.constantFrom("min" as const, "hour" as const, "day" as const),
  safetyLagMs: fc.constantFrom(0, 10 * MINUTE_MS, 2 * DAY_MS),
});
const grains = fc.constantFrom(undefined, "hour" as const, "day" as const);
const instants = fc.integer({ min: Date.UTC(1985, 0), max: Date.UTC(2035, 0) }).map((ms) => new Date(ms));
const ranges = fc
  .tuple(instants, fc.integer({ min: 1, max: 10 * 24 }))
  .map(([from, hours]) => ({ from, to: new Date(from.getTime() + hours * HOUR_MS) }));

const utc = (text: string) => new Date(`${text}Z`);
const cut = (window: WindowSpec, range: Range, grain?: "hour" | "day") =>
  [...slicesOf(window, range, grain)].map(({ from, to }) => `${from.toISOString()} ${to.toISOString()}`);

describe("boundsOf", () => {
  test("writes the first unit, the last one and the one after it", () => {
    const bounds = boundsOf(DAYS, utc("2026-08-20T00:00"), utc("2026-08-23T00:00"));
    expect(bounds).toEqual({ from: "2026-08-20", until: "2026-08-22", to: "2026-08-23" });
  });

  test.each([
    ["yyyy/MM/dd", { from: "2026/03/29", until: "2026/03/29", to: "2026/03/30" }],
    ["iso", { from: "2026-03-28T23:00:00Z", until: "2026-03-28T23:00:00Z", to: "2026-03-29T22:00:00Z" }],
    ["epochMs", { from: "1774738800000", until: "1774738800000", to: "1774821600000" }],
    ["epochSeconds", { from: "1774738800", until: "1774738800", to: "1774821600" }],
  ])("writes a day of 23 hours as %s", (format, bounds) => {
    const window = { ...DAYS, timezone: "Europe/Berlin", format };
    expect(boundsOf(window, utc("2026-03-28T23:00"), utc("2026-03-29T22:00"))).toEqual(bounds);
  });

  test("writes instants that are no whole seconds", () => {
    const window = { ...SECONDS, granularityMs: 100 };
    const { until } = boundsOf(window, utc("2026-08-20T00:00"), utc("2026-08-20T00:00:01"));
    expect(until).toBe("2026-08-20T00:00:00.900Z");
  });

  test.each([
    ["starts inside a unit", DAYS, "2026-08-20T01:00", "2026-08-21T00:00"],
    ["ends inside a unit", DAYS, "2026-08-20T00:00", "2026-08-21T01:00"],
    ["is empty", DAYS, "2026-08-20T00:00", "2026-08-20T00:00"],
    ["has a format that nobody knows", { ...DAYS, format: "dd.MM." }, "2026-08-20T00:00", "2026-08-21T00:00"],
  ])("refuses a window that %s", (_, window, from, to) => {
    expect(() => boundsOf(window, utc(from), utc(to))).toThrow(RangeError);
  });

  test("bounds of neighbours share no unit and leave none out, and can be read back", () => {
    fc.assert(
      fc.property(windows, ranges, grains, fc.constantFrom("yyyy-MM-dd", "iso"), (given, range, grain, format) => {
        // A date names no part of a day.
        const window = { ...DAYS, ...given, format, ...(format === "iso" ? {} : { granularityMs: DAY_MS }) };
        const whole = inWholeUnits(window, range);
        let expected = boundsOf(window, whole.from, whole.to).from;
        for (const slice of slicesOf(window, whole, grain)) {
          const bounds = boundsOf(window, slice.from, slice.to);
          expect(bounds.from).toBe(expected);
          expect(instantOf(bounds.from, window.timezone)).toEqual(slice.from);
          // The unit after the last one of this slice is the first of the next.
          const last = instantOf(bounds.until, window.timezone) ?? slice.from;
          expect(last.getTime()).toBeGreaterThanOrEqual(slice.from.getTime());
          const afterLast = inWholeUnits(window, { from: last, to: new Date(last.getTime() + 1) }).to;
          expect(afterLast).toEqual(slice.to);
          expected = bounds.to;
        }
        expect(expected).toBe(boundsOf(window, whole.from, whole.to).to);
      }),
    );
  });
});

describe("closedUntil", () => {
  test("is the start of today, once the safety lag of yesterday is over", () => {
    const window = { ...DAYS, safetyLagMs: 2 * HOUR_MS };
    expect(closedUntil(window, utc("2026-08-20T01:59:59.999"))).toEqual(utc("2026-08-19T00:00"));
    expect(closedUntil(window, utc("2026-08-20T02:00"))).toEqual(utc("2026-08-20T00:00"));
  });

  test("goes by the days of the source", () => {
    const window = { ...DAYS, timezone: "America/New_York" };
    expect(closedUntil(window, utc("2026-11-02T04:59:59"))).toEqual(utc("2026-11-01T04:00"));
    expect(closedUntil(window, utc("2026-11-02T05:00"))).toEqual(utc("2026-11-02T05:00"));
  });

  test("goes by `align` where that is wider than a unit", () => {
    expect(closedUntil({ ...SECONDS, align: "hour" }, utc("2026-08-20T13:59:59"))).toEqual(utc("2026-08-20T13:00"));
    expect(closedUntil(SECONDS, utc("2026-08-20T13:59:59"))).toEqual(utc("2026-08-20T13:59"));
  });

  test("is a start of a unit that lies back by the safety lag, and grows with time", () => {
    fc.assert(
      fc.property(windows, instants, fc.nat({ max: 3 * DAY_MS }), (given, now, laterMs) => {
        const window = { ...DAYS, ...given };
        const closed = closedUntil(window, now);
        expect(closed.getTime()).toBeLessThanOrEqual(now.getTime() - window.safetyLagMs);
        expect(inWholeUnits(window, { from: closed, to: closed })).toEqual({ from: closed, to: closed });
        const later = closedUntil(window, new Date(now.getTime() + laterMs));
        expect(later.getTime()).toBeGreaterThanOrEqual(closed.getTime());
      }),
    );
  });

  test("reaches the next unit at `closesAt`, and not before", () => {
    fc.assert(
      fc.property(windows, instants, (given, now) => {
        const window = { ...DAYS, ...given };
        const closed = closedUntil(window, now);
        const next = closesAt(window, closed);
        expect(next.getTime()).toBeGreaterThan(now.getTime());
        expect(closedUntil(window, next).getTime()).toBeGreaterThan(closed.getTime());
        expect(closedUntil(window, new Date(next.getTime() - 1))).toEqual(closed);
      }),
    );
  });
});

describe("instantOf", () => {
  test.each([
    ["2026-08-20", "2026-08-19T22:00:00.000Z"],
    ["2026-03-30", "2026-03-29T22:00:00.000Z"],
    ["2026-08-20T10:00Z", "2026-08-20T10:00:00.000Z"],
    ["2026-08-20T10:00:00.5+02:00", "2026-08-20T08:00:00.500Z"],
    ["0001-01-02", "0001-01-01T23:06:32.000Z"],
  ])("reads %s", (text, instant) => {
    expect(instantOf(text, "Europe/Berlin")?.toISOString()).toBe(instant);
  });

  test.each([
    "",
    "2026",
    "2026-02-30",
    "2026-02-30T00:00:00Z",
    "2026-13-01",
    "2026-08-20T10:00",
    "2026-08-20T25:00Z",
    "2026-08-20T10:00:00+99:00",
    "0000-01-01",
    "20260820",
    "yesterday",
    " 2026-08-20",
    "2026-08-20\n",
  ])("does not read %j", (text) => {
    expect(instantOf(text, "Europe/Berlin")).toBeUndefined();
  });
});

describe("slicesOf", () => {
  test("cuts days, also those on which the clocks change", () => {
    const window = { ...DAYS, timezone: "Europe/Berlin" };
    expect(cut(window, { from: utc("2026-10-23T22:00"), to: utc("2026-10-26T23:00") })).toEqual([
      "2026-10-23T22:00:00.000Z 2026-10-24T22:00:00.000Z",
      "2026-10-24T22:00:00.000Z 2026-10-25T23:00:00.000Z",
      "2026-10-25T23:00:00.000Z 2026-10-26T23:00:00.000Z",
    ]);
  });

  test("cuts hours where a window starts inside a day", () => {
    const window = { ...SECONDS, maxWindowMs: 10 * HOUR_MS };
    expect(cut(window, { from: utc("2026-08-20T05:00"), to: utc("2026-08-21T01:00") })).toEqual([
      "2026-08-20T05:00:00.000Z 2026-08-20T10:00:00.000Z",
      "2026-08-20T10:00:00.000Z 2026-08-20T20:00:00.000Z",
      "2026-08-20T20:00:00.000Z 2026-08-21T00:00:00.000Z",
      "2026-08-21T00:00:00.000Z 2026-08-21T01:00:00.000Z",
    ]);
  });

  test("cuts at the end of each period that lands", () => {
    const window = { ...SECONDS, maxWindowMs: 30 * DAY_MS };
    expect(cut(window, { from: utc("2026-08-20T05:00"), to: utc("2026-08-21T01:00") }, "day")).toEqual([
      "2026-08-20T05:00:00.000Z 2026-08-21T00:00:00.000Z",
      "2026-08-21T00:00:00.000Z 2026-08-21T01:00:00.000Z",
    ]);
  });

  test("has a part of the days at its edges only where it begins or ends within them", () => {
    const parts = (from: string, to: string) => partPeriods("Europe/Berlin", "day", { from: utc(from), to: utc(to) });
    expect(parts("2026-08-20T22:00", "2026-08-23T22:00")).toEqual([]);
    expect(parts("2026-08-20T05:00", "2026-08-23T22:00")).toEqual(["20260820"]);
    expect(parts("2026-08-20T22:00", "2026-08-23T22:01")).toEqual(["20260824"]);
    expect(parts("2026-08-20T05:00", "2026-08-20T06:00")).toEqual(["20260820"]);
  });

  test("cuts a day that clocks left and entered again", () => {
    // In St. John's, the clocks went back from 00:01 to 23:01: for a minute it was already the next day.
    const window = { ...SECONDS, timezone: "America/St_Johns" };
    const minute = { from: utc("2006-10-29T02:30"), to: utc("2006-10-29T02:31") };
    expect(periodAt("America/St_Johns", "day", minute.from).opTime).toBe("20061028");
    expect(cut(window, minute, "day")).toEqual(["2006-10-29T02:30:00.000Z 2006-10-29T02:31:00.000Z"]);
  });

  test("cuts an hour that is repeated by half", () => {
    const window = { ...SECONDS, timezone: "Australia/Lord_Howe" };
    expect(cut(window, { from: utc("2003-03-29T14:00"), to: utc("2003-03-29T16:30") }, "hour")).toEqual([
      "2003-03-29T14:00:00.000Z 2003-03-29T15:30:00.000Z",
      "2003-03-29T15:30:00.000Z 2003-03-29T16:30:00.000Z",
    ]);
  });

  test("slices tile their range in whole units, and belong to one period each", () => {
    fc.assert(
      fc.property(windows, ranges, grains, (given, range, grain) => {
        const window = { ...DAYS, ...given };
        const whole = inWholeUnits(window, range);
        let at = whole.from;
        for (const { from, to } of slicesOf(window, whole, grain)) {
          expect(from).toEqual(at);
          expect(to.getTime()).toBeGreaterThan(from.getTime());
          expect(inWholeUnits(window, { from, to })).toEqual({ from, to });
          // A day is at most an hour longer than 24 hours. One unit is never cut.
          expect(to.getTime() - from.getTime()).toBeLessThanOrEqual(
            Math.max(window.maxWindowMs, window.granularityMs) + HOUR_MS,
          );
          if (grain !== undefined && window.granularityMs <= MINUTE_MS) {
            const last = new Date(to.getTime() - 1);
            expect(periodAt(window.timezone, grain, last).opTime).toBe(periodAt(window.timezone, grain, from).opTime);
          }
          at = to;
        }
        expect(at).toEqual(whole.to);
      }),
    );
  });
});

describe("slicesBackwards", () => {
  test("cuts the newest day first", () => {
    const range = { from: utc("2026-08-01T00:00"), to: utc("2026-08-04T00:00") };
    expect([...slicesBackwards(DAYS, range)]).toEqual([...slicesOf(DAYS, range)].toReversed());
  });

  test("cuts where a window ends inside a day at the same places", () => {
    const window = { ...SECONDS, maxWindowMs: 6 * HOUR_MS };
    const range = { from: utc("2026-08-01T03:00"), to: utc("2026-08-02T09:00") };
    expect([...slicesBackwards(window, range)]).toEqual([...slicesOf(window, range)].toReversed());
  });

  test("slices tile their range in whole units from its end, and the rest of a range is cut as the range was", () => {
    fc.assert(
      fc.property(windows, ranges, grains, fc.nat(20), (given, range, grain, some) => {
        const window = { ...DAYS, ...given };
        const whole = inWholeUnits(window, range);
        const slices = [...slicesBackwards(window, whole, grain)];
        let at = whole.to;
        for (const { from, to } of slices) {
          expect(to).toEqual(at);
          expect(to.getTime()).toBeGreaterThan(from.getTime());
          expect(inWholeUnits(window, { from, to })).toEqual({ from, to });
          expect(to.getTime() - from.getTime()).toBeLessThanOrEqual(
            Math.max(window.maxWindowMs, window.granularityMs) + HOUR_MS,
          );
          if (grain !== undefined && window.granularityMs <= MINUTE_MS) {
            const last = new Date(to.getTime() - 1);
            expect(periodAt(window.timezone, grain, last).opTime).toBe(periodAt(window.timezone, grain, from).opTime);
          }
          at = from;
        }
        expect(at).toEqual(whole.from);
        const rest = slices.slice(some);
        if (rest[0]) {
          expect([...slicesBackwards(window, { from: whole.from, to: rest[0].to }, grain)]).toEqual(rest);
        }
      }),
    );
  });
});

describe("middleOf", () => {
  const hours = (from: number, to: number, window: Partial<WindowSpec> = {}) =>
    middleOf(
      { ...SECONDS, granularityMs: HOUR_MS, minWindowMs: HOUR_MS, ...window },
      { from: new Date(from * HOUR_MS), to: new Date(to * HOUR_MS) },
    )?.getTime();

  test("cuts at a unit", () => {
    expect(hours(0, 4)).toBe(2 * HOUR_MS);
    expect(hours(0, 3)).toBe(1 * HOUR_MS);
    expect(hours(0, 2)).toBe(1 * HOUR_MS);
  });

  test("leaves a window that is too narrow", () => {
    expect(hours(0, 1)).toBeUndefined();
    expect(hours(0, 3, { minWindowMs: 2 * HOUR_MS })).toBeUndefined();
    expect(hours(0, 4, { minWindowMs: 2 * HOUR_MS })).toBe(2 * HOUR_MS);
  });

  test("cuts two days of which one has 23 hours", () => {
    const window = { ...DAYS, timezone: "Europe/Berlin" };
    const range = { from: utc("2026-03-28T23:00"), to: utc("2026-03-30T22:00") };
    expect(middleOf(window, range)).toEqual(utc("2026-03-29T22:00"));
  });

  test("cuts again and again until only windows of the smallest width are left", () => {
    fc.assert(
      fc.property(windows, ranges, (given, range) => {
        const window = { ...DAYS, ...given };
        const whole = inWholeUnits(window, range);
        const middle = middleOf(window, whole);
        if (middle === undefined) {
          // Two windows of the least width, each up to the next unit, and an hour of changing clocks, do not fit.
          const leastMs = Math.max(window.minWindowMs, window.granularityMs);
          expect(whole.to.getTime() - whole.from.getTime()).toBeLessThan(
            2 * leastMs + 2 * window.granularityMs + HOUR_MS,
          );
          return;
        }
        for (const half of [
          { from: whole.from, to: middle },
          { from: middle, to: whole.to },
        ]) {
          expect(half.to.getTime() - half.from.getTime()).toBeGreaterThanOrEqual(window.minWindowMs - HOUR_MS);
          expect(inWholeUnits(window, half)).toEqual(half);
        }
      }),
    );
  });
});

describe("rangeBefore", () => {
  test("counts days on the calendar", () => {
    const { from } = rangeBefore({ ...DAYS, timezone: "Europe/Berlin" }, utc("2026-03-30T22:00"), 3 * DAY_MS);
    expect(from).toEqual(utc("2026-03-27T23:00"));
  });

  test("counts hours from the instant", () => {
    expect(rangeBefore(SECONDS, utc("2026-08-20T05:30"), 2 * DAY_MS + HOUR_MS).from).toEqual(utc("2026-08-18T04:30"));
  });

  test("reaches back to the start of a unit", () => {
    expect(rangeBefore(DAYS, utc("2026-08-20T00:00"), HOUR_MS).from).toEqual(utc("2026-08-19T00:00"));
  });
});

describe("periodAt", () => {
  test("answers the day of the source", () => {
    expect(periodAt("Europe/Berlin", "day", utc("2026-10-25T12:00"))).toEqual({
      opTime: "20261025",
      from: utc("2026-10-24T22:00"),
      to: utc("2026-10-25T23:00"),
    });
  });

  test("answers a repeated hour as one period", () => {
    const period = { opTime: "2026102502", from: utc("2026-10-25T00:00"), to: utc("2026-10-25T02:00") };
    expect(periodAt("Europe/Berlin", "hour", utc("2026-10-25T00:30"))).toEqual(period);
    expect(periodAt("Europe/Berlin", "hour", utc("2026-10-25T01:30"))).toEqual(period);
  });
});
