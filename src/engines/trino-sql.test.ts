import { expect, test } from "vitest";
import { EngineRefusal, type Params } from "./engine.ts";
import { trinoStatement } from "./trino-sql.ts";

test.each<[string, Params | undefined, string]>([
  ["select 1", undefined, "select 1"],
  ["select 1; -- the end\n;", { unused: 1 }, "select 1 -- the end\n"],
  ["select '$a', \"$a\" -- $a", { a: 1 }, "select '$a', \"$a\" -- $a"],
  [
    "select $a, 'it''s', $b, $a",
    { a: "x'y", b: null },
    "execute immediate 'select ?, ''it''''s'', ?, ?' using 'x''y', null, 'x''y'",
  ],
  ["select $2, $1", [true, "b"], "execute immediate 'select ?, ?' using 'b', true"],
  ["select $a", { a: -12 }, "execute immediate 'select ?' using -12"],
  ["select $a", { a: 9_007_199_254_740_991 }, "execute immediate 'select ?' using 9007199254740991"],
  ["select $a", { a: 0.1 }, "execute immediate 'select ?' using 1e-1"],
  ["select $a", { a: 1e300 }, "execute immediate 'select ?' using 1e+300"],
  ["select $a", { a: ["a'", null] }, "execute immediate 'select ?' using array['a''', null]"],
  ["select $a", { a: [1, 0.5] }, "execute immediate 'select ?' using array[1e+0, 5e-1]"],
  ["select $a", { a: [1, 2] }, "execute immediate 'select ?' using array[1, 2]"],
  ["select $a", { a: [] }, "execute immediate 'select ?' using array[]"],
  ["select $a", { a: [1, "x"] }, "execute immediate 'select ?' using '[1,\"x\"]'"],
  ["select $a", { a: { k: "it's" } }, "execute immediate 'select ?' using '{\"k\":\"it''s\"}'"],
])("%s with %j", (sql, params, statement) => {
  expect(trinoStatement(sql, params)).toBe(statement);
});

test("a value can end neither the literal that it is in nor the statement", () => {
  const evil = "'; drop table t; --";
  const statement = trinoStatement("select $a", { a: evil });
  expect(statement).toBe("execute immediate 'select ?' using '''; drop table t; --'");
});

test("several statements, and parameters without a value, are refused", () => {
  expect(() => trinoStatement("select 1; select 2", undefined)).toThrow(
    new EngineRefusal("Trino runs one statement at a time, and this SQL contains several. Run them one by one."),
  );
  expect(() => trinoStatement("select $a", { b: 1 })).toThrow(EngineRefusal);
});
