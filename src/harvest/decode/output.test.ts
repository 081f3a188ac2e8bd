import { describe, expect, test } from "vitest";
import type { OutputField } from "../definition/policy.ts";
import { parseRecord } from "./json.ts";
import { compileOutput } from "./output.ts";

const row = (type: OutputField["type"], value: unknown, path = "$.v") =>
  compileOutput([{ name: "column", path, type, required: false }])({ v: value });

describe("a column", () => {
  test.each([
    ["string", "a", "a"],
    ["string", 5, "5"],
    ["string", { "@lang": "en", "#text": "t" }, "t"],
    ["integer", 5, 5],
    ["integer", "2509", 2509],
    ["integer", -1.0, -1],
    ["number", "1.5", 1.5],
    ["number", 3, 3],
    ["boolean", true, true],
    ["boolean", "N", false],
    ["boolean", "1", true],
    ["date", "2026-08-20T23:59:59Z", "2026-08-20"],
    ["date", { Year: ["2026"], Month: ["Aug"], Day: ["2"] }, "2026-08-02"],
    ["timestamp", "2026-08-20T03:11:22.180390", new Date("2026-08-20T03:11:22.180Z")],
    ["json", { a: [1] }, '{"a":[1]}'],
    ["json", "x", '"x"'],
  ] as const)("of type %s takes %j", (type, value, expected) => {
    expect(row(type, value)).toEqual({ values: [expected], rejected: [] });
  });

  test.each([
    ["string", ["a"], "a list"],
    ["string", { a: 1 }, "an object"],
    ["integer", 1.5, "a number"],
    ["integer", "9223372036854775808", "a string"],
    ["number", "many", "a string"],
    ["boolean", "maybe", "a string"],
    ["date", "2026-02-30", "a string"],
    ["timestamp", 5, "a number"],
  ] as const)("of type %s is null for %j, with the reason", (type, value, kind) => {
    expect(row(type, value)).toEqual({
      values: [null],
      rejected: [{ name: "column", reason: `${kind} is not a value of type ${type}` }],
    });
  });

  test("is null without a reason if the record has no such value", () => {
    expect(row("integer", null)).toEqual({ values: [null], rejected: [] });
    expect(row("json", undefined)).toEqual({ values: [null], rejected: [] });
  });

  test("of a path with many values has the first, and all of them as JSON", () => {
    expect(row("string", ["a", "b"], "$.v[*]").values).toEqual(["a"]);
    expect(row("json", ["a", "b"], "$.v[*]").values).toEqual(['["a","b"]']);
  });

  test("holds whole numbers beyond 2^53", () => {
    const { v } = parseRecord('{"v": 9007199254740993}') as { v: unknown };
    expect(row("integer", v).values).toEqual([9007199254740993n]);
    expect(row("json", [v]).values).toEqual(["[9007199254740993]"]);
    expect(row("string", v).values).toEqual(["9007199254740993"]);
  });
});
