import { expect, test } from "vitest";
import { whenUsed } from "./when-used.ts";

test("what is compiled is compiled at its first use, and once", () => {
  let compiled = 0;
  const double = whenUsed(() => {
    compiled += 1;
    return (number: number) => number * 2;
  });
  expect(compiled).toBe(0);
  expect([double(1), double(2)]).toEqual([2, 4]);
  expect(compiled).toBe(1);
});

test("what could not be compiled is tried again, and says why each time", () => {
  const broken = whenUsed(() => {
    throw new Error("no such keyword");
  });
  expect(() => broken(1)).toThrow("no such keyword");
  expect(() => broken(1)).toThrow("no such keyword");
});
