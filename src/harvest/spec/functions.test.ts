import { describe, expect, test } from "vitest";
import { compileExpression } from "../../kernel/expressions/cel.ts";
import { KNOWN_FUNCTIONS, REQUEST_FUNCTION_NAMES, REQUEST_FUNCTIONS } from "./functions.ts";

function valueOf(source: string, values: Record<string, unknown> = {}): unknown {
  return compileExpression(source, Object.keys(values), REQUEST_FUNCTIONS).evaluate(values);
}

describe("functions of requests", () => {
  test.each([
    ['formatDateTime("2026-08-20T23:30:00Z", "yyyy-MM-dd")', "2026-08-20"],
    ['formatDateTime("2026-08-20T23:30:00Z", "yyyy/MM/dd HH:mm:ss", "Asia/Kolkata")', "2026/08/21 05:00:00"],
    ['formatDateTime("2026-08-20", "yyyyMMdd\'T\'HHmm")', "20260820T0000"],
    ['formatDateTime(timestamp("2026-08-20T01:02:03.004Z"), "yyyy-MM-dd HH:mm:ss.SSS")', "2026-08-20 01:02:03.004"],
    ['formatDateTime("2026-08-20T01:02:03+02:00", "iso")', "2026-08-19T23:02:03Z"],
    ['formatDateTime("1970-01-01T00:00:01Z", "epochMs")', "1000"],
    ['formatDateTime("1970-01-01T00:00:01Z", "epochSeconds")', "1"],
    ['formatDateTime("0999-01-01", "yyyy")', "0999"],
    ['coalesce(null, "b")', "b"],
    ["coalesce(null, null, 3)", 3],
    ["coalesce(null, null)", null],
    ['concat("a", 1, true)', "a1true"],
    ['["a", "b"].join(",")', "a,b"],
  ])("%s is %s", (source, value) => {
    expect(valueOf(source)).toBe(value);
  });

  test.each([
    ['formatDateTime("yesterday", "yyyy")', "takes a time like"],
    ['formatDateTime("2026-08-20", "YYYY-MM-DD")', "a format or a time zone that does not exist"],
    ['formatDateTime("2026-08-20", "yyyy", "Mars/Base")', "a format or a time zone that does not exist"],
    ["concat([1], 2)", "takes texts, numbers"],
  ])("%s fails", (source, reason) => {
    expect(() => valueOf(source)).toThrow(reason);
  });

  test("that are allowed by default all exist", () => {
    expect(REQUEST_FUNCTION_NAMES.filter((name) => !KNOWN_FUNCTIONS.has(name))).toEqual([]);
  });
});
