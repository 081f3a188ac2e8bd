import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { durationMs, durationText, similarDuration } from "./duration.ts";

describe("a duration", () => {
  test.each([
    ["PT600S", 600_000, "PT10M"],
    ["PT10M", 600_000, "PT10M"],
    ["PT24H", 86_400_000, "P1D"],
    ["P1DT1H30M5S", 91_805_000, "P1DT1H30M5S"],
    ["P3D", 259_200_000, "P3D"],
    ["P0D", 0, "PT0S"],
  ])("%s is %i ms, written %s", (text, ms, written) => {
    expect(durationMs(text)).toBe(ms);
    expect(durationText(ms)).toBe(written);
  });

  test.each(["", "P", "PT", "P1DT", "P1M", "P1Y", "P1W", "PT1.5S", "1D", "-PT1S", "P36526D", `P${"9".repeat(30)}D`])(
    "%j is none",
    (text) => {
      expect(durationMs(text)).toBeUndefined();
    },
  );

  test.each([
    ["3d", "P3D"],
    ["6 hours", "PT6H"],
    ["P2W", "P14D"],
    ["90min", "PT1H30M"],
    ["PT3D", "P3D"],
    ["0d", undefined],
    ["1 month", undefined],
    ["999999999d", undefined],
  ])("may be meant by %j: %s", (text, similar) => {
    expect(similarDuration(text)).toBe(similar);
  });

  test("is read back from its text", () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 36_525 * 86_400 }), (seconds) => {
        expect(durationMs(durationText(seconds * 1_000))).toBe(seconds * 1_000);
      }),
    );
  });
});
