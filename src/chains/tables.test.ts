import { expect, test } from "vitest";
import type { Queryable } from "../kernel/data/db.ts";
import { createTables } from "./tables.ts";

const db = {} as Queryable;

test("before a module connects, no table has arrived and names are as given", async () => {
  const tables = createTables();
  expect(await tables.hasArrived(db, ["a"], "20260101")).toEqual(new Set());
  expect(tables.tableName("a")).toBe("a");
});

test("a connected module is used from then on, and only one can connect", async () => {
  const module = { hasArrived: async () => new Set(["a"]), tableName: (given: string) => given.toUpperCase() };
  const tables = createTables();
  const { hasArrived, tableName } = tables;
  tables.connect(module);
  expect(await hasArrived(db, ["a", "b"], "20260101")).toEqual(new Set(["a"]));
  expect(tableName("a")).toBe("A");
  expect(() => tables.connect(module)).toThrow("tables are already connected");
});
