import { beforeEach, expect, test } from "vitest";
import { createClockOffset } from "./clock-offset.ts";

/** The database's clock is this much ahead of the local one. */
const AHEAD_MS = 5_000;
let now: number;
let ahead: number;
beforeEach(() => {
  now = 100;
  ahead = AHEAD_MS;
});

/** The database reads its clock, and the answer takes this long. */
function answerIn(ms: number): number {
  const time = now + ahead;
  now += ms;
  return time;
}

test("the time is asked for until an answer is fast, but not for ever", async () => {
  let asked = 0;
  const offset = createClockOffset(
    async () => {
      asked += 1;
      return answerIn(30);
    },
    () => now,
  );
  await offset.ready();
  expect(asked).toBe(16);
});

test("a moment is mapped by the fastest answer, so never to an earlier one", async () => {
  const delays = [80, 12, 40, 3];
  const offset = createClockOffset(
    async () => answerIn(delays.shift() ?? 0),
    () => now,
  );
  await offset.ready();
  await offset.ready();
  expect(delays).toEqual([]);
  const mapped = offset.toLocal(now + AHEAD_MS) - now;
  expect(mapped).toBeGreaterThanOrEqual(3);
  expect(mapped).toBeLessThan(5);
});

test("a slow answer shows as late", async () => {
  const offset = createClockOffset(
    async () => answerIn(1),
    () => now,
  );
  await offset.ready();
  const time = answerIn(50);
  offset.learn(time);
  expect(now - offset.toLocal(time)).toBeGreaterThan(45);
});

test("a clock that was set back is followed at once, one that drifts after some answers", async () => {
  const offset = createClockOffset(
    async () => answerIn(1),
    () => now,
  );
  await offset.ready();
  ahead -= 10_000;
  let time = answerIn(1);
  offset.learn(time);
  expect(now - offset.toLocal(time)).toBeCloseTo(0);
  ahead -= 100;
  for (let n = 0; n < 300; n += 1) offset.learn(answerIn(1));
  time = answerIn(1);
  expect(now - offset.toLocal(time)).toBeLessThan(5);
});

test("a failure to ask is tried again by the next request", async () => {
  let fails = true;
  const offset = createClockOffset(
    async () => {
      if (fails) throw new Error("away");
      return answerIn(1);
    },
    () => now,
  );
  await expect(offset.ready()).rejects.toThrow("away");
  fails = false;
  await offset.ready();
});
