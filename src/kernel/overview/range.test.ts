import { describe, expect, test } from "vitest";
import { HOUR_MS, MINUTE_MS } from "../time/units.ts";
import { BUCKETS_MAX, rangeOf } from "./range.ts";

const NOW = Date.parse("2026-11-16T12:34:56.789Z");

describe("a range of time", () => {
  test.each([
    [1, MINUTE_MS, "2026-11-16T11:34:00.000Z", 61],
    [24, 30 * MINUTE_MS, "2026-11-15T12:30:00.000Z", 49],
    [168, 3 * HOUR_MS, "2026-11-09T12:00:00.000Z", 57],
    [744, 12 * HOUR_MS, "2026-10-16T12:00:00.000Z", 63],
  ])("of %i hours has round buckets that cover it, the last one up to now", (hours, bucketMs, from, buckets) => {
    const range = rangeOf({ hours }, NOW);
    expect(range).toEqual({ from: new Date(from), to: new Date(NOW), bucketMs, buckets });
    expect(buckets).toBeLessThanOrEqual(BUCKETS_MAX);
  });

  test("may be a part of the past", () => {
    const asked = { from: "2026-11-16T10:00:00Z", to: "2026-11-16T10:30:00Z", hours: 24 };
    expect(rangeOf(asked, NOW)).toMatchObject({ bucketMs: MINUTE_MS, buckets: 30 });
  });

  test.each([
    [{ from: "2026-11-16T10:00:00Z", to: "2026-11-16T10:00:00Z", hours: 1 }, /must be earlier/],
    [{ from: "2026-01-01T00:00:00Z", hours: 1 }, /at most 31 days/],
  ])("is refused as %j", (asked, sentence) => {
    expect(() => rangeOf(asked, NOW)).toThrow(sentence);
  });
});
