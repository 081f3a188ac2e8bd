/** How the changes of a definition are printed. */
import { describe, expect, test } from "vitest";
import { fieldLines } from "./field-changes.ts";

describe("a changed list", () => {
  const file = [
    { name: "state", pattern: "[a-z]+" },
    { name: "mailto", selects: false, tags: [{ a: 1, b: 2 }] },
  ];
  /** As the database answers it: shorter keys first. */
  const stored = [
    { pattern: "[a-z]+", name: "state" },
    { tags: [{ b: 2, a: 1 }], name: "mailto", selects: false },
  ];

  test("has no lines for items whose keys only have another order", () => {
    const to = [...file, { name: "sort" }];
    expect(fieldLines({ field: "params", from: stored, to })).toEqual(["params:", "  + name: sort"]);
  });

  test("shows the keys of both versions of an item in the order of the new one", () => {
    const to = [file[0], { name: "mailto", selects: false, tags: [{ a: 1, b: 3 }] }];
    expect(fieldLines({ field: "params", from: stored, to })).toEqual([
      "params:",
      '  - name: mailto, tags: [{"a":1,"b":2}]',
      '  + name: mailto, tags: [{"a":1,"b":3}]',
    ]);
  });

  test("says so if only its order differs", () => {
    expect(fieldLines({ field: "keys", from: ["a", "b"], to: ["b", "a"] })).toEqual([
      "keys:",
      "  the same items, in another order or number",
    ]);
  });
});
