import { describe, expect, test } from "vitest";
import { drawCycle, findCycle } from "./cycle.ts";

const cycleOf = (parents: Record<string, string[]>) => findCycle(new Map(Object.entries(parents)));

describe("findCycle", () => {
  test("finds none in a DAG, whatever the order of its nodes", () => {
    expect(cycleOf({ d: ["b", "c"], b: ["a"], c: ["a"], a: [] })).toBeUndefined();
    expect(cycleOf({})).toBeUndefined();
  });

  test("returns parents before children, starting with the first of the definition", () => {
    expect(cycleOf({ c: ["b"], a: ["c"], b: ["a"] })).toEqual(["c", "a", "b"]);
    expect(cycleOf({ a: ["c"], b: ["a"], c: ["b"] })).toEqual(["a", "b", "c"]);
  });

  test("omits ancestors and descendants of the cycle", () => {
    expect(cycleOf({ before: [], behind: ["y"], x: ["before", "y"], y: ["x"], last: ["behind"] })).toEqual(["x", "y"]);
  });

  test("finds a node that depends on itself", () => {
    expect(cycleOf({ a: [], b: ["a", "b"] })).toEqual(["b"]);
  });

  test("returns one of several", () => {
    expect(cycleOf({ a: ["b"], b: ["a"], x: ["y"], y: ["x"] })).toEqual(["a", "b"]);
  });

  test("ignores parents that do not exist and duplicates", () => {
    expect(cycleOf({ a: ["ghost"], b: ["a", "a"] })).toBeUndefined();
  });

  test("handles a cycle of ten thousand", () => {
    const ids = Array.from({ length: 10_000 }, (_, index) => `n${index}`);
    const parents = Object.fromEntries(ids.map((id, index) => [id, [ids.at(index - 1) ?? ""]]));
    expect(cycleOf(parents)).toEqual(ids);
  });
});

describe("drawCycle", () => {
  test("ends with its first node", () => {
    expect(drawCycle(["a", "b", "c"])).toBe("a -> b -> c -> a");
    expect(drawCycle(["a"])).toBe("a -> a");
  });

  test("shortens a long cycle in the middle", () => {
    const ids = Array.from({ length: 25 }, (_, index) => `n${index}`);
    expect(drawCycle(ids)).toMatch(/^n0 -> .* -> n9 -> \(5 more\) -> n15 -> .* -> n24 -> n0$/);
  });
});
