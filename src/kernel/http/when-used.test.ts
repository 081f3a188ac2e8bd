import { expect, test } from "vitest";
import { createWhenUsed } from "./when-used.ts";

function counting() {
  const whenUsed = createWhenUsed<number, number>();
  let compiled = 0;
  const times = (factor: number) =>
    whenUsed({ factor }, () => {
      compiled += 1;
      return (number) => number * factor;
    });
  return { times, compiled: () => compiled };
}

test("a schema is compiled once, at its first use", () => {
  const { times, compiled } = counting();
  const double = times(2);
  expect(compiled()).toBe(0);
  expect([double(1), double(2)]).toEqual([2, 4]);
  expect(compiled()).toBe(1);
});

test("schemas with the same text are compiled once, others for themselves", () => {
  const { times, compiled } = counting();
  expect([times(2)(5), times(2)(6), times(3)(5)]).toEqual([10, 12, 15]);
  expect(compiled()).toBe(2);
});

test("a schema that cannot be compiled throws at each use", () => {
  const broken = createWhenUsed()({}, () => {
    throw new Error("no such keyword");
  });
  expect(() => broken(1)).toThrow("no such keyword");
  expect(() => broken(1)).toThrow("no such keyword");
});
