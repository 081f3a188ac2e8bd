/** How many unknown keys an address may present, and how little is remembered of it. */
import { beforeEach, expect, test } from "vitest";
import { createGuesses, type Guesses } from "./guesses.ts";

const PER_MINUTE = 60;
let nowMs: number;
let guesses: Guesses;

beforeEach(() => {
  nowMs = 1_000_000;
  guesses = createGuesses({ clock: { now: () => nowMs } });
});

function fail(address: string, times: number): void {
  for (let i = 0; i < times; i += 1) guesses.count(address);
}

const isRefused = (address: string) => {
  try {
    guesses.check(address);
    return false;
  } catch {
    return true;
  }
};

test("an address is refused after sixty failures in a minute, with the time to wait, and others are not", () => {
  fail("10.0.0.1", PER_MINUTE - 1);
  expect(isRefused("10.0.0.1")).toBe(false);
  fail("10.0.0.1", 1);
  nowMs += 17_500;
  expect(() => guesses.check("10.0.0.1")).toThrow(
    expect.objectContaining({
      code: "RATE_LIMITED",
      retryAfterSeconds: 43,
      message: "This address made more than 60 requests with unknown keys in a minute. Try again in 43 s.",
    }),
  );
  expect(isRefused("10.0.0.2")).toBe(false);
});

test("the count begins anew when the minute is over", () => {
  fail("10.0.0.1", PER_MINUTE);
  nowMs += 59_999;
  expect(isRefused("10.0.0.1")).toBe(true);
  nowMs += 1;
  expect(isRefused("10.0.0.1")).toBe(false);
  fail("10.0.0.1", 1);
  expect(isRefused("10.0.0.1")).toBe(false);
});

test("ten thousand addresses are remembered, and the one whose minute began first makes room", () => {
  fail("first", PER_MINUTE);
  fail("second", PER_MINUTE);
  for (let i = 2; i < 10_000; i += 1) guesses.count(`address ${i}`);
  expect([isRefused("first"), isRefused("second")]).toEqual([true, true]);
  guesses.count("one more");
  expect([isRefused("first"), isRefused("second")]).toEqual([false, true]);
});

test("an address whose minute began anew is no longer the oldest", () => {
  fail("first", 1);
  nowMs += 60_000;
  fail("second", PER_MINUTE);
  fail("first", PER_MINUTE);
  for (let i = 2; i <= 10_000; i += 1) guesses.count(`address ${i}`);
  expect([isRefused("first"), isRefused("second")]).toEqual([true, false]);
});
