import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { checkCron, MISSED_AFTER_MS, MISSED_COUNT_MAX, nextFire, planFires } from "./cron.ts";
import { DAY_MS, MINUTE_MS } from "./units.ts";

const BERLIN = "Europe/Berlin";

describe("checkCron", () => {
  test.each([
    "* * * * *",
    "*/5 * * * *",
    "0 2 * * *",
    " 0  2 * * * ",
    "0,30 8-18/2 1-7 JAN-mar,12 mon-FRI",
    "0 0 L * *",
    "0 0 LW * *",
    "0 0 15W * *",
    "0 0 ? * 5L",
    "0 0 * * FRI#2",
    "0 0 * * FRI#L",
    "0 0 13 * +FRI",
    "0 0 29 2 *",
    "0 0 * * 7",
    "@daily",
    "@Hourly",
  ])("takes %s", (cron) => {
    expect(checkCron(cron, BERLIN)).toBeUndefined();
  });

  test.each([
    ["60 * * * *", "The minute `60` in cron `60 * * * *` is not valid: it takes 0-59, "],
    ["0 24 * * *", "The hour `24` in cron `0 24 * * *` is not valid: it takes 0-23, "],
    ["0 0 32 * *", "The day of month `32` in cron `0 0 32 * *` is not valid: it takes 1-31, "],
    ["0 0 0 * *", "The day of month `0` in cron"],
    ["0 0 * 13 *", "The month `13` in cron `0 0 * 13 *` is not valid: it takes 1-12 or JAN-DEC, "],
    ["0 0 * JANFEB *", "The month `JANFEB` in cron"],
    ["0 0 * * 8", "The weekday `8` in cron `0 0 * * 8` is not valid: it takes 0-7 or SUN-SAT, "],
    ["0 0 * * MON#6", "The weekday `MON#6` in cron"],
    ["0 0 * * +", "The weekday `+` in cron"],
    ["0 0 +1 * *", "The day of month `+1` in cron"],
    ["5* * * * *", "The minute `5*` in cron"],
    ["*/0 * * * *", "The minute `*/0` in cron"],
    ["5/10 * * * *", "The minute `5/10` in cron"],
    ["10-5 * * * *", "The minute `10-5` in cron"],
    ["1,,2 * * * *", "The minute `1,,2` in cron"],
    ["L * * * *", "The minute `L` in cron"],
    ["0 0:30 * * *", "The hour `0:30` in cron"],
    ["0 2 * *", "A cron has five fields (minute, hour, day of month, month, weekday), but `0 2 * *` has 4"],
    ["0 0 2 * * *", "A cron has five fields (minute, hour, day of month, month, weekday), but `0 0 2 * * *` has 6"],
    ["2030-01-01T00:00:00", "A cron has five fields"],
    ["", "A cron has five fields (minute, hour, day of month, month, weekday), but `` has none"],
    ["@reboot", "There is no cron `@reboot`: use five fields or one of @hourly, @daily, "],
    ["0 0 * * @daily", "There is no cron `0 0 * * @daily`"],
    ["0 0 30 2 *", "Cron `0 0 30 2 *` never fires: the calendar has no such day, or"],
    ["*/30 2 25-31 3 +SUN", "Cron `*/30 2 25-31 3 +SUN` never fires: the calendar has no such day, or the clock in"],
    ["*,".repeat(500_000), "A cron has at most 255 characters, not 1000000"],
  ])("explains what is wrong with %.20s", (cron, sentence) => {
    expect(checkCron(cron, BERLIN)?.slice(0, sentence.length)).toBe(sentence);
  });

  test.each(["UTC", "America/Argentina/Buenos_Aires", "Asia/Kolkata", "Asia/Calcutta", "Etc/GMT+3"])(
    "takes the time zone %s",
    (timeZone) => {
      expect(checkCron("0 2 * * *", timeZone)).toBeUndefined();
    },
  );

  test.each([
    ["Europe/Belin", "There is no time zone `Europe/Belin` (did you mean `Europe/Berlin`?)"],
    ["America/New York", "There is no time zone `America/New York` (did you mean `America/New_York`?)"],
    ["shanghai", "There is no time zone `shanghai` (did you mean `Asia/Shanghai`?)"],
    ["UTX", "There is no time zone `UTX` (did you mean `UTC`?)"],
    ["+02:00", "There is no time zone `+02:00`: use a name like `Europe/Berlin` or `UTC`"],
    ["", "There is no time zone ``: use a name like `Europe/Berlin` or `UTC`"],
  ])("suggests a time zone for `%s`, if one is similar", (timeZone, sentence) => {
    expect(checkCron("0 2 * * *", timeZone)).toBe(sentence);
  });

  test("never throws, and every cron that it accepts has a next fire", () => {
    const piece = fc.constantFrom("JAN", "MON", "* ", " * * * *", "0 0 ", ..."0123456789*/-,LW#?+@: ".split(""));
    const crons = fc.oneof(
      fc.string(),
      fc.array(piece, { maxLength: 12 }).map((pieces) => pieces.join("")),
    );
    fc.assert(
      fc.property(crons, (cron) => {
        if (checkCron(cron, BERLIN) === undefined) expect(nextFire(cron, BERLIN, 0)).toBeGreaterThan(0);
      }),
      { numRuns: 1_000 },
    );
  });
});

