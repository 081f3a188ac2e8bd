import { expect, test } from "vitest";
import { statement } from "./statement.ts";

test("a name is given once, since two texts under one name would share a prepared statement", () => {
  statement("statement.test.once", "select 1");
  expect(() => statement("statement.test.once", "select 2")).toThrow("two statements are named statement.test.once");
});

test("a name longer than Postgres keeps is refused, since it would be cut to one that is taken", () => {
  expect(statement(`statement.test.${"x".repeat(48)}`, "select 1").name).toHaveLength(63);
  expect(() => statement(`statement.test.${"x".repeat(49)}`, "select 1")).toThrow("statement name too long");
});
