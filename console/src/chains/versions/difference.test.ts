/** What differs between two definitions. */
import { expect, test } from "vitest";
import { differenceOf, isSame } from "./difference.ts";

const definition = (nodes: readonly object[], fields: object = {}) => ({
  name: "daily",
  description: null,
  dag: { nodes: nodes as { id: string; type: string }[] },
  ...fields,
});
const A = { id: "a", type: "noop" };
const B = { id: "b", type: "sql", cfg: { sql: "select 1", rowsMax: 5 } };

test("nodes are told apart by their id: added, removed, and changed with the fields that differ", () => {
  const changed = { ...B, cfg: { sql: "select 2", rowsMax: 5 }, dependsOn: ["c"] };
  expect(differenceOf(definition([A, B]), definition([{ id: "c", type: "noop" }, changed]))).toEqual({
    added: ["c"],
    removed: ["a"],
    changed: [{ id: "b", fields: ["cfg", "dependsOn"] }],
    isReordered: false,
    fields: [],
  });
});

test("the order of keys is no difference, nor is null where a field is absent", () => {
  const same = { cfg: { rowsMax: 5, sql: "select 1" }, type: "sql", id: "b", pool: null };
  expect(isSame(differenceOf(definition([A, B]), definition([A, same])))).toBe(true);
});

test("the order of nodes and the fields of the chain are differences of their own", () => {
  const difference = differenceOf(definition([A, B]), definition([B, A], { description: "x" }));
  expect(difference).toMatchObject({ added: [], removed: [], changed: [], isReordered: true, fields: ["description"] });
});