describe("nextFire", () => {
  test("is strictly after the instant, to the millisecond", () => {
    const noon = Date.parse("2024-05-01T12:00:00Z");
    expect(nextFire("0 12 * * *", "UTC", noon - 1)).toBe(noon);
    expect(nextFire("0 12 * * *", "UTC", noon)).toBe(noon + DAY_MS);
    expect(nextFire("0 12 * * *", "UTC", noon + 500)).toBe(noon + DAY_MS);
  });

  test.each([
    ["the last day of each month", "0 0 L * *", "2024-01-31", ["2024-02-29", "2024-03-31", "2024-04-30"]],
    ["only months that have a 31st", "0 0 31 * *", "2024-01-31", ["2024-03-31", "2024-05-31", "2024-07-31"]],
    ["leap days, also over 2100", "0 0 29 2 *", "2092-03-01", ["2096-02-29", "2104-02-29", "2108-02-29"]],
    ["the day of month or the weekday", "0 0 13 * FRI", "2024-09-05", ["2024-09-06", "2024-09-13", "2024-09-20"]],
    ["both of them with a plus", "0 0 13 * +FRI", "2024-09-05", ["2024-09-13", "2024-12-13", "2025-06-13"]],
  ])("knows %s", (_, cron, after, days) => {
    expect(firesAfter(cron, "UTC", `${after}T00:00:00Z`, 3)).toEqual(days.map((day) => `${day}T00:00:00.000Z`));
  });

  test("fires a fixed time that is skipped once, right after the clock change", () => {
    expect(firesAfter("30 2 * * *", BERLIN, "2024-03-30T12:00:00Z", 2)).toEqual([
      "2024-03-31T01:00:00.000Z",
      "2024-04-01T00:30:00.000Z",
    ]);
  });

  test("fires a fixed time that occurs twice only the first time", () => {
    expect(firesAfter("30 1 * * *", "America/New_York", "2024-11-02T12:00:00Z", 2)).toEqual([
      "2024-11-03T05:30:00.000Z",
      "2024-11-04T06:30:00.000Z",
    ]);
  });

  test("fires an hourly cron every elapsed hour", () => {
    expect(firesAfter("30 * * * *", "America/New_York", "2024-11-03T05:00:00Z", 3)).toEqual([
      "2024-11-03T05:30:00.000Z",
      "2024-11-03T06:30:00.000Z",
      "2024-11-03T07:30:00.000Z",
    ]);
    expect(firesAfter("30 * * * *", BERLIN, "2024-03-31T00:00:00Z", 2)).toEqual([
      "2024-03-31T00:30:00.000Z",
      "2024-03-31T01:30:00.000Z",
    ]);
  });

  test("is undefined if the clock never shows such a time", () => {
    expect(nextFire("*/30 2 25-31 3 +SUN", BERLIN, Date.UTC(2025, 0))).toBeUndefined();
  });
});

