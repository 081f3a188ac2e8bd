import { describe, expect, test } from "vitest";
import { EngineRefusal } from "../engine.ts";
import { parsePage, parserOf, type TypeSignature } from "./values.ts";

const type = (rawType: string, ...values: unknown[]): TypeSignature => ({
  rawType,
  arguments: values.map((value) => ({ value })),
});
const field = (typeSignature: TypeSignature, name?: string) => ({
  typeSignature,
  ...(name === undefined ? {} : { fieldName: { name } }),
});

test.each<[TypeSignature, unknown, unknown]>([
  [type("boolean"), true, true],
  [type("integer"), 7, 7],
  [type("bigint"), "9007199254740993", "9007199254740993"],
  [type("bigint"), "1000000000000000", 1_000_000_000_000_000],
  [type("decimal", 10, 2), "1.50", 1.5],
  [type("decimal", 38, 1), "12345678901234567890.5", "12345678901234567890.5"],
  [type("double"), 0.1, 0.1],
  [type("double"), "NaN", "NaN"],
  [type("real"), "-Infinity", "-Infinity"],
  [type("varchar", 10), "12345678901234567", "12345678901234567"],
  [type("varbinary"), "qg==", "qg=="],
  [type("json"), '{"a":[1,null]}', { a: [1, null] }],
  [type("date"), "2026-01-31", "2026-01-31"],
  [type("time", 3), "01:02:03.000", "01:02:03"],
  [type("timestamp", 6), "2026-01-31 01:02:03.000456", "2026-01-31T01:02:03.000456"],
  [type("timestamp", 3), "2026-01-31 01:02:10.000", "2026-01-31T01:02:10"],
  [type("timestamp", 0), "2026-01-31 01:02:10", "2026-01-31T01:02:10"],
  [type("interval day to second"), "2 00:00:00.000", "P2D"],
  [type("array", type("decimal", 4, 1)), ["1.5", null], [1.5, null]],
  [type("map", type("bigint"), type("timestamp", 0)), { 7: "2026-01-31 00:00:00" }, { 7: "2026-01-31T00:00:00" }],
  [
    type("row", field(type("bigint"), "a"), field(type("array", type("date"))), field(type("real"), "a")),
    ["9007199254740993", ["2026-01-31"], 0.5],
    { a: "9007199254740993", field1: ["2026-01-31"], "a:1": 0.5 },
  ],
  [type("array", type("row", field(type("json"), "doc"))), [["[1]"], null], [{ doc: [1] }, null]],
  [type("a type of tomorrow"), "as it comes", "as it comes"],
])("a value of type %j", (signature, value, json) => {
  expect(parserOf(signature)(value)).toEqual(json);
  expect(parserOf(signature)(null)).toBeNull();
});

describe("an instant is converted to UTC", () => {
  const moment = parserOf(type("timestamp with time zone", 3));
  test.each([
    ["2026-01-31 01:02:03.000 UTC", "2026-01-31T01:02:03Z"],
    ["2026-01-31 01:02:03.500 +02:00", "2026-01-30T23:02:03.5Z"],
    ["2026-01-31 01:02:03.000000000123 -03:30", "2026-01-31T04:32:03.000000000123Z"],
    ["2026-07-01 12:00:00 Europe/Berlin", "2026-07-01T10:00:00Z"],
    ["2026-01-01 12:00:00 America/New_York", "2026-01-01T17:00:00Z"],
    ["2026-03-29 01:59:59 Europe/Berlin", "2026-03-29T00:59:59Z"],
    ["2026-03-29 03:00:00 Europe/Berlin", "2026-03-29T01:00:00Z"],
    ["2026-10-25 01:59:59 Europe/Berlin", "2026-10-24T23:59:59Z"],
    ["2026-10-25 03:00:00 Europe/Berlin", "2026-10-25T02:00:00Z"],
    ["1890-01-01 00:00:00 Europe/Berlin", "1889-12-31T23:06:32Z"],
    ["1880-01-01 00:00:00 America/New_York", "1880-01-01T04:56:02Z"],
    ["1971-01-01 00:00:00 Africa/Monrovia", "1971-01-01T00:44:30Z"],
    ["2026-01-01 00:00:00 Asia/Kathmandu", "2025-12-31T18:15:00Z"],
    ["2026-01-01 00:00:00 Mars/Olympus", "2026-01-01 00:00:00 Mars/Olympus"],
    ["+12026-01-01 00:00:00 UTC", "+12026-01-01 00:00:00 UTC"],
  ])("%s", (text, utc) => {
    expect(moment(text)).toBe(utc);
  });
});

test.each([
  "2026-10-25 02:00:00 Europe/Berlin",
  "2026-10-25 02:30:00.123 Europe/Berlin",
  "2026-11-01 01:59:59 America/New_York",
  "2026-04-05 01:45:00 Australia/Lord_Howe",
])("a wall time that names two moments is refused, and not taken for one of them: %s", (text) => {
  const parse = parserOf(type("timestamp with time zone", 3));
  expect(() => parse(text)).toThrow(EngineRefusal);
  expect(() => parse(text)).toThrow(`The result has the time ${text}, which occurs twice`);
});

describe("a page", () => {
  test("keeps every digit of a whole number, and changes nothing else", () => {
    const text = String.raw`{"a":[9007199254740993,-9223372036854775808,123],"b":"at 12345678901234567, \"99999999999999999\"",
      "c":0.12345678901234568,"d":1.2345678901234567E-18,"e":-1.0E-20,"f":"","12345678901234567":1}`;
    expect(parsePage(text)).toEqual({
      a: ["9007199254740993", "-9223372036854775808", 123],
      b: 'at 12345678901234567, "99999999999999999"',
      c: 0.12345678901234568,
      d: Number("1.2345678901234567E-18"),
      e: -1e-20,
      f: "",
      "12345678901234567": 1,
    });
  });

  test("may hold long texts", () => {
    const long = '\\"x'.repeat(3_000_000);
    expect(parsePage(`["${long}",1234567890123456789]`)).toEqual(['"x'.repeat(3_000_000), "1234567890123456789"]);
  });
});
