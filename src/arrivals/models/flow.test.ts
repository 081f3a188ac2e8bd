import { expect, test } from "vitest";
import type { ModelFlow } from "../store/models.ts";
import { circleOf } from "./flow.ts";

function makes(produces: string, ...needs: [table: string, shift?: number, optional?: boolean][]): ModelFlow {
  return { produces, needs: needs.map(([table, shift = 0, optional = false]) => ({ table, shift, optional })) };
}

test("tables that are made one out of the other are no circle", () => {
  expect(circleOf([makes("B", ["A"]), makes("C", ["B"], ["A"]), makes("D", ["C"])])).toBeUndefined();
});

test("a table that would wait for itself is drawn", () => {
  expect(circleOf([makes("B", ["A"]), makes("A", ["B"])])).toMatch(/^The tables would wait for themselves: .*A.*B/);
  expect(circleOf([makes("A", ["A", 1])])).toContain("A -> A");
});

test("a model may need its own table of the period before, beside one that comes from outside", () => {
  expect(circleOf([makes("P", ["P", -1], ["ORDERS"])])).toBeUndefined();
  expect(circleOf([makes("P", ["Q", -1], ["ORDERS"]), makes("Q", ["P"])])).toBeUndefined();
});

test("models that need nothing but each other would never stop", () => {
  const forEver = /^Once begun, the tables would feed themselves from period to period for ever/;
  expect(circleOf([makes("P", ["P", -1])])).toMatch(forEver);
  expect(circleOf([makes("P", ["P", -1], ["ORDERS", 0, true])])).toMatch(forEver);
  expect(circleOf([makes("P", ["Q", -1]), makes("Q", ["P"]), makes("R", ["A"])])).toMatch(forEver);
});
