import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { ApiError } from "../errors.ts";
import {
  endOfOpTime,
  GRAINS,
  type Grain,
  grainOf,
  isOpTime,
  movedOpTime,
  nearestOpTime,
  OP_TIMES_MAX,
  opTimeAround,
  opTimeAt,
  opTimesBetween,
  opTimesWithin,
} from "./op-time.ts";
import { HOUR_MS } from "./units.ts";

const LENGTHS = { hour: 10, day: 8, month: 6 };
const ZONES = ["UTC", "Europe/Berlin", "America/New_York", "Asia/Kolkata", "Australia/Lord_Howe", "Pacific/Chatham"];

const grains = fc.constantFrom(...GRAINS);
const zones = fc.constantFrom(...ZONES);
const instants = fc.integer({ min: 0, max: Date.UTC(9900, 0) });

describe("isOpTime", () => {
  test.each(["20240229", "2024-02-29T00:00", "week_9.v2", "x", "x".repeat(255)])("takes %s", (text) => {
    expect(isOpTime(text)).toBe(true);
  });

  test.each(["", "x".repeat(256), "2024/02", "20240229\n", " 20240229", "día", "a b"])("refuses %j", (text) => {
    expect(isOpTime(text)).toBe(false);
  });
});

describe("grainOf", () => {
  test.each([
    ["2024022923", "hour"],
    ["2024022900", "hour"],
    ["20240229", "day"],
    ["20000229", "day"],
    ["202412", "month"],
    ["000101", "month"],
    ["99991231", "day"],
  ])("of %s is %s", (opTime, grain) => {
    expect(grainOf(opTime)).toBe(grain);
  });

  test.each([
    ["a day that this year does not have", "20230229"],
    ["a leap day that the century dropped", "21000229"],
    ["the 31st of April", "20240431"],
    ["the 25th hour", "2024022924"],
    ["the 25th hour of the last day that has four digits for its year", "9999123124"],
    ["month 13", "202413"],
    ["month 0", "202400"],
    ["day 0", "20240100"],
    ["nothing but zeros", "00000000"],
    ["a year", "2024"],
    ["a date with dashes", "2024-02-29"],
    ["letters of the right length", "yyyyMMdd"],
    ["a year before the first", "-20201"],
    ["digits of another script", "٢٠٢٤٠٢"],
    ["nothing", ""],
  ])("is undefined for %s", (_, opTime) => {
    expect(grainOf(opTime)).toBeUndefined();
  });
});

test.each([
  ["2025-11-01", "day", "20251101"],
  ["20251131", "day", "20251130"],
  ["20250231", "day", "20250228"],
  ["20240231", "day", "20240229"],
  ["2025-11", "month", "202511"],
  ["202513", "month", undefined],
  ["2025-11-01T07:00", "hour", "2025110107"],
  ["2025110124", "hour", "2025110123"],
  ["2025113124", "hour", "2025113023"],
  ["20251101", "day", undefined],
  ["20251100", "day", undefined],
  ["week 202511", "month", undefined],
] as const)("nearestOpTime of %s as a %s is %s", (text, grain, nearest) => {
  expect(nearestOpTime(text, grain)).toBe(nearest);
});

test("grainOf throws for no text", () => {
  const digits = fc.array(fc.constantFrom(..."0123456789".split("")), { minLength: 6, maxLength: 10 });
  const texts = fc.oneof(
    fc.string(),
    digits.map((chosen) => chosen.join("")),
    fc.stringMatching(/^[0-9:.-]{6,10}$/),
  );
  fc.assert(
    fc.property(texts, (text) => {
      const grain = grainOf(text);
      if (grain) expect(opTimesBetween(text, text, grain)).toEqual([text]);
    }),
    { numRuns: 1_000 },
  );
});

