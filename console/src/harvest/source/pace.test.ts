import { expect, test } from "vitest";
import type { Gate } from "../api.ts";
import { reasonsOf } from "./gate-reasons.ts";
import { causeOf, perRequest, sharesOf } from "./pace.ts";

const pace = { runs: 1, requests: 100, throttled: 0, busyMs: 1_000, waitMs: 0, answerMs: 0 };

test.each([
  ["none", { runs: 0 }],
  ["gate", { waitMs: 700, answerMs: 200 }],
  ["source", { waitMs: 200, answerMs: 700 }],
  ["own", { waitMs: 100, answerMs: 100 }],
  ["throttled", { waitMs: 700, throttled: 5 }],
  ["gate", { waitMs: 700, throttled: 4 }],
])("the cause is %s for %j", (cause, change) => {
  expect(causeOf({ ...pace, ...change })).toBe(cause);
});

test("shares add up to one, also where parts of the time overlap", () => {
  expect(sharesOf({ busyMs: 1_000, waitMs: 900, answerMs: 600 })).toEqual({ wait: 0.6, answer: 0.4, own: 0 });
  expect(sharesOf({ busyMs: 0, waitMs: 0, answerMs: 0 })).toEqual({ wait: 0, answer: 0, own: 0 });
});

test("times of requests are averages of each part of the period, with gaps where nothing was asked", () => {
  const at = "2026-08-01T00:01:00.000Z";
  const bucket = { ...pace, at, failed: 0, running: 0, records: 0, requests: 4, waitMs: 40, answerMs: 8 };
  const since = "2026-08-01T00:00:00.000Z";
  expect(perRequest({ since, bucketSec: 60, buckets: [bucket] }, Date.parse(since) + 120_000)).toEqual({
    x: [0, 60_000, 120_000].map((ms) => Date.parse(since) + ms),
    wait: [null, 10, null],
    answer: [null, 2, null],
  });
});

const gate: Gate = {
  key: "shop",
  declaredBy: "source",
  ratePerSec: 10,
  burst: 1,
  concurrency: 2,
  headerRatePerSec: null,
  headerConcurrency: null,
  currentRatePerSec: 10,
  lastCutAt: null,
  cooldownUntil: null,
  backlogMs: 0,
  slotsTaken: 0,
  quotas: [],
  waiting: 0,
};
const quota = { unit: "requests", windowSec: 60, limit: 100, heldBack: 0.1, used: 90, resetAt: "" } as const;

test.each([
  [[], {}],
  [["cooldown"], { cooldownUntil: "2026-08-01T00:00:00Z", backlogMs: 5_000 }],
  [["cut"], { currentRatePerSec: 5, lastCutAt: "2026-08-01T00:00:00Z" }],
  [["warm"], { currentRatePerSec: 5 }],
  [["header"], { currentRatePerSec: 5, headerRatePerSec: 5 }],
  [["places"], { slotsTaken: 2 }],
  [["queue"], { backlogMs: 1_500 }],
  [["quota"], { quotas: [quota] }],
  [[], { quotas: [{ ...quota, used: 89 }] }],
])("a gate is slow because of %j for %j", (reasons, change) => {
  expect(reasonsOf({ ...gate, ...change }).map(({ why }) => why)).toEqual(reasons);
});
