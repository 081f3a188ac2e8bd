import { expect, test } from "vitest";
import { isDeeper } from "./depth.ts";

const lists = (levels: number): unknown => (levels === 0 ? null : [lists(levels - 1)]);
const objects = (levels: number): unknown => (levels === 0 ? "end" : { a: 1, b: objects(levels - 1) });

test.each([
  ["no levels", 7, 0, false],
  ["null", null, 0, false],
  ["an empty list", [], 0, true],
  ["an empty object", {}, 0, true],
  ["lists as deep as allowed", lists(3), 3, false],
  ["lists that are deeper", lists(4), 3, true],
  ["objects as deep as allowed", objects(3), 3, false],
  ["objects that are deeper", objects(4), 3, true],
  ["the depth at the end of a list", [1, null, "a", { b: [lists(1)] }], 3, true],
  ["a field that bears the name of the prototype", JSON.parse('{"__proto__": [[]]}'), 2, true],
])("%s", (_, value, levels, expected) => {
  expect(isDeeper(value, levels)).toBe(expected);
});

test("the items of a list are read once each, without listing its keys", () => {
  const reads: PropertyKey[] = [];
  const list = new Proxy([1, 2, 3], {
    get: (target, name, receiver) => (reads.push(name), Reflect.get(target, name, receiver) as unknown),
    ownKeys: () => expect.fail("the names of the items were asked for"),
  });
  expect(isDeeper(list, 1)).toBe(false);
  expect(reads.filter((name) => name !== "length")).toEqual(["0", "1", "2"]);
});