describe("opTimesBetween", () => {
  test("includes both ends, across leap days and ends of years", () => {
    expect(opTimesBetween("20240227", "20240302", "day")).toEqual([
      "20240227",
      "20240228",
      "20240229",
      "20240301",
      "20240302",
    ]);
    expect(opTimesBetween("202311", "202402", "month")).toEqual(["202311", "202312", "202401", "202402"]);
    expect(opTimesBetween("2023123122", "2024010101", "hour")).toEqual([
      "2023123122",
      "2023123123",
      "2024010100",
      "2024010101",
    ]);
    expect(opTimesBetween("20240301", "20240301", "day")).toEqual(["20240301"]);
    expect(opTimesBetween("005012", "005101", "month")).toEqual(["005012", "005101"]);
  });

  test.each<[string, string, string, Grain, string]>([
    [
      "the wrong grain",
      "202401",
      "202402",
      "day",
      "The range's `from` must be a valid day like yyyyMMdd, not `202401`.",
    ],
    [
      "a date that is none",
      "20240201",
      "20240230",
      "day",
      "The range's `to` must be a valid day like yyyyMMdd, not `20240230` (did you mean `20240229`?).",
    ],
    ["the wrong way round", "202402", "202401", "month", "The range's `to` (202401) is before its `from` (202402)."],
    [
      "too much at once",
      "2024010100",
      "2025022016",
      "hour",
      "The range 2024010100 to 2025022016 has 10001 hours, more than the 10000 of one range: split it.",
    ],
  ])("says in a sentence what is wrong with %s", (_, from, to, grain, sentence) => {
    const refused = () => opTimesBetween(from, to, grain);
    expect(refused).toThrow(ApiError);
    expect(refused).toThrow(expect.objectContaining({ message: sentence, status: 400 }));
  });

  test("allows exactly the limit, and checks the size before it builds the range", () => {
    expect(opTimesBetween("2024010100", "2025022015", "hour")).toHaveLength(OP_TIMES_MAX);
    expect(() => opTimesBetween("0001010100", "9999123123", "hour")).toThrow(/split it/);
  });

  test("has 24 hours for every day, since labels have no time zone", () => {
    for (const day of ["20240331", "20241027", "20240310", "20241103"]) {
      expect(opTimesBetween(`${day}00`, `${day}23`, "hour")).toHaveLength(24);
    }
  });

  test("is sorted, without duplicates, and every part of it is a range", () => {
    fc.assert(
      fc.property(grains, instants, fc.integer({ min: 0, max: 300 }), fc.nat(), (grain, instant, length, cut) => {
        const from = opTimeAt(instant, grain, "UTC", 0);
        const to = later(from, grain, length);
        const range = opTimesBetween(from, to, grain);
        expect(range).toHaveLength(length + 1);
        expect(range).toEqual([...new Set(range)].sort());
        expect(range.every((opTime) => grainOf(opTime) === grain)).toBe(true);
        const middle = range[cut % range.length] ?? "";
        expect([...opTimesBetween(from, middle, grain), ...opTimesBetween(middle, to, grain).slice(1)]).toEqual(range);
      }),
    );
  });
});

