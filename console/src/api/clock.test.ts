import { describe, expect, test } from "vitest";
import { createServerClock, createTicker } from "./clock.ts";

const NOON = Date.parse("2026-04-01T12:00:00Z");

describe("the clock of the server", () => {
  test.each([
    ["a minute and a half ahead", 95_000],
    ["an hour behind", -3_600_000],
  ])("is followed when it is %s of the browser", (_, aheadMs) => {
    let own = NOON;
    const clock = createServerClock(() => own);
    const sent = own;
    own += 40;
    clock.learn(new Date(own - 10 + aheadMs).toUTCString(), sent);
    expect(Math.abs(clock.now() - (own + aheadMs))).toBeLessThanOrEqual(1_000);
  });

  test("is that of the browser where they agree, however long a reply takes, and does not move between replies", () => {
    let own = NOON + 700;
    const clock = createServerClock(() => own);
    for (const tookMs of [5, 900, 4_000]) {
      const sent = own;
      own += tookMs;
      clock.learn(new Date(own).toUTCString(), sent);
      expect(clock.now()).toBe(own);
    }
    clock.learn(null, own);
    expect(clock.now()).toBe(own);
  });
});

describe("the present in steps", () => {
  test("is up to date for the first who looks after a time without anybody", () => {
    let now = NOON;
    const ticker = createTicker(() => now, 1_000);
    ticker.subscribe(() => {})();
    now += 95_000;
    expect(ticker.get()).toBe(now);
    // The same until the next step, as React demands.
    now += 10;
    expect(ticker.get()).toBe(now - 10);
  });
});
