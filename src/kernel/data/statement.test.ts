import { expect, test } from "vitest";
import { statement } from "./statement.ts";

test("a name is unique, since two texts under one name would share a prepared statement", () => {
  statement("statement.test.once", "select 1");
  expect(() => statement("statement.test.once", "select 2")).toThrow("two statements are named statement.test.once");
});

test("a name longer than an identifier of Postgres is refused, since it would be truncated", () => {
  expect(statement(`statement.test.${"x".repeat(48)}`, "select 1").name).toHaveLength(63);
  expect(() => statement(`statement.test.${"x".repeat(49)}`, "select 1")).toThrow("statement name too long");
});