describe("opTimeAt", () => {
  const newYear = Date.parse("2023-12-31T23:30:00Z");

  test.each([
    ["hour", "UTC", 0, "2023123123"],
    ["hour", "Asia/Shanghai", 0, "2024010107"],
    ["day", "UTC", 0, "20231231"],
    ["day", "Asia/Shanghai", 0, "20240101"],
    ["day", "Asia/Shanghai", -1, "20231231"],
    ["day", "America/New_York", 1, "20240101"],
    ["month", "Asia/Kolkata", 0, "202401"],
    ["month", "Asia/Kolkata", -1, "202312"],
    ["month", "Asia/Kolkata", -13, "202212"],
    ["hour", "Asia/Kolkata", -6, "2023123123"],
  ] as const)("the %s in %s, moved by %i", (grain, timeZone, offset, expected) => {
    expect(opTimeAt(newYear, grain, timeZone, offset)).toBe(expected);
  });

  test("counts midnight as the first hour of the new day", () => {
    const midnight = Date.parse("2024-06-30T22:00:00Z");
    expect(opTimeAt(midnight, "hour", "Europe/Berlin", 0)).toBe("2024070100");
    expect(opTimeAt(midnight - 1, "hour", "Europe/Berlin", 0)).toBe("2024063023");
  });

  test("moves by whole days where a day has 23 or 25 hours", () => {
    const afterSpring = Date.parse("2024-04-01T00:30:00+02:00");
    const afterAutumn = Date.parse("2024-10-28T23:30:00+01:00");
    expect(opTimeAt(afterSpring, "day", "Europe/Berlin", -1)).toBe("20240331");
    expect(opTimeAt(afterAutumn, "day", "Europe/Berlin", -1)).toBe("20241027");
  });

  test("goes from hour 03 to 01 when the clocks skip 02", () => {
    const at0305 = Date.parse("2024-03-31T03:05:00+02:00");
    expect([0, -1, -2].map((offset) => opTimeAt(at0305, "hour", "Europe/Berlin", offset))).toEqual([
      "2024033103",
      "2024033101",
      "2024033100",
    ]);
  });

  test("counts a repeated hour once, and returns it as past only after the second time", () => {
    const fires = ["02:05+02:00", "02:05+01:00", "03:05+01:00"].map((time) => Date.parse(`2024-10-27T${time}`));
    expect(fires.map((fire) => opTimeAt(fire, "hour", "Europe/Berlin", -1))).toEqual([
      "2024102701",
      "2024102701",
      "2024102702",
    ]);
  });

  test.each([
    ["UTC", "2024-03-30"],
    ["Asia/Kolkata", "2024-03-30"],
    ["Europe/Berlin", "2024-03-30"],
    ["Europe/Berlin", "2024-10-26"],
    ["America/New_York", "2024-03-09"],
    ["America/New_York", "2024-11-02"],
    ["America/Havana", "2024-03-09"],
    ["America/Havana", "2024-11-02"],
    ["Australia/Lord_Howe", "2024-04-05"],
    ["Australia/Lord_Howe", "2024-10-05"],
    ["Pacific/Chatham", "2024-09-27"],
  ])("moves hours along the labels that the clock in %s shows from %s on", (timeZone, start) => {
    const quarters = Array.from({ length: 3 * 24 * 4 }, (_, step) => Date.parse(start) + (step * HOUR_MS) / 4);
    const shown = quarters.map((instant) => wallClock(instant, timeZone).slice(0, LENGTHS.hour));
    const labels = [...new Set(shown)];
    for (const offset of [-5, -1, 0, 2]) {
      const moved = quarters.map((instant) => opTimeAt(instant, "hour", timeZone, offset));
      const expected = shown.map((label, index) => labels[labels.indexOf(label) + offset] ?? moved[index]);
      expect(moved).toEqual(expected);
    }
  });

  test("without an offset is the label on the zone's wall clock", () => {
    fc.assert(
      fc.property(grains, zones, instants, (grain, timeZone, instant) => {
        const label = opTimeAt(instant, grain, timeZone, 0);
        expect(label).toBe(wallClock(instant, timeZone).slice(0, LENGTHS[grain]));
        expect(grainOf(label)).toBe(grain);
      }),
    );
  });

  test("is reversible for days and months: the next of the previous is the same", () => {
    fc.assert(
      fc.property(
        fc.constantFrom<Grain>("day", "month"),
        zones,
        instants,
        fc.integer({ min: -60, max: 60 }),
        (grain, timeZone, instant, offset) => {
          const one = opTimeAt(instant, grain, timeZone, offset);
          const next = opTimeAt(instant, grain, timeZone, offset + 1);
          expect(opTimesBetween(one, next, grain)).toEqual([one, next]);
        },
      ),
    );
  });

  test("refuses years without four digits", () => {
    expect(() => opTimeAt(newYear, "month", "UTC", 100_000)).toThrow(RangeError);
    expect(() => opTimeAt(newYear, "month", "UTC", -100_000)).toThrow(RangeError);
    expect(() => opTimeAt(newYear, "day", "UTC", 8_000 * 366)).toThrow(
      "2928000 days from 20231231 is outside the years of four",
    );
  });
});

