/** Parsing of sets of shards. */
import { expect, test } from "vitest";
import { parseShards } from "./shards.ts";

test("numbers and ranges are expanded in order, each shard once", () => {
  expect(parseShards("0,1,4-7")).toEqual([0, 1, 4, 5, 6, 7]);
  expect(parseShards(" 3 , 2-3 ")).toEqual([3, 2]);
  expect(parseShards("2147483647")).toEqual([2_147_483_647]);
});

test.each([
  ["", "`` is neither a shard nor a range"],
  ["1,,2", "`` is neither a shard nor a range"],
  ["a", "`a` is neither a shard nor a range"],
  ["-1", "`-1` is neither a shard nor a range"],
  ["1-2-3", "`1-2-3` is neither a shard nor a range"],
  ["1.5", "`1.5` is neither a shard nor a range"],
  ["7-4", "The range `7-4` ends before it begins"],
])("`%s` is refused with the part that is wrong", (text, problem) => {
  expect(() => parseShards(text)).toThrow(problem);
});

test("a range that would fill the memory is refused before it is expanded", () => {
  expect(() => parseShards("0-2000000000")).toThrow("more than 10000 shards");
  expect(() => parseShards("0-5000,6000-11000")).toThrow("more than 10000 shards");
  expect(parseShards("0-9999")).toHaveLength(10_000);
});
