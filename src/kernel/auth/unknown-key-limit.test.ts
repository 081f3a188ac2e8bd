/** How many unknown keys an address may send, and how many addresses are remembered. */
import { beforeEach, expect, test } from "vitest";
import { createUnknownKeyLimit, type UnknownKeyLimit } from "./unknown-key-limit.ts";

const PER_MINUTE = 60;
let nowMs: number;
let limit: UnknownKeyLimit;

beforeEach(() => {
  nowMs = 1_000_000;
  limit = createUnknownKeyLimit({ clock: { now: () => nowMs } });
});

function fail(address: string, times: number): void {
  for (let i = 0; i < times; i += 1) limit.count(address);
}

/** Counts one more. */
const isRefused = (address: string) => {
  try {
    limit.count(address);
    return false;
  } catch {
    return true;
  }
};

test("an address is refused after sixty failures in a minute, with the time to wait, and others are not", () => {
  fail("10.0.0.1", PER_MINUTE);
  nowMs += 17_500;
  expect(() => limit.count("10.0.0.1")).toThrow(
    expect.objectContaining({
      code: "RATE_LIMITED",
      retryAfterSeconds: 43,
      message: "This address made more than 60 requests with unknown keys in a minute. Try again in 43 s.",
    }),
  );
  expect(isRefused("10.0.0.2")).toBe(false);
});

test("the count restarts after a minute", () => {
  fail("10.0.0.1", PER_MINUTE);
  nowMs += 59_999;
  expect(isRefused("10.0.0.1")).toBe(true);
  nowMs += 1;
  fail("10.0.0.1", PER_MINUTE);
  expect(isRefused("10.0.0.1")).toBe(true);
});

test("ten thousand addresses are remembered, and the one whose minute began first is dropped", () => {
  fail("first", PER_MINUTE);
  fail("second", PER_MINUTE);
  for (let i = 2; i < 10_000; i += 1) limit.count(`address ${i}`);
  expect([isRefused("first"), isRefused("second")]).toEqual([true, true]);
  limit.count("one more");
  expect([isRefused("second"), isRefused("first")]).toEqual([true, false]);
});

test("an address whose minute restarted is no longer the oldest", () => {
  fail("first", 1);
  nowMs += 60_000;
  fail("second", PER_MINUTE);
  fail("first", PER_MINUTE);
  for (let i = 2; i <= 10_000; i += 1) limit.count(`address ${i}`);
  expect([isRefused("first"), isRefused("second")]).toEqual([true, false]);
});