describe("movedOpTime", () => {
  test.each<[string, Grain, number, string]>([
    ["20240301", "day", -1, "20240229"],
    ["20231231", "day", 1, "20240101"],
    ["202401", "month", -13, "202212"],
    ["2024033101", "hour", 1, "2024033102"],
    ["2024022923", "hour", 1, "2024030100"],
  ])("goes from the %s %s by %i to %s", (opTime, grain, offset, expected) => {
    expect(movedOpTime(opTime, grain, offset)).toBe(expected);
  });

  test("is undefined outside the years of four digits", () => {
    expect(movedOpTime("99991231", "day", 1)).toBeUndefined();
    expect(movedOpTime("000001", "month", -1)).toBeUndefined();
    expect(movedOpTime("9999123123", "hour", 1_000)).toBeUndefined();
  });

  test("is the neighbour in a range", () => {
    fc.assert(
      fc.property(grains, instants, fc.integer({ min: 0, max: 300 }), (grain, instant, offset) => {
        const from = opTimeAt(instant, grain, "UTC", 0);
        const to = movedOpTime(from, grain, offset) ?? "";
        expect(to).toBe(later(from, grain, offset));
        expect(movedOpTime(to, grain, -offset)).toBe(from);
      }),
    );
  });
});

describe("opTimesWithin and opTimeAround", () => {
  test("have the hours of a day, and the days and hours of a month", () => {
    expect(opTimesWithin("20240331", "hour")).toEqual(opTimesBetween("2024033100", "2024033123", "hour"));
    expect(opTimesWithin("202402", "day")).toEqual(opTimesBetween("20240201", "20240229", "day"));
    expect(opTimesWithin("202302", "day")).toHaveLength(28);
    expect(opTimesWithin("999912", "hour")).toEqual(opTimesBetween("9999120100", "9999123123", "hour"));
    expect(opTimesWithin("20240331", "day")).toEqual(["20240331"]);
  });

  test("are each other's inverse", () => {
    fc.assert(
      fc.property(grains, grains, instants, (one, other, instant) => {
        const [fine, coarse] = GRAINS.indexOf(one) < GRAINS.indexOf(other) ? [one, other] : [other, one];
        const outer = opTimeAt(instant, coarse, "UTC", 0);
        const inner = opTimesWithin(outer, fine);
        expect(inner).toContain(opTimeAt(instant, fine, "UTC", 0));
        expect(new Set(inner.map((opTime) => opTimeAround(opTime, coarse)))).toEqual(new Set([outer]));
        for (const [end, direction] of [[inner[0], -1] as const, [inner.at(-1), 1] as const]) {
          expect(opTimeAround(movedOpTime(end ?? "", fine, direction) ?? "", coarse)).not.toBe(outer);
        }
      }),
    );
  });
});

