/** What a test asserts about a client's rate is right: a second is a half-open window, wherever it begins. */
import { describe, expect, test } from "vitest";
import { createTraffic } from "./common/traffic.ts";

function worstSecond(times: readonly number[]): number | undefined {
  const traffic = createTraffic();
  for (const time of times) traffic.arrive("key", time).leave(200);
  return traffic.summary().keys["key"]?.worstSecond;
}

describe("the worst second", () => {
  test.each([
    [[], undefined],
    [[5], 1],
    [[0, 1000], 1],
    [[0, 999.9], 2],
    [[0, 500, 1000, 1500, 2000], 2],
    [[0, 900, 950, 1000, 1899, 1900, 5000], 4],
    [[0, 0, 0, 3000, 3000], 3],
  ])("of arrivals at %j is %s", (times, worst) => {
    expect(worstSecond(times)).toBe(worst);
  });

  test("is what counting every window gives", () => {
    const times = Array.from({ length: 300 }, (_, index) => (index * 7919) % 20_000).sort((one, other) => one - other);
    const counted = times.map((start) => times.filter((time) => time >= start && time - start < 1000).length);
    expect(worstSecond(times)).toBe(Math.max(...counted));
  });
});

test("keys are counted apart, and open requests together", () => {
  const traffic = createTraffic();
  const [one, two] = [traffic.arrive("a", 0), traffic.arrive("b", 1)];
  one.leave(200);
  one.leave(200);
  traffic.arrive("a", 2);
  two.leave("lost");
  expect(traffic.arrivals("a")).toEqual([0, 2]);
  expect(traffic.summary()).toEqual({
    requests: 3,
    concurrencyMax: 2,
    answers: { "200": 1, lost: 1 },
    keys: {
      a: { requests: 2, refused: 0, worstSecond: 2, concurrencyMax: 1 },
      b: { requests: 1, refused: 0, worstSecond: 1, concurrencyMax: 1 },
    },
  });
});

test("a refused request does not count against the next", () => {
  const traffic = createTraffic();
  const limit = { requests: 1, intervalMs: 1000 };
  expect([0, 999, 1000].map((time) => traffic.arrive("a", time).admit(limit))).toEqual([true, false, true]);
});
