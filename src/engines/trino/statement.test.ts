import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { EngineRefusal, type Params } from "../engine.ts";
import { trinoStatement } from "./statement.ts";

test.each<[string, Params | undefined, string]>([
  ["select 1", undefined, "select 1"],
  ["select 1; -- the end\n;", { unused: 1 }, "select 1 -- the end\n"],
  ["select '$a', \"$a\" -- $a", { a: 1 }, "select '$a', \"$a\" -- $a"],
  ["select $a, 'it''s', $b, $a", { a: "x'y", b: null }, "select  'x''y' , 'it''s',  null ,  'x''y' "],
  ["select $2, $1", [true, "b"], "select  'b' ,  true "],
  ["select $a", { a: 9_007_199_254_740_991 }, "select  bigint '9007199254740991' "],
  ["select $a", { a: 2 ** 31 }, "select  bigint '2147483648' "],
  ["select $a", { a: 0.1 }, "select  double precision '0.1' "],
  ["select $a", { a: 1e300 }, "select  double precision '1e+300' "],
  ["select $a", { a: Number.NaN }, "select  double precision 'NaN' "],
  ["select $a", { a: ["a'", null] }, "select  array['a''', null] "],
  ["select $a", { a: [1, 0.5] }, "select  array[1e+0, 5e-1] "],
  ["select $a", { a: [1, -2] }, "select  array[1, -2] "],
  ["select $a", { a: [] }, "select  array[] "],
  ["select $a", { a: [1, "x"] }, "select  '[1,\"x\"]' "],
  ["select $a", { a: { k: "it's" } }, "select  '{\"k\":\"it''s\"}' "],
  ["select a order by a offset $b LIMIT\n$a", { a: 5, b: 2 }, "select a order by a offset  2  LIMIT\n 5 "],
  ["select a fetch first $a rows only", { a: 5 }, "select a fetch first  5  rows only"],
])("%s with %j", (sql, params, text) => {
  expect(trinoStatement(sql, params).text).toBe(text);
});

describe("a value stays a value", () => {
  test.each<[string, Params, string]>([
    ["and ends neither its literal nor the statement", { a: "'; drop table t; --" }, "'''; drop table t; --'"],
    ["and a backslash in it is no escape", { a: "\\" }, "'\\'"],
    ["and a negative number begins no comment", { a: -12 }, "integer '-12'"],
    ["and a number is not that of a column", { a: 1 }, "integer '1'"],
  ])("%s", (_, params, literal) => {
    expect(trinoStatement("select 5-$a group by $a", params).text).toBe(`select 5- ${literal}  group by  ${literal} `);
  });

  test("and joins no literal beside it", () => {
    expect(trinoStatement("select 'a'$a, $a'b', U&$a, x$a, $1c", { a: "\\0041", 1: 2 }).text).toBe(
      "select 'a' '\\0041' ,  '\\0041' 'b', U& '\\0041' , x$a,  integer '2' c",
    );
  });
});

describe("the rules of Trino's text", () => {
  test.each([
    ["comments do not nest", "select /* /* */ $a", "select /* /* */  'x' "],
    ["a string has no escapes", String.raw`select e'\', $a`, String.raw`select e'\',  'x' `],
    ["a dollar quote has no tag", "select $a$ $b", "select  'x' $  'y' "],
    ["the body of a function is not searched", "select $$ $a $$, $a", "select $$ $a $$,  'x' "],
  ])("%s", (_, sql, text) => {
    expect(trinoStatement(sql, { a: "x", b: "y" }).text).toBe(text);
  });

  test("several statements are found behind a comment in a comment", () => {
    expect(() => trinoStatement("/* /* */ select 1; select 2", undefined)).toThrow("this SQL contains several");
  });
});

test("several statements, and parameters without a value, are refused", () => {
  expect(() => trinoStatement("select 1; select 2", undefined)).toThrow(
    new EngineRefusal("Trino runs one statement at a time, and this SQL contains several. Run them one by one."),
  );
  expect(() => trinoStatement("select $a", { b: 1 })).toThrow(EngineRefusal);
});

test.each([
  ["-- why\n; select 1", true],
  ["(select 1) union (select 2)", true],
  ["WITH a as (select 1) select * from a", true],
  ["insert into t select 1", false],
  ["explain analyze insert into t select 1", false],
  ["call system.runtime.kill_query('x')", false],
])("knows what can be sent again: %s", (sql, isRead) => {
  expect(trinoStatement(sql, undefined).isRead).toBe(isRead);
});

describe("the position of an error", () => {
  /** What Trino says of the statement that it was sent, where `at` is. */
  function told(text: string, at: string): string {
    const lines = text.slice(0, text.lastIndexOf(at)).split("\n");
    return `line ${lines.length}:${Array.from(lines.at(-1) ?? "").length + 1}: Column 'x' cannot be resolved`;
  }

  test.each([
    ["of SQL without parameters is kept", "select 1,\n  X", "2:3"],
    ["behind a value is that behind its name", "select $long, $n, X", "1:19"],
    ["behind a value of several lines", "select $lines,\n $lines, X", "2:10"],
    ["behind characters of two units", "select '😀', $emoji, X", "1:21"],
    ["behind a semicolon that was dropped", "; select X", "1:10"],
    ["in a later line than the value", "select $n\r\n,X", "2:2"],
  ])("%s", (_, sql, place) => {
    const params = { long: "l".repeat(50), n: 12_345, lines: "a\nb\nc", emoji: "😀😀" };
    const statement = trinoStatement(sql, params);
    expect(statement.messageOf(told(statement.text, "X"))).toBe(`line ${place}: Column 'x' cannot be resolved`);
  });

  test("inside of a value is that of its name", () => {
    const { messageOf } = trinoStatement("select date $day", { day: "soon" });
    expect(messageOf("line 1:14: no")).toBe("line 1:13: no");
    expect(messageOf("line 1:17: no")).toBe("line 1:13: no");
  });

  test("of the end, of a view, and behind the name of an exception", () => {
    const { messageOf } = trinoStatement("select $a from;", { a: "aaaaaaaaaa" });
    expect(messageOf("line 1:27: mismatched input '<EOF>'")).toBe("line 1:15: mismatched input '<EOF>'");
    expect(messageOf("line 1:23: Failed analyzing stored view 'v': line 1:8: no")).toBe(
      "line 1:11: Failed analyzing stored view 'v': line 1:8: no",
    );
    expect(messageOf("io.trino.TrinoException: line 1:23: Unknown type")).toBe(
      "io.trino.TrinoException: line 1:11: Unknown type",
    );
    expect(messageOf("line 99:1: beyond the text")).toBe("line 99:1: beyond the text");
  });

  test("is right for any values", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary" }), fc.string({ unit: "binary" }), (a, b) => {
        const sql = "select $a,\n '$a', $b || $a, X";
        const { text, messageOf } = trinoStatement(sql, { a: a.replaceAll("X", ""), b: b.replaceAll("X", "") });
        expect(messageOf(told(text, "X"))).toBe("line 2:18: Column 'x' cannot be resolved");
      }),
    );
  });
});
