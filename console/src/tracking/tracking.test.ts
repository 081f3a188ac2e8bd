/** What the pages of tracking compute: rates from totals, and the parts of a stage's bar. */
import { describe, expect, test } from "vitest";
import { ratePerMinute, type Sample, withSample } from "./rates.ts";
import { partsOf } from "./stage-parts.ts";

describe("the rate of a stage", () => {
  const at = (seconds: number, done: number): Sample => ({ atMs: seconds * 1_000, done: { "shard-worker": done } });
  const rate = (samples: readonly Sample[], seconds: number) => ratePerMinute(samples, "shard-worker", seconds * 1_000);

  test("is unknown at first, then what was finished in the time seen, and at most of the last minute", () => {
    const samples = [at(0, 100), at(10, 110), at(40, 160), at(90, 200)].reduce(withSample, [] as readonly Sample[]);
    expect(rate([at(0, 100)], 1)).toBeUndefined();
    expect(rate([at(0, 100), at(10, 110)], 10)).toBe(60);
    expect(rate(samples, 90)).toBe(90);
    // Nothing was finished since: the rate falls as the window moves on.
    expect(rate(samples, 150)).toBe(0);
  });

  test("keeps only the samples that the window needs", () => {
    const samples = Array.from({ length: 500 }, (_, second) => at(second, second)).reduce(
      withSample,
      [] as readonly Sample[],
    );
    expect(samples.length).toBeLessThan(70);
    expect(rate(samples, 499)).toBe(60);
  });
});

test("shards wait for a stage only if they are done in the one before", () => {
  const file = {
    stages: { event_ingest: { done: 9, failed: 1 }, shard_splitter: { done: 3, started: 2, failed: 1, new: 4 } },
  };
  expect(partsOf(file, "shard-splitter")).toEqual([
    { state: "success", n: 3 },
    { state: "running", n: 2 },
    { state: "failed", n: 1 },
    { state: "waiting", n: 3 },
    { state: "skipped", n: 1 },
  ]);
});
