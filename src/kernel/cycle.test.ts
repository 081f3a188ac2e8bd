import { describe, expect, test } from "vitest";
import { drawCycle, findCycle } from "./cycle.ts";

const cycleOf = (parents: Record<string, string[]>) => findCycle(new Map(Object.entries(parents)));

describe("findCycle", () => {
  test("finds none in a DAG, whatever the order in which it is written", () => {
    expect(cycleOf({ d: ["b", "c"], b: ["a"], c: ["a"], a: [] })).toBeUndefined();
    expect(cycleOf({})).toBeUndefined();
  });

  test("answers each node before the one that waits for it, from the first of the definition", () => {
    expect(cycleOf({ c: ["b"], a: ["c"], b: ["a"] })).toEqual(["c", "a", "b"]);
    expect(cycleOf({ a: ["c"], b: ["a"], c: ["b"] })).toEqual(["a", "b", "c"]);
  });

  test("leaves out what only lies before or behind it", () => {
    expect(cycleOf({ before: [], behind: ["y"], x: ["before", "y"], y: ["x"], last: ["behind"] })).toEqual(["x", "y"]);
  });

  test("takes a node that waits for itself for the smallest one", () => {
    expect(cycleOf({ a: [], b: ["a", "b"] })).toEqual(["b"]);
  });

  test("answers one of several", () => {
    expect(cycleOf({ a: ["b"], b: ["a"], x: ["y"], y: ["x"] })).toEqual(["a", "b"]);
  });

  test("passes over parents that do not exist and those named twice", () => {
    expect(cycleOf({ a: ["ghost"], b: ["a", "a"] })).toBeUndefined();
  });

  test("comes to an end with a cycle of ten thousand", () => {
    const ids = Array.from({ length: 10_000 }, (_, index) => `n${index}`);
    const parents = Object.fromEntries(ids.map((id, index) => [id, [ids.at(index - 1) ?? ""]]));
    expect(cycleOf(parents)).toEqual(ids);
  });
});

describe("drawCycle", () => {
  test("comes back to where it began", () => {
    expect(drawCycle(["a", "b", "c"])).toBe("a -> b -> c -> a");
    expect(drawCycle(["a"])).toBe("a -> a");
  });

  test("leaves out the middle of one that nobody would read to the end", () => {
    const ids = Array.from({ length: 25 }, (_, index) => `n${index}`);
    expect(drawCycle(ids)).toMatch(/^n0 -> .* -> n9 -> \(5 more\) -> n15 -> .* -> n24 -> n0$/);
  });
});
