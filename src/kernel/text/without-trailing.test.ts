import { expect, test } from "vitest";
import { withoutTrailing } from "./without-trailing.ts";

test.each([
  ["", ""],
  ["0", ""],
  ["000", ""],
  ["100", "1"],
  ["1001", "1001"],
  ["10010", "1001"],
])("%j without trailing zeros is %j", (text, rest) => {
  expect(withoutTrailing(text, "0")).toBe(rest);
});

test("it takes a time in proportion to the length of the text", () => {
  const fastestMs = (zeros: number, times: number) => {
    const text = `1${"0".repeat(zeros)}1`;
    const rounds = Array.from({ length: 5 }, () => {
      const start = performance.now();
      for (let time = 0; time < times; time += 1) withoutTrailing(text, "0");
      return performance.now() - start;
    });
    return Math.min(...rounds);
  };
  const noiseMs = 5; // Both take microseconds.
  expect(fastestMs(20_000, 1)).toBeLessThan(fastestMs(500, 40) * 10 + noiseMs); // Quadratic: 40 times as long, 280 ms.
});
