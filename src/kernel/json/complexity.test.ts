/** Text that is measured before it is parsed. */
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { cpuMs } from "../../../test/cpu-time.ts";
import { parseWithin, whyTooComplex } from "./complexity.ts";
import { isDeeper } from "./depth.ts";

const limits = { depthMax: 3, elementsMax: 5 };

test.each<[string, string, string | undefined]>([
  ["as deep as allowed", "[[{}]]", undefined],
  ["deeper", '[[{"a":[]}]]', "is nested more than 3 levels deep"],
  ["deeper, and never closed", "[[[[", "is nested more than 3 levels deep"],
  ["brackets in a string", '["[[[[[[", "{{{{,,,,,,"]', undefined],
  ["a quote in a string", '["\\"[[[[", "\\\\", [["]"]]]', undefined],
  ["a string that does not end", '["[[[[[', undefined],
  ["one after another", "[[],[],[]]", "has more than 5 values"],
  ["as many as allowed", "[1,2,3,4,5]", undefined],
  ["one more", "[1,2,3,4,5,6]", "has more than 5 values"],
  ["fields", '{"a":1,"b":2,"c":3,"d":4,"e":5,"f":6}', "has more than 5 values"],
  ["no JSON", ",,,,,,,", "has more than 5 values"],
  ["nothing", "", undefined],
])("%s", (_, text, expected) => {
  expect(whyTooComplex(text, limits)).toBe(expected);
});

describe("of any JSON", () => {
  test("the depth is what the parsed value has", () => {
    fc.assert(
      fc.property(fc.json({ maxDepth: 6 }), fc.integer({ min: 0, max: 6 }), (text, depthMax) => {
        const reason = whyTooComplex(text, { depthMax, elementsMax: 1_000_000 });
        expect(reason !== undefined).toBe(isDeeper(JSON.parse(text), depthMax));
      }),
      { numRuns: 1_000 },
    );
  });

  test("the parsed value is that of JSON.parse", () => {
    fc.assert(
      fc.property(fc.json(), (text) => {
        expect(parseWithin(text)).toEqual(JSON.parse(text));
      }),
    );
  });
});

test("a scan of a long text ends at once where it is too deep", () => {
  const text = "[".repeat(50_000_000);
  const tookMs = cpuMs(() => expect(whyTooComplex(text, limits)).toBeDefined());
  expect(tookMs).toBeLessThan(100);
});
