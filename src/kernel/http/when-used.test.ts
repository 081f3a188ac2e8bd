import { expect, test } from "vitest";
import { whenUsed } from "./when-used.ts";

test("a schema is compiled once, at its first use", () => {
  let compiled = 0;
  const double = whenUsed(() => {
    compiled += 1;
    return (number: number) => number * 2;
  });
  expect(compiled).toBe(0);
  expect([double(1), double(2)]).toEqual([2, 4]);
  expect(compiled).toBe(1);
});

test("a schema that cannot be compiled throws at each use", () => {
  const broken = whenUsed(() => {
    throw new Error("no such keyword");
  });
  expect(() => broken(1)).toThrow("no such keyword");
  expect(() => broken(1)).toThrow("no such keyword");
});