describe("planFires", () => {
  const dueMs = Date.parse("2024-05-01T02:00:00Z");
  const daily = { cron: "0 2 * * *", timeZone: "UTC", dueMs, catchUpMax: 10 };
  const policies = ["skip", "last", "all"] as const;

  test.each(policies)("starts a fire that is at most a minute late, with policy %s", (policy) => {
    for (const lateMs of [0, 1, MISSED_AFTER_MS]) {
      const plan = planFires({ ...daily, policy, nowMs: dueMs + lateMs });
      expect(plan).toEqual({ fires: [dueMs], nextMs: dueMs + DAY_MS, missed: 0 });
    }
  });

  test.each(policies)("starts nothing before it is due, also if the clock was set back, with policy %s", (policy) => {
    for (const earlyMs of [1, DAY_MS, 400 * DAY_MS]) {
      const plan = planFires({ ...daily, policy, nowMs: dueMs - earlyMs });
      expect(plan).toEqual({ fires: [], nextMs: dueMs, missed: 0 });
    }
  });

  test.each([
    ["skip", []],
    ["last", [dueMs]],
    ["all", [dueMs]],
  ] as const)("with policy %s a fire that is later than a minute starts %j", (policy, fires) => {
    const plan = planFires({ ...daily, policy, nowMs: dueMs + MISSED_AFTER_MS + 1 });
    expect(plan).toEqual({ fires, nextMs: dueMs + DAY_MS, missed: 1 });
  });

  describe("after four days without a scheduler, with the last fire on time", () => {
    const days = [0, 1, 2, 3, 4].map((day) => dueMs + day * DAY_MS);
    const [first = 0, second = 0, third = 0, fourth = 0, onTime = 0] = days;
    const back = { ...daily, nowMs: onTime + 30_500 };

    test("skip starts only the on-time fire", () => {
      expect(planFires({ ...back, policy: "skip" })).toEqual({ fires: [onTime], nextMs: onTime + DAY_MS, missed: 4 });
    });

    test("last starts the newest missed fire and the on-time one", () => {
      const plan = planFires({ ...back, policy: "last" });
      expect(plan).toEqual({ fires: [fourth, onTime], nextMs: onTime + DAY_MS, missed: 4 });
    });

    test("all starts every fire", () => {
      expect(planFires({ ...back, policy: "all" })).toEqual({ fires: days, nextMs: onTime + DAY_MS, missed: 4 });
    });

    test("all starts them in several rounds, oldest first, and the on-time fire last", () => {
      const one = planFires({ ...back, policy: "all", catchUpMax: 3 });
      expect(one).toEqual({ fires: [first, second, third], nextMs: fourth, missed: 3 });
      const two = planFires({ ...back, policy: "all", catchUpMax: 3, dueMs: fourth });
      expect(two).toEqual({ fires: [fourth, onTime], nextMs: onTime + DAY_MS, missed: 1 });
    });
  });

  test("a due fire that the cron no longer matches still counts, also as the newest missed one", () => {
    const offCron = { ...daily, dueMs: dueMs + MINUTE_MS, nowMs: dueMs + 10 * MINUTE_MS };
    const plan = planFires({ ...offCron, policy: "last" });
    expect(plan).toEqual({ fires: [dueMs + MINUTE_MS], nextMs: dueMs + DAY_MS, missed: 1 });
  });

  test("the newest missed fire is found at the exact limit of the minute of grace", () => {
    const nowMs = dueMs + DAY_MS + MISSED_AFTER_MS + 1;
    expect(planFires({ ...daily, policy: "last", nowMs }).fires).toEqual([dueMs + DAY_MS]);
  });

  test("a schedule without a further fire ends", () => {
    const never = { cron: "*/30 2 25-31 3 +SUN", timeZone: BERLIN, dueMs, nowMs: dueMs, catchUpMax: 1 };
    expect(planFires({ ...never, policy: "skip" })).toEqual({ fires: [dueMs], nextMs: undefined, missed: 0 });
    expect(planFires({ ...never, policy: "all", nowMs: dueMs + DAY_MS })).toMatchObject({ fires: [dueMs], missed: 1 });
  });

  test.each(policies)("a year of missed minutes costs little, with policy %s", (policy) => {
    const away = { cron: "* * * * *", timeZone: BERLIN, dueMs, nowMs: dueMs + 365 * DAY_MS + 59_999, catchUpMax: 50 };
    const started = performance.now();
    const plan = planFires({ ...away, policy });
    // Some 10 ms, mostly for the count; stepping through the year would take 40 s.
    expect(performance.now() - started).toBeLessThan(2_000);
    const onTime = dueMs + 365 * DAY_MS;
    expect(plan).toEqual(
      {
        skip: { fires: [onTime], nextMs: onTime + MINUTE_MS, missed: MISSED_COUNT_MAX },
        last: { fires: [onTime - MINUTE_MS, onTime], nextMs: onTime + MINUTE_MS, missed: MISSED_COUNT_MAX },
        all: {
          fires: Array.from({ length: 50 }, (_, index) => dueMs + index * MINUTE_MS),
          nextMs: dueMs + 50 * MINUTE_MS,
          missed: 50,
        },
      }[policy],
    );
  });

  describe("agrees with stepping through the fires one by one, around all kinds of clock changes", () => {
    const crons = ["*/20 * * * *", "30 1 * * *", "30 2 * * *", "15,45 1-3 * * *", "0 0 L * *", "0 */6 * * SUN"];
    const zones = ["UTC", BERLIN, "America/New_York", "Australia/Lord_Howe", "Pacific/Chatham", "America/Havana"];
    const dates = ["2024-03-30", "2024-10-26", "2024-03-09", "2024-11-02", "2024-04-05", "2024-10-04", "2024-09-27"];
    const situations = fc.record({
      cron: fc.constantFrom(...crons),
      timeZone: fc.constantFrom(...zones),
      from: fc
        .tuple(fc.constantFrom(...dates), fc.integer({ min: 0, max: 2 * DAY_MS }))
        .map(([date, ms]) => Date.parse(date) + ms),
      // Often exactly at a fire or a minute after one, where on time becomes missed.
      away: fc.oneof(
        fc.integer({ min: 0, max: 3 * DAY_MS }),
        fc
          .tuple(fc.nat({ max: 100 }), fc.constantFrom(-1, 0, 1, 500, 59_999, 60_000, 60_001))
          .map(([steps, ms]) => steps * 20 * MINUTE_MS + ms),
      ),
      catchUpMax: fc.integer({ min: 1, max: 7 }),
    });

    /** The due fire, the present, and all fires up to now. */
    function situate({ cron, timeZone, from, away }: { cron: string; timeZone: string; from: number; away: number }) {
      const firstMs = nextFire(cron, timeZone, from) ?? Number.NaN;
      const nowMs = firstMs + away;
      const fires: number[] = [];
      let fire = firstMs;
      for (; fire <= nowMs; fire = nextFire(cron, timeZone, fire) ?? Number.NaN) fires.push(fire);
      const isMissed = (ms: number) => nowMs - ms > MISSED_AFTER_MS;
      const missed = fires.filter(isMissed);
      const onTime = fires.filter((ms) => !isMissed(ms));
      return { firstMs, nowMs, missed, onTime, nextMs: away < 0 ? firstMs : fire };
    }

    test("skip and last", () => {
      fc.assert(
        fc.property(situations, fc.constantFrom("skip", "last"), (situation, policy) => {
          const { firstMs, nowMs, missed, onTime, nextMs } = situate(situation);
          const plan = planFires({ ...situation, policy, dueMs: firstMs, nowMs });
          const kept = policy === "last" ? missed.slice(-1) : [];
          const counted = Math.min(missed.length, MISSED_COUNT_MAX);
          expect(plan).toEqual({ fires: [...kept, ...onTime], nextMs, missed: counted });
        }),
        { numRuns: 300 },
      );
    });

    test("all starts every fire exactly once and counts each missed one once", () => {
      fc.assert(
        fc.property(situations, (situation) => {
          const { firstMs, nowMs, missed, onTime, nextMs } = situate(situation);
          const started: number[] = [];
          let counted = 0;
          let nextDueMs: number | undefined = firstMs;
          do {
            const plan = planFires({ ...situation, policy: "all", dueMs: nextDueMs ?? Number.NaN, nowMs });
            const late = plan.fires.filter((ms) => nowMs - ms > MISSED_AFTER_MS);
            expect(late.length).toBeLessThanOrEqual(situation.catchUpMax);
            started.push(...plan.fires);
            counted += plan.missed;
            nextDueMs = plan.nextMs;
          } while (nextDueMs !== undefined && nextDueMs <= nowMs);
          expect(started).toEqual([...missed, ...onTime]);
          expect(counted).toBe(missed.length);
          expect(nextDueMs).toBe(nextMs);
        }),
        { numRuns: 150 },
      );
    });
  });
});

function firesAfter(cron: string, timeZone: string, after: string, count: number): string[] {
  const fires: number[] = [];
  while (fires.length < count) {
    fires.push(nextFire(cron, timeZone, fires.at(-1) ?? Date.parse(after)) ?? Number.NaN);
  }
  return fires.map((fire) => new Date(fire).toISOString());
}
