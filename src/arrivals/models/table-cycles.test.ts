/** Cycles among the tables that models produce. */
import { expect, test } from "vitest";
import type { ProducingModel } from "../store/models.ts";
import { cycleProblem } from "./table-cycles.ts";

function makes(produces: string, ...needs: [table: string, shift?: number, optional?: boolean][]): ProducingModel {
  return { produces, needs: needs.map(([table, shift = 0, optional = false]) => ({ table, shift, optional })) };
}

test("tables produced from each other in one direction are no cycle", () => {
  expect(cycleProblem([makes("B", ["A"]), makes("C", ["B"], ["A"]), makes("D", ["C"])])).toBeUndefined();
});

test("a table that would wait for itself is refused with the cycle", () => {
  expect(cycleProblem([makes("B", ["A"]), makes("A", ["B"])])).toMatch(/^The tables would wait for themselves: .*A.*B/);
  expect(cycleProblem([makes("A", ["A", 1])])).toContain("A -> A");
});

test("a model may need its own table of the previous period, together with one from outside", () => {
  expect(cycleProblem([makes("P", ["P", -1], ["ORDERS"])])).toBeUndefined();
  expect(cycleProblem([makes("P", ["Q", -1], ["ORDERS"]), makes("Q", ["P"])])).toBeUndefined();
});

test("models that need only each other are refused, since they would run without end", () => {
  const endless = /^Once started, the models would trigger each other for period after period without end/;
  expect(cycleProblem([makes("P", ["P", -1])])).toMatch(endless);
  expect(cycleProblem([makes("P", ["P", -1], ["ORDERS", 0, true])])).toMatch(endless);
  expect(cycleProblem([makes("P", ["Q", -1]), makes("Q", ["P"]), makes("R", ["A"])])).toMatch(endless);
});
