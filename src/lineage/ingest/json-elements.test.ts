import fc from "fast-check";
import { expect, test } from "vitest";
import { elementsOf } from "./json-elements.ts";

test.each([
  ["[]", []],
  [" [ \n ] ", []],
  ["[1]", ["1"]],
  ['[ {"a" : 1} ,\t[2, 3] ]', ['{"a" : 1}', "[2, 3]"]],
  ['["],[", "\\"", "\\\\", "a\\\\\\",b"]', ['"],["', '"\\""', '"\\\\"', '"a\\\\\\",b"']],
  ['[{"a":"}","a":"{"},null]', ['{"a":"}","a":"{"}', "null"]],
  ["[[[]],{}]", ["[[]]", "{}"]],
])("of %s they are %j", (text, elements) => {
  expect(elementsOf(text)).toEqual(elements);
});

test.each([
  "",
  " ",
  "1",
  '"[]"',
  "{}",
  "[",
  "[1",
  "[1,2}",
  '["a',
  '["a\\"]',
  "[[1]",
  "[1] 2",
  "[]]",
  "\u00a0[]",
  "[]\u00a0",
])("%j does not begin and end as an array", (text) => {
  expect(elementsOf(text)).toBeUndefined();
});

/** JSON text with white space wherever JSON allows it. */
const space = fc.stringMatching(/^[ \t\r\n]{0,3}$/);
const scalar = fc.oneof(
  fc.constantFrom("null", "true", "false", "-0", "1e5", "0.10"),
  fc.string({ unit: "binary" }).map((text) => JSON.stringify(text)),
  fc.stringMatching(/^[[\]{},:"\\]{0,8}$/).map((text) => JSON.stringify(text)),
  fc.constantFrom('"\\u0000"', '"\\/"', '"\\u005b\\u0022"'),
);
const { value } = fc.letrec<{ value: string; list: string; object: string }>((tie) => ({
  value: fc.oneof({ maxDepth: 4 }, scalar, tie("list"), tie("object")),
  list: fc
    .array(fc.tuple(space, tie("value"), space), { maxLength: 4 })
    .map((items) => `[${items.map((item) => item.join("")).join(",")}]`),
  object: fc
    .array(
      fc.tuple(
        space,
        scalar.filter((text) => text.startsWith('"')),
        space,
        tie("value"),
        space,
      ),
      { maxLength: 4 },
    )
    .map((fields) => `{${fields.map(([a, name, b, one, c]) => `${a}${name}${b}:${one}${c}`).join(",")}}`),
}));

test("each is the very text that it was written as, whatever stands around it", () => {
  fc.assert(
    fc.property(fc.array(fc.tuple(space, value, space)), space, space, (items, before, after) => {
      const inside = items.map((item) => item.join("")).join(",");
      const text = `${before}[${inside}]${after}`;
      const elements = elementsOf(text);
      expect(elements).toEqual(items.map(([, element]) => element));
      expect(elements?.map((element) => JSON.parse(element) as unknown)).toEqual(JSON.parse(text));
    }),
    { numRuns: 1_000 },
  );
});

const isJson = (text: string): boolean => {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
};

test("a text is a JSON array exactly if it has elements that are all JSON, however it was spoiled", () => {
  const array = fc.array(value, { maxLength: 4 }).map((items) => `[${items.join()}]`);
  const spoiled = fc
    .tuple(array, fc.nat(), fc.nat(3), fc.constantFrom("", ",", "[", "]", "{", "}", '"', "\\", "1", "\u00a0", " "))
    .map(([text, at, length, piece]) => {
      const from = at % (text.length + 1);
      return text.slice(0, from) + piece + text.slice(from + length);
    });
  fc.assert(
    fc.property(spoiled, (text) => {
      const elements = elementsOf(text);
      const isArray = isJson(text) && Array.isArray(JSON.parse(text));
      expect(elements?.every(isJson) ?? false).toBe(isArray);
    }),
    { numRuns: 5_000 },
  );
});
