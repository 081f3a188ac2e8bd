import { expect, test } from "vitest";
import { providerSignal } from "./provider-headers.ts";

const NOW_MS = Date.parse("2026-11-16T18:00:00Z");
const signal = (headers: Record<string, string>) => providerSignal(headers, NOW_MS);

test("a limit and its interval are a rate that a gate can keep", () => {
  expect(signal({ "x-rate-limit-limit": "50", "x-rate-limit-interval": "1s" })).toMatchObject({ ratePerSec: 50 });
  expect(signal({ "x-ratelimit-limit": "3, 3", "x-ratelimit-interval": "1m" })).toMatchObject({ ratePerSec: 0.05 });
  expect(signal({ "x-ratelimit-limit": "1", "x-ratelimit-interval": "999999h" })).toMatchObject({ ratePerSec: 1e-5 });
  expect(signal({ "x-ratelimit-limit": "900000", "x-ratelimit-interval": "1s" })).toMatchObject({ ratePerSec: 10_000 });
  expect(signal({ "x-ratelimit-limit": "0", "x-ratelimit-interval": "1s" })).toBeUndefined();
});

test("a limit alone is a rate over the time that the definition declares, and says nothing where it declares none", () => {
  const alone = { "x-ratelimit-limit": "3", "x-ratelimit-remaining": "2" };
  expect(providerSignal(alone, NOW_MS, 1_000)).toEqual({ kind: "headers", ratePerSec: 3 });
  expect(providerSignal(alone, NOW_MS, 60_000)).toMatchObject({ ratePerSec: 0.05 });
  expect(signal(alone)).toBeUndefined();
  expect(providerSignal({ "x-ratelimit-limit": "0" }, NOW_MS, 1_000)).toBeUndefined();
  // What the source says itself counts.
  expect(providerSignal({ ...alone, "x-ratelimit-interval": "2s" }, NOW_MS, 1_000)).toMatchObject({ ratePerSec: 1.5 });
  const quota = { ...alone, "x-ratelimit-reset": "3600" };
  expect(providerSignal(quota, NOW_MS, 1_000)).toEqual(signal(quota));
});

test.each([
  ["2000", 1_000],
  ["2.5", 2],
  ["1", 1],
])("a concurrency limit of %s is %d", (header, concurrency) => {
  expect(signal({ "x-concurrency-limit": header })).toEqual({ kind: "headers", concurrency });
});

test.each(["0", "0.5", "-1", "many", "1e3"])("a concurrency limit of %s says nothing", (header) => {
  expect(signal({ "x-concurrency-limit": header })).toBeUndefined();
});

test.each([
  ["seconds from now", "3600", 3_600_000],
  ["a time in seconds", String(NOW_MS / 1_000 + 3_600), 3_600_000],
  ["a time in milliseconds", String(NOW_MS + 3_600_000), 3_600_000],
])("a reset is %s", (_, reset, resetAfterMs) => {
  const headers = { "x-ratelimit-limit": "100", "x-ratelimit-remaining": "7", "x-ratelimit-reset": reset };
  expect(signal(headers)?.quotas).toEqual([{ unit: "requests", limit: 100, remaining: 7, resetAfterMs }]);
});

test.each([
  ["has passed", String(NOW_MS / 1_000 - 5)],
  ["is a date", "2026-11-16T19:00:00Z"],
  ["is missing", undefined],
])("a quota whose reset %s says nothing", (_, reset) => {
  const headers = { "x-ratelimit-limit": "100", "x-ratelimit-remaining": "7" };
  expect(signal({ ...headers, ...(reset === undefined ? {} : { "x-ratelimit-reset": reset }) })).toBeUndefined();
});

test("of a limit of 0 nothing remains", () => {
  const headers = { "x-ratelimit-limit": "0", "x-ratelimit-remaining": "0", "x-ratelimit-reset": "60" };
  expect(signal(headers)?.quotas).toEqual([{ unit: "requests", remaining: 0, resetAfterMs: 60_000 }]);
  const money = { "x-ratelimit-limit-usd": "0", "x-ratelimit-remaining-usd": "0", "x-ratelimit-reset": "60" };
  expect(signal(money)?.quotas).toEqual([{ unit: "usd_micros", remaining: 0, resetAfterMs: 60_000 }]);
});

test("money is told in millionths of a dollar", () => {
  const headers = { "x-ratelimit-limit-usd": "1", "x-ratelimit-remaining-usd": "0.4321", "x-ratelimit-reset": "60" };
  expect(signal({ ...headers, "x-ratelimit-limit": "9", "x-ratelimit-remaining": "3" })?.quotas).toEqual([
    { unit: "usd_micros", limit: 1_000_000, remaining: 432_100, resetAfterMs: 60_000 },
  ]);
});
