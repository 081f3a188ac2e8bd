import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { GRAINS, type Grain, opTimeAt, opTimesBetween } from "../../kernel/time/op-time.ts";
import { affectedOpTimes, checkMapping, neededOpTimes, type OpTimeMapping } from "./mapping.ts";

describe("checkMapping", () => {
  test.each<OpTimeMapping>([
    {},
    { offset: 0 },
    { modelGrain: "day" },
    { modelGrain: "day", offset: -1 },
    { modelGrain: "day", grain: "day" },
    { modelGrain: "day", grain: "hour", offset: 1_000 },
    { modelGrain: "month", grain: "hour", offset: -1_000 },
  ])("accepts %j", (mapping) => {
    expect(checkMapping(mapping)).toBeUndefined();
  });

  test.each<[OpTimeMapping, string]>([
    [
      { modelGrain: "day", grain: "month" },
      "A dependency's grain cannot be coarser than the model's: no month fits into one day",
    ],
    [
      { modelGrain: "hour", grain: "day" },
      "A dependency's grain cannot be coarser than the model's: no day fits into one hour",
    ],
    [
      { grain: "hour" },
      "A dependency has a `grain` only where the model has a `grain`: give the model one of hour, day, month",
    ],
    [
      { offset: -1 },
      "A dependency has an `offset` only where the model has a `grain`: give the model one of hour, day, month",
    ],
    [{ modelGrain: "day", offset: 1_001 }, "An `offset` is a whole number from -1000 to 1000, not 1001"],
    [{ modelGrain: "day", offset: -1_001 }, "An `offset` is a whole number from -1000 to 1000, not -1001"],
    [{ modelGrain: "day", offset: 0.5 }, "An `offset` is a whole number from -1000 to 1000, not 0.5"],
  ])("refuses %j", (mapping, problem) => {
    expect(checkMapping(mapping)).toBe(problem);
  });
});

describe("a dependency", () => {
  test("needs the model's own opTime by default", () => {
    for (const opTime of ["20240229", "week-9", "2024"]) {
      expect(neededOpTimes({}, opTime)).toEqual([opTime]);
      expect(affectedOpTimes({}, opTime)).toEqual([opTime]);
    }
    expect(neededOpTimes({ modelGrain: "day" }, "20240229")).toEqual(["20240229"]);
    expect(affectedOpTimes({ modelGrain: "day" }, "20240229")).toEqual(["20240229"]);
  });

  test("can need the previous day", () => {
    const mapping: OpTimeMapping = { modelGrain: "day", offset: -1 };
    expect(neededOpTimes(mapping, "20240301")).toEqual(["20240229"]);
    expect(affectedOpTimes(mapping, "20240229")).toEqual(["20240301"]);
  });

  test("can need the 24 hours of the day, also where the clocks change", () => {
    const mapping: OpTimeMapping = { modelGrain: "day", grain: "hour" };
    expect(neededOpTimes(mapping, "20240331")).toEqual(opTimesBetween("2024033100", "2024033123", "hour"));
    expect(affectedOpTimes(mapping, "2024033102")).toEqual(["20240331"]);
  });

  test("can need all days of the previous month", () => {
    const mapping: OpTimeMapping = { modelGrain: "month", grain: "day", offset: -1 };
    expect(neededOpTimes(mapping, "202403")).toEqual(opTimesBetween("20240201", "20240229", "day"));
    expect(affectedOpTimes(mapping, "20240229")).toEqual(["202403"]);
    expect(affectedOpTimes(mapping, "20240301")).toEqual(["202404"]);
  });

  test("is not affected by an opTime of another grain or that is not a date", () => {
    for (const opTime of ["20240229", "202402", "2024022924", "2024023000", "today", ""]) {
      expect(affectedOpTimes({ modelGrain: "day", grain: "hour" }, opTime)).toEqual([]);
    }
    expect(affectedOpTimes({ modelGrain: "day" }, "2024022900")).toEqual([]);
  });

  test("is never met beyond the end of the calendar", () => {
    expect(neededOpTimes({ modelGrain: "day", grain: "hour", offset: 1 }, "99991231")).toEqual(["99991231+1"]);
    expect(affectedOpTimes({ modelGrain: "day", offset: -1 }, "99991231")).toEqual([]);
  });

  test("treats an opTime from before the model had its grain as a name", () => {
    expect(neededOpTimes({ modelGrain: "day", grain: "hour", offset: -1 }, "202402")).toEqual(["202402"]);
    expect(neededOpTimes({ modelGrain: "day" }, "week-9")).toEqual(["week-9"]);
  });
});

test("the two mappings are the inverse of each other", () => {
  const mappings = fc
    .tuple(fc.constantFrom(...GRAINS), fc.option(fc.constantFrom(...GRAINS), { nil: undefined }))
    .filter(([modelGrain, grain]) => checkMapping({ modelGrain, grain }) === undefined);
  const offsets = fc.integer({ min: -1_000, max: 1_000 });
  const instants = fc.integer({ min: Date.UTC(1900, 0), max: Date.UTC(9800, 0) });
  const at = (instant: number, grain: Grain) => opTimeAt(instant, grain, "UTC", 0);
  fc.assert(
    fc.property(mappings, offsets, instants, instants, ([modelGrain, grain], offset, instant, other) => {
      const mapping = { modelGrain, grain, offset };
      const modelOpTime = at(instant, modelGrain);
      const needed = neededOpTimes(mapping, modelOpTime);
      expect(needed.length).toBeGreaterThan(0);
      for (const opTime of needed) expect(affectedOpTimes(mapping, opTime)).toEqual([modelOpTime]);

      const tableOpTime = at(other, grain ?? modelGrain);
      const [affected = ""] = affectedOpTimes(mapping, tableOpTime);
      expect(neededOpTimes(mapping, affected)).toContain(tableOpTime);
    }),
  );
});
