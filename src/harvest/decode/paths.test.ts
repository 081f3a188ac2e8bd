import fc from "fast-check";
import { jsonpath } from "json-p3";
import { describe, expect, test } from "vitest";
import { compilePath, PathError } from "./paths.ts";

const document = {
  a: { b: [{ "c-d": 1 }, { "c-d": 2 }], list: [10, 20, 30] },
  empty: null,
  nested: [[1, 2], [3]],
};

describe("a path", () => {
  test.each([
    ["$", [document]],
    ["$.a.b[0]['c-d']", [1]],
    ['$.a.b[1]["c-d"]', [2]],
    ["$.a.b[*]['c-d']", [1, 2]],
    ["$.a.list[-1]", [30]],
    ["$.a.list[-9]", []],
    ["$.nested[*][0]", [1, 3]],
    ["$.empty", [null]],
    ["$.missing.deeper", []],
    ["$.a.list.length", []],
    ["$.a[0]", []],
    ["$.a.b[?@['c-d'] > 1]['c-d']", [2]],
    ["$..['c-d']", [1, 2]],
    ["$.a.list[0:2]", [10, 20]],
  ])("%s selects %j", (text, values) => {
    const path = compilePath(text);
    expect(path.all(document)).toEqual(values);
    expect(path.first(document)).toEqual(values[0]);
  });

  test.each(["$.constructor", "$.__proto__", "$['__proto__'].polluted", "$.a.toString", "$..constructor"])(
    "%s selects nothing that is inherited",
    (text) => {
      expect(compilePath(text).all({ a: {} })).toEqual([]);
      expect(compilePath(text).first({ a: {} })).toBeUndefined();
    },
  );

  test("selects a member that is called __proto__, if the document has one", () => {
    expect(compilePath("$.__proto__.x").first(JSON.parse('{"__proto__": {"x": 1}}'))).toBe(1);
  });

  test("has the same values whether it is walked or evaluated by the library", () => {
    const step = fc.constantFrom(".a", ".b", "['c-d']", "[0]", "[1]", "[-1]", "[*]", ".*", ".list", ".nested");
    fc.assert(
      fc.property(
        fc.array(step, { maxLength: 5 }),
        fc.constantFrom(document, document.a, document.nested),
        (steps, root) => {
          const text = `$${steps.join("")}`;
          expect(compilePath(text).all(root)).toEqual(jsonpath.query(text, root as never).values());
        },
      ),
    );
  });

  test.each(["$.a.b[*]['c-d']", "$.a.list[-1]", "$..['c-d']", "$.nested[*][0]", "$.a.list[?@ > 10]"])(
    "%s has a place for each of its values",
    (text) => {
      const path = compilePath(text);
      const found = path.places(document).map(({ parent, key }) => (parent as Record<string | number, unknown>)[key]);
      expect(found).toEqual(path.all(document));
    },
  );

  test.each(["a.b", "$.", "$[", "$.a[?", "$[?match(@.a, '(a+)+b')]", "$..a..b", `$${".a".repeat(600)}`])(
    "%s is refused",
    (text) => {
      expect(() => compilePath(text)).toThrow(PathError);
    },
  );
});
