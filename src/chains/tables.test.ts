import { expect, test } from "vitest";
import type { Queryable } from "../kernel/data/db.ts";
import { createTables } from "./tables.ts";

const db = {} as Queryable;

test("without anybody who knows of tables none has arrived, and names are as given", async () => {
  const tables = createTables();
  expect(await tables.hasArrived(db, ["a"], "20260101")).toEqual(new Set());
  expect(tables.tableName("a")).toBe("a");
});

test("who knows of tables is asked from then on, and there is only one", async () => {
  const known = { hasArrived: async () => new Set(["a"]), tableName: (given: string) => given.toUpperCase() };
  const tables = createTables();
  const { hasArrived, tableName } = tables;
  tables.connect(known);
  expect(await hasArrived(db, ["a", "b"], "20260101")).toEqual(new Set(["a"]));
  expect(tableName("a")).toBe("A");
  expect(() => tables.connect(known)).toThrow("tables are connected already");
});
