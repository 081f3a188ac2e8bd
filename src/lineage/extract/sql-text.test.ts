import { describe, expect, test } from "vitest";
import { normalisedSql, sqlHash } from "./sql-text.ts";

describe("the same statement", () => {
  test.each([
    [
      "with another literal",
      "select a from t where dt = '2026-03-01' and n > 10",
      "select a from t where dt = '2026-03-02' and n > 1.5e3",
    ],
    ["with other white space", "select a\n  from t", "select a from t"],
    ["with comments", "select a -- the id\nfrom t", "/* daily */ select a from t"],
    ["in other letters", "SELECT a FROM t", "select A from T"],
    ["with a longer list", "delete from t where id in (1, 2, 3)", "delete from t where id in (4)"],
    ["with more rows", "insert into t values (1, 'a')", "insert into t values (2, 'b'), (3, 'c')"],
    ["with a semicolon at the end", "select 1 from t;", "select 1 from t"],
    ["with a quote in a literal", "select 'it''s' from t", "select 'O\\'Neill' from t"],
  ])("%s", (_, one, other) => {
    expect(sqlHash(one)).toBe(sqlHash(other));
  });
});

describe("another statement", () => {
  test.each([
    ["another table", "select a from t1", "select a from t2"],
    ["another column in quotes", 'select "a" from t', 'select "b" from t'],
    ["quoted names differ by their letters", 'select "A" from t', 'select "a" from t'],
    ["another name in backquotes", "select `a` from t", "select `b` from t"],
    ["a comment sign in a literal hides nothing", "select '--' , a from t", "select '--' , b from t"],
  ])("%s", (_, one, other) => {
    expect(sqlHash(one)).not.toBe(sqlHash(other));
  });
});

test("a statement that breaks off, or is nothing but quotes, is normalised all the same", () => {
  expect(normalisedSql("select 'open")).toBe("select ?");
  expect(normalisedSql("/* open")).toBe("");
  expect(normalisedSql("'".repeat(50_001))).toBe("?");
  expect(normalisedSql('"'.repeat(50_001))).toHaveLength(50_001);
});