describe("endOfOpTime", () => {
  test.each<[string, string, Grain, string, string]>([
    ["a day in UTC", "20240229", "day", "UTC", "2024-03-01T00:00Z"],
    ["a month in UTC", "202402", "month", "UTC", "2024-03-01T00:00Z"],
    ["the last day of all", "99991231", "day", "UTC", "+010000-01-01T00:00Z"],
    ["a day of 23 hours", "20240331", "day", "Europe/Berlin", "2024-04-01T00:00+02:00"],
    ["the day before it", "20240330", "day", "Europe/Berlin", "2024-03-31T00:00+01:00"],
    ["a day of 25 hours", "20241027", "day", "Europe/Berlin", "2024-10-28T00:00+01:00"],
    ["a month that ends with a day of 23 hours", "202403", "month", "Europe/Berlin", "2024-04-01T00:00+02:00"],
    ["an hour before a jump", "2024033101", "hour", "Europe/Berlin", "2024-03-31T03:00+02:00"],
    ["an hour that is jumped over", "2024033102", "hour", "Europe/Berlin", "2024-03-31T03:00+02:00"],
    ["the hour after a jump", "2024033103", "hour", "Europe/Berlin", "2024-03-31T04:00+02:00"],
    ["an hour that passes twice", "2024102702", "hour", "Europe/Berlin", "2024-10-27T03:00+01:00"],
    ["the hour before it", "2024102701", "hour", "Europe/Berlin", "2024-10-27T02:00+02:00"],
    ["a day whose midnight is jumped over", "20240309", "day", "America/Havana", "2024-03-10T01:00-04:00"],
    ["a day before a midnight that passes twice", "20241102", "day", "America/Havana", "2024-11-03T00:00-04:00"],
    ["the hour of such a midnight", "2024110300", "hour", "America/Havana", "2024-11-03T01:00-05:00"],
    ["an hour of which half passes twice", "2024040701", "hour", "Australia/Lord_Howe", "2024-04-07T02:00+10:30"],
    ["an hour of which half is jumped over", "2024100602", "hour", "Australia/Lord_Howe", "2024-10-06T03:00+11:00"],
    ["an hour cut off by a jump at a quarter", "2024092902", "hour", "Pacific/Chatham", "2024-09-29T03:45+13:45"],
    ["a day that an island left out", "20111230", "day", "Pacific/Apia", "2011-12-31T00:00+14:00"],
    ["a day in a time of odd seconds", "19700101", "day", "Africa/Monrovia", "1970-01-02T00:44:30Z"],
  ])("of %s", (_, opTime, grain, timeZone, expected) => {
    expect(new Date(endOfOpTime(opTime, grain, timeZone))).toEqual(new Date(expected));
  });

  test("is the instant from which the clock shows only later labels", () => {
    const nearChanges = fc
      .tuple(
        fc.integer({ min: 1990, max: 2037 }),
        fc.constantFrom(2, 3, 8, 9, 10),
        fc.integer({ min: 0, max: 30 * 24 }),
      )
      .map(([year, month, hours]) => Date.UTC(year, month) + hours * HOUR_MS);
    fc.assert(
      fc.property(grains, zones, fc.oneof(instants, nearChanges), (grain, timeZone, instant) => {
        const label = (atMs: number) => wallClock(atMs, timeZone).slice(0, LENGTHS[grain]);
        const opTime = label(instant);
        const end = endOfOpTime(opTime, grain, timeZone);
        expect(label(end - 1)).toBe(opTime);
        for (let quarter = 0; quarter < 12; quarter += 1) {
          expect(label(end + (quarter * HOUR_MS) / 4) > opTime).toBe(true);
        }
      }),
      { numRuns: 500 },
    );
  });
});

/** The opTime `count` grains after `from`, computed without the code under test. */
function later(from: string, grain: Grain, count: number): string {
  const [year, month, day, hour] = [from.slice(0, 4), from.slice(4, 6), from.slice(6, 8), from.slice(8)].map(Number);
  const move = (of: Grain) => (of === grain ? count : 0);
  const end = Date.UTC(
    year ?? 0,
    (month ?? 0) - 1 + move("month"),
    (day || 1) + move("day"),
    (hour ?? 0) + move("hour"),
  );
  return wallClock(end, "UTC").slice(0, LENGTHS[grain]);
}

/** `yyyyMMddHHmmss`, from the Swedish format, which has separators between these parts. */
function wallClock(instant: number, timeZone: string): string {
  return new Date(instant).toLocaleString("sv-SE", { timeZone }).replace(/\D/g, "");
}
