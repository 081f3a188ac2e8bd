import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { canonicalJson, fingerprint } from "./canonical.ts";

describe("canonicalJson agrees with RFC 8785", () => {
  test("on the example of section 3.2.2, byte for byte as section 3.2.4 prints it", () => {
    const value: unknown = JSON.parse(String.raw`{
      "numbers": [333333333.33333329, 1E30, 4.50, 2e-3, 0.000000000000000000000000001],
      "string": "\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/",
      "literals": [null, true, false]
    }`);
    const bytes =
      "7b226c69746572616c73223a5b6e756c6c2c747275652c66616c73655d2c226e" +
      "756d62657273223a5b3333333333333333332e333333333333332c31652b3330" +
      "2c342e352c302e3030322c31652d32375d2c22737472696e67223a22e282ac24" +
      "5c75303030665c6e4127425c225c5c5c5c5c222f227d";
    expect(Buffer.from(canonicalJson(value)).toString("hex")).toBe(bytes);
  });

  test("on the order of keys, by UTF-16 code units, of section 3.2.3", () => {
    const value = {
      "\u20ac": "Euro Sign",
      "\r": "Carriage Return",
      "\ufb33": "Hebrew Letter Dalet With Dagesh",
      "1": "One",
      "\ud83d\ude00": "Emoji: Grinning Face",
      "\u0080": "Control",
      "\u00f6": "Latin Small Letter O With Diaeresis",
    };
    expect([...canonicalJson(value).matchAll(/:"([^"]+)"/g)].map(([, name]) => name)).toEqual([
      "Carriage Return",
      "One",
      "Control",
      "Latin Small Letter O With Diaeresis",
      "Euro Sign",
      "Emoji: Grinning Face",
      "Hebrew Letter Dalet With Dagesh",
    ]);
  });

  test.each([
    ["0000000000000000", "0"],
    ["8000000000000000", "0"],
    ["0000000000000001", "5e-324"],
    ["8000000000000001", "-5e-324"],
    ["7fefffffffffffff", "1.7976931348623157e+308"],
    ["4340000000000000", "9007199254740992"],
    ["4430000000000000", "295147905179352830000"],
    ["44b52d02c7e14af5", "9.999999999999997e+22"],
    ["44b52d02c7e14af6", "1e+23"],
    ["44b52d02c7e14af7", "1.0000000000000001e+23"],
    ["444b1ae4d6e2ef4e", "999999999999999700000"],
    ["444b1ae4d6e2ef50", "1e+21"],
    ["3eb0c6f7a0b5ed8c", "9.999999999999997e-7"],
    ["3eb0c6f7a0b5ed8d", "0.000001"],
    ["41b3de4355555555", "333333333.3333333"],
    ["becbf647612f3696", "-0.0000033333333333333333"],
    ["43143ff3c1cb0959", "1424953923781206.2"],
  ])("on the double %s of appendix B", (bits, text) => {
    expect(canonicalJson(Buffer.from(bits, "hex").readDoubleBE())).toBe(text);
  });
});

describe("canonicalJson refuses what JSON would lose", () => {
  const circular: Record<string, unknown> = {};
  circular["self"] = circular;

  test.each([
    ["NaN", [Number.NaN], "Cannot write $[0] as canonical JSON: NaN is not a JSON number."],
    ["Infinity", { a: { b: -Infinity } }, "Cannot write $.a.b as canonical JSON: -Infinity is not a JSON number."],
    ["undefined", undefined, "Cannot write $ as canonical JSON: undefined is not a JSON value."],
    ["an undefined member", { a: undefined }, "Cannot write $.a as canonical JSON: undefined is not a JSON value."],
    // oxlint-disable-next-line no-sparse-arrays
    ["a hole in a list", [1, , 2], "Cannot write $[1] as canonical JSON: undefined is not a JSON value."],
    ["a bigint", [1n], "Cannot write $[0] as canonical JSON: bigint is not a JSON value."],
    ["a symbol", { a: Symbol("s") }, "Cannot write $.a as canonical JSON: symbol is not a JSON value."],
    ["a function", { toJSON: () => 1 }, "Cannot write $.toJSON as canonical JSON: function is not a JSON value."],
    ["a Date", { at: new Date(0) }, "Cannot write $.at as canonical JSON: Date is not a JSON value."],
    ["a Map", new Map(), "Cannot write $ as canonical JSON: Map is not a JSON value."],
    ["half a pair", ["\ud83d"], "Cannot write $[0] as canonical JSON: its text contains half of a surrogate pair."],
    [
      "half a pair in a key",
      { "\ude00": 1 },
      "Cannot write $ as canonical JSON: its text contains half of a surrogate pair.",
    ],
  ])("%s", (_, value, sentence) => {
    expect(() => canonicalJson(value)).toThrow(new TypeError(sentence));
  });

  test("a value that contains itself, or is nested too deeply", () => {
    expect(() => canonicalJson(circular)).toThrow(/nested deeper than 256 levels, or contains itself/);
    const deep: unknown = JSON.parse("[".repeat(5_000) + "]".repeat(5_000));
    expect(() => canonicalJson(deep)).toThrow(TypeError);
  });
});

describe("for every JSON value", () => {
  // Through JSON once, because the generator also produces -0, which RFC 8785 writes as 0.
  const json = fc.jsonValue({ stringUnit: "binary" }).map((value): unknown => JSON.parse(JSON.stringify(value)));

  test("parsing the canonical text gives the value back", () => {
    fc.assert(
      fc.property(json, (value) => {
        expect(JSON.parse(canonicalJson(value))).toEqual(value);
      }),
    );
  });

  test("the order of keys does not matter, at any depth", () => {
    fc.assert(
      fc.property(json, (value) => {
        const reversed = withKeysReversed(value);
        expect(canonicalJson(reversed)).toBe(canonicalJson(value));
        expect(fingerprint(reversed)).toBe(fingerprint(value));
      }),
    );
  });
});

test("fingerprint is the sha256 of the canonical text, in hex", () => {
  // printf '{"a":1,"b":2}' | sha256sum
  expect(fingerprint({ b: 2, a: 1 })).toBe("43258cff783fe7036d8a43033f830adfc60ec037382473548ac742b888292777");
});

function withKeysReversed(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withKeysReversed);
  if (typeof value !== "object" || value === null) return value;
  const entries = Object.entries(value).map(([key, item]) => [key, withKeysReversed(item)]);
  return Object.fromEntries(entries.toReversed());
}
