import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { maskOf, NO_MASK } from "./mask.ts";

describe("a secret is cut out", () => {
  const { text } = maskOf(['p"w/d 1']);

  test.each([
    ["as it is", 'curl -u etl:p"w/d 1 https://x.org', "curl -u etl:*** https://x.org"],
    ["as it stands in a URL", "GET /?token=p%22w%2Fd%201", "GET /?token=***"],
    ["as it stands in JSON", '{"token":"p\\"w/d 1"}', '{"token":"***"}'],
    ["wherever it stands", 'p"w/d 1p"w/d 1', "******"],
  ])("%s", (_, said, told) => {
    expect(text(said)).toBe(told);
  });

  test("from every text of a JSON value, and from its keys", () => {
    const value = { 'p"w/d 1': ['p"w/d 1', { n: 1, none: null, yes: true }] };
    expect(maskOf(['p"w/d 1']).json(value)).toEqual({ "***": ["***", { n: 1, none: null, yes: true }] });
  });

  test("line by line, where lines tell something", () => {
    const mask = maskOf(["-----\nMIIEvQIBADANBg\nkqhkiG9w0BAQEF\n-----"]);
    expect(mask.text("read MIIEvQIBADANBg and -----")).toBe("read *** and -----");
  });

  test("the longer one first, when one begins like another", () => {
    expect(maskOf(["abcd", "abcdefgh"]).text("abcdefgh abcd")).toBe("*** ***");
  });
});

test("whatever the secret and whatever is said around it, it is not in what is told", () => {
  const secret = fc.string({ minLength: 4, maxLength: 40 }).filter((text) => !text.includes("*"));
  fc.assert(
    fc.property(secret, fc.string(), fc.string(), (value, before, after) => {
      const { text } = maskOf([value]);
      for (const form of [value, encodeURIComponent(value), JSON.stringify(value)]) {
        expect(text(before + form + after)).not.toContain(value);
      }
    }),
  );
});

test("without a secret everything is told as it is", () => {
  expect(maskOf([])).toBe(NO_MASK);
  const value = { a: ["x"] };
  expect(NO_MASK.json(value)).toBe(value);
  expect(NO_MASK.text("x")).toBe("x");
});
