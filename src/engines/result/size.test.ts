import { expect, test } from "vitest";
import { limitSize } from "./size.ts";

test("a character counts as one byte, another value as eight, at every depth", () => {
  const size = limitSize(1_000, () => {});
  expect(size.add({ text: "x".repeat(10) })).toBe(8 + 10);
  expect(size.add({ n: 1, b: true, none: null })).toBe(8 + 3 * 8);
  expect(size.add({ list: ["ab", { deep: "cd" }] })).toBe(8 + (8 + 2 + (8 + 2)));
});

test("tells when the sum is above the limit, and starts again after a reset", () => {
  let exceeded = 0;
  const size = limitSize(36, () => {
    exceeded += 1;
  });
  const row = { text: "x".repeat(10) };
  size.add(row);
  size.add(row);
  expect(exceeded).toBe(0);
  size.reset();
  size.add(row);
  size.add(row);
  expect(exceeded).toBe(0);
  size.add(row);
  expect(exceeded).toBe(1);
});

test("refuses a part of a row before it is converted, counted with the rows so far", () => {
  let exceeded = 0;
  const size = limitSize(100, () => {
    exceeded += 1;
  });
  size.reserveItems(10);
  size.add({ list: "x".repeat(40) });
  size.reserveItems(6);
  expect(exceeded).toBe(0);
  expect(() => size.reserve(10)).toThrow("too large");
  expect(exceeded).toBe(1);
});
