import { expect, test } from "vitest";
import { EngineRefusal } from "../engine.ts";
import { kindOfItems, numbered } from "./params.ts";

test("names become numbers, the same for each use, and unused values are left out", () => {
  const params = { unused: 0, op_time: "20260101", limit: 5 };
  expect(numbered("select $op_time where a > $limit and b = $op_time -- $limit", params)).toEqual({
    text: "select $1 where a > $2 and b = $1 -- $limit",
    values: ["20260101", 5],
  });
});

test("a list has numbers for names", () => {
  expect(numbered("select $3, $1, '$2', $3", ["a", "unused", null])).toEqual({
    text: "select $1, $2, '$2', $1",
    values: [null, "a"],
  });
  expect(() => numbered("select $2", ["a"])).toThrow("The SQL uses $2, but params has no such value. Given: $1.");
});

test("a name without a value is refused, and so is a number among names", () => {
  expect(() => numbered("select $opTime", { op_time: 1 })).toThrow(
    new EngineRefusal("The SQL uses $opTime, but params has no such value. Given: $op_time."),
  );
  expect(() => numbered("select $a, $1", { a: 1 })).toThrow("The SQL uses $1");
  expect(() => numbered("select $toString", {})).toThrow("Given: none.");
});

test("a list of different things, or of objects, becomes JSON text", () => {
  const lists = [["a", null], [1, "a"], [{ a: 1 }], [[1]], []];
  expect(numbered("select $1, $2, $3, $4, $5", lists).values).toEqual([
    ["a", null],
    '[1,"a"]',
    '[{"a":1}]',
    "[[1]]",
    [],
  ]);
});

test.each([
  [["a", null], "string"],
  [[1, 2.5], "number"],
  [[true], "boolean"],
  [[null], "null"],
  [[], "null"],
  [[1, "a"], undefined],
  [[{}], undefined],
])("the items of %j are of the kind %s", (items, kind) => {
  expect(kindOfItems(items)).toBe(kind);
});
