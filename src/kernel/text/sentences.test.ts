import { expect, test } from "vitest";
import { counted, listed, oneLine } from "./sentences.ts";

test("a count has its noun in the singular for one and in the plural for any other", () => {
  expect([0, 1, 2].map((count) => counted(count, "node"))).toEqual(["0 nodes", "1 node", "2 nodes"]);
  expect([1, 2].map((count) => counted(count, "entry", "entries"))).toEqual(["1 entry", "2 entries"]);
});

test("a list shows its first items and counts the others", () => {
  expect(listed(["a", "b"], 2)).toBe("a, b");
  expect(listed(["a", "b", "c", "d"], 2)).toBe("a, b and 2 more");
  expect(listed([], 2)).toBe("");
});

test("text from outside becomes one line that can be stored", () => {
  expect(oneLine("  one\r\n\ttwo\0three ", 100)).toBe("one two three");
  expect(oneLine("abc", 2)).toBe("ab");
  expect(oneLine("a😀", 2)).toBe("a\uFFFD");
  expect(oneLine("\n", 10)).toBe("");
});
