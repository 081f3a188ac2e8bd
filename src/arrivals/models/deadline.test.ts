import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { GRAINS, grainOf } from "../../kernel/time/op-time.ts";
import { DAY_MS, HOUR_MS } from "../../kernel/time/units.ts";
import { type DeadlineSpec, deadlineOf, nextDeadline, parseDeadline } from "./deadline.ts";

describe("parseDeadline", () => {
  test.each([
    ["PT6H", 6 * HOUR_MS],
    ["P1DT6H", 30 * HOUR_MS],
    ["P2D", 2 * DAY_MS],
    ["PT90M", 1.5 * HOUR_MS],
    ["PT1H30M15S", 1.5 * HOUR_MS + 15_000],
    ["PT0S", 0],
    ["P366D", 366 * DAY_MS],
    ["PT8784H", 366 * DAY_MS],
  ])("reads %s", (deadline, durationMs) => {
    expect(parseDeadline(deadline)).toEqual({ durationMs });
  });

  test.each([
    "",
    "P",
    "PT",
    "P1DT",
    "6H",
    "PT6",
    "pt6h",
    "P1Y",
    "P1M",
    "P1W",
    "-PT6H",
    "PT-6H",
    "PT1.5H",
    "PT6H ",
    "PT5M6H",
  ])("refuses %j", (deadline) => {
    expect(parseDeadline(deadline)).toEqual({
      problem: `A \`deadline\` is a duration of days, hours, minutes and seconds like \`PT6H\` or \`P1DT30M\`, not \`${deadline}\``,
    });
  });

  test.each(["P367D", "P366DT1S", "PT9999999999H"])("finds %s too long", (deadline) => {
    expect(parseDeadline(deadline)).toEqual({
      problem: `A \`deadline\` is at most 366 days after the end of the period; \`${deadline}\` is more`,
    });
  });

  test("shows only the beginning of what is long and wrong", () => {
    expect(parseDeadline("x".repeat(10_000))).toEqual({ problem: expect.stringMatching(/not `x{64}`$/) });
    expect(parseDeadline(`PT${"9".repeat(10_000)}H`)).toEqual({ problem: expect.stringMatching(/not `PT9{62}`$/) });
  });
});

describe("deadlineOf", () => {
  test.each<[string, DeadlineSpec, string, string]>([
    ["a day in UTC", spec("day", "UTC", "PT6H"), "20240229", "2024-03-01T06:00Z"],
    ["a day elsewhere", spec("day", "Asia/Shanghai", "PT6H"), "20240229", "2024-03-01T06:00+08:00"],
    ["a day of 23 hours", spec("day", "Europe/Berlin", "PT6H"), "20240331", "2024-04-01T06:00+02:00"],
    // Hours are elapsed time: six of them after midnight the clock shows seven, because it was set forward.
    ["the night of a jump", spec("day", "Europe/Berlin", "PT6H"), "20240330", "2024-03-31T07:00+02:00"],
    ["the night of a fall", spec("day", "Europe/Berlin", "PT6H"), "20241026", "2024-10-27T05:00+01:00"],
    ["an hour that passes twice", spec("hour", "Europe/Berlin", "PT10M"), "2024102702", "2024-10-27T03:10+01:00"],
    ["a month", spec("month", "America/New_York", "P1DT6H"), "202402", "2024-03-02T06:00-05:00"],
    [
      "a day whose midnight is jumped over",
      spec("day", "America/Havana", "PT0S"),
      "20240309",
      "2024-03-10T01:00-04:00",
    ],
  ])("of %s", (_, of, opTime, expected) => {
    expect(deadlineOf(of, opTime)).toBe(Date.parse(expected));
  });

  test("is undefined for an opTime of another grain", () => {
    for (const opTime of ["202402", "2024022900", "20240230", "week-9"]) {
      expect(deadlineOf(spec("day", "UTC", "PT6H"), opTime)).toBeUndefined();
    }
  });

  test("accepts only a duration that parseDeadline accepts", () => {
    expect(() => deadlineOf(spec("day", "UTC", "P1M"), "20240229")).toThrow(/^A `deadline` is a duration .* `P1M`\.$/);
  });
});

describe("nextDeadline", () => {
  test("is the next one after the instant, not the one at it", () => {
    const of = spec("day", "UTC", "PT6H");
    const six = Date.parse("2024-03-01T06:00Z");
    expect(nextDeadline(of, six - 1)).toEqual({ opTime: "20240229", dueMs: six });
    expect(nextDeadline(of, six)).toEqual({ opTime: "20240301", dueMs: six + DAY_MS });
  });

  test("looks back over a deadline that is longer than the period", () => {
    const of = spec("hour", "UTC", "P2D");
    expect(nextDeadline(of, Date.parse("2024-03-01T12:30Z"))).toEqual({
      opTime: "2024022812",
      dueMs: Date.parse("2024-03-01T13:00Z"),
    });
  });

  test("skips the hour that a clock change skips, and is due once for the hour that repeats", () => {
    const of = spec("hour", "Europe/Berlin", "PT10M");
    expect(opTimesDue(of, Date.parse("2024-03-31T01:30+01:00"), 3)).toEqual(["2024033101", "2024033103", "2024033104"]);
    expect(opTimesDue(of, Date.parse("2024-10-27T01:30+02:00"), 3)).toEqual(["2024102701", "2024102702", "2024102703"]);
  });

  test("skips the day that a time zone skipped", () => {
    const of = spec("day", "Pacific/Apia", "PT1H");
    expect(opTimesDue(of, Date.parse("2011-12-29T12:00-10:00"), 2)).toEqual(["20111229", "20111231"]);
  });

  test("misses no hour where the clocks go back by two", () => {
    const of = spec("hour", "Antarctica/Troll", "PT0S");
    expect(opTimesDue(of, Date.parse("2024-10-27T02:30+02:00"), 3)).toEqual(["2024102701", "2024102702", "2024102703"]);
  });

  test("is the first of all deadlines after the instant", () => {
    const specs = fc.record({
      grain: fc.constantFrom(...GRAINS),
      timeZone: fc.constantFrom("UTC", "Europe/Berlin", "America/Havana", "Asia/Kolkata", "Pacific/Chatham"),
      deadline: fc.constantFrom("PT0S", "PT6H", "P1DT6H", "P40D", "PT90M"),
    });
    const instants = fc.integer({ min: Date.UTC(1990, 0), max: Date.UTC(2037, 0) });
    fc.assert(
      fc.property(specs, instants, (of, afterMs) => {
        const { opTime, dueMs } = nextDeadline(of, afterMs);
        expect(grainOf(opTime)).toBe(of.grain);
        expect(deadlineOf(of, opTime)).toBe(dueMs);
        expect(dueMs).toBeGreaterThan(afterMs);
        // It stays the next one until it is due.
        expect(nextDeadline(of, dueMs - 1)).toEqual({ opTime, dueMs });
        const following = nextDeadline(of, dueMs);
        expect(following.opTime > opTime).toBe(true);
        expect(following.dueMs).toBeGreaterThan(dueMs);
      }),
      { numRuns: 300 },
    );
  });
});

function spec(grain: DeadlineSpec["grain"], timeZone: string, deadline: string): DeadlineSpec {
  return { grain, timeZone, deadline };
}

function opTimesDue(of: DeadlineSpec, afterMs: number, count: number): string[] {
  const opTimes: string[] = [];
  for (let atMs = afterMs; opTimes.length < count; ) {
    const { opTime, dueMs } = nextDeadline(of, atMs);
    opTimes.push(opTime);
    atMs = dueMs;
  }
  return opTimes;
}
