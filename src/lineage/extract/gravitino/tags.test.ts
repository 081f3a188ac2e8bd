import { describe, expect, test } from "vitest";
import { gravitinoEvent, type Json } from "../../events.fixture.ts";
import { extractedFromGravitino } from "../extracted.fixture.ts";

const associated = (gravitinoTag: Json, name: string, namespace = "gravitino://lake/hive") =>
  extractedFromGravitino(gravitinoEvent("associate_tags", { namespace, name, facets: { gravitinoTag } }));

describe("tags are put onto", () => {
  test.each([
    ["CATALOG", "gravitino://lake", "hive", "CATALOG gravitino|hive"],
    ["SCHEMA", "gravitino://lake/hive", "dw", "SCHEMA gravitino|hive|dw"],
    ["TABLE", "gravitino://lake/hive", "dw.orders", "TABLE gravitino|hive|dw|orders"],
    ["COLUMN", "gravitino://tenant/7/lake/hive", "dw.orders.id", "COLUMN gravitino|hive|dw|orders|id"],
    ["COLUMN", "gravitino://lake/hive", "dw.orders.address.city", "COLUMN gravitino|hive|dw|orders|address.city"],
  ])("a %s", (objectType, namespace, name, asset) => {
    const facts = associated(
      { objectType, tagsToAdd: ["pii"], tagsToRemove: [], associatedTags: ["pii"] },
      name,
      namespace,
    );
    expect(facts.tags).toEqual([`${asset} HAS_TAG TAG pii`]);
    expect(facts).toMatchObject({ nodes: {}, endings: [], warnings: [] });
    const table = asset.startsWith("COLUMN") ? "TABLE gravitino|hive|dw|orders" : asset;
    expect(facts.mentions).toEqual([table, "TAG pii"]);
  });

  test("a column as its value domain, when they begin with vd:", () => {
    const facts = associated({ objectType: "COLUMN", tagsToAdd: ["vd:status", "vd:", "pii"] }, "dw.orders.status");
    expect(facts.tags).toEqual([
      "COLUMN gravitino|hive|dw|orders|status HAS_VALUE_DOMAIN VALUEDOMAIN status",
      "COLUMN gravitino|hive|dw|orders|status HAS_TAG TAG vd:",
      "COLUMN gravitino|hive|dw|orders|status HAS_TAG TAG pii",
    ]);
    expect(facts.mentions).toContain("VALUEDOMAIN status");
    expect(associated({ objectType: "TABLE", tagsToAdd: ["vd:status"] }, "dw.orders").tags).toEqual([
      "TABLE gravitino|hive|dw|orders HAS_TAG TAG vd:status",
    ]);
  });
});

test("tags are taken off by an ending of what tied them", () => {
  const facts = associated(
    { objectType: "COLUMN", tagsToAdd: [], tagsToRemove: ["vd:status", "pii"], associatedTags: [] },
    "dw.orders.status",
  );
  expect(facts.tags).toEqual([]);
  expect(facts.endings).toEqual([
    "LINK COLUMN|gravitino|hive|dw|orders|status|HAS_VALUE_DOMAIN|status",
    "LINK COLUMN|gravitino|hive|dw|orders|status|HAS_TAG|pii",
  ]);
  expect(facts.mentions).toEqual(["TABLE gravitino|hive|dw|orders", "VALUEDOMAIN status", "TAG pii"]);
});

test("what is associated afterwards is there, also when it was there before, or was said to be removed", () => {
  const facts = associated(
    {
      objectType: "TABLE",
      tagsToAdd: ["new", "both"],
      tagsToRemove: ["both", "kept"],
      associatedTags: ["old", "new", "kept"],
    },
    "dw.orders",
  );
  expect(facts.tags.map((tag) => tag.split(" ").at(-1))).toEqual(["new", "old", "kept"]);
  expect(facts.endings).toEqual(["LINK TABLE|gravitino|hive|dw|orders|HAS_TAG|both"]);
});

test("more tags than any asset has are left out, with a warning for each list", () => {
  const tags = (prefix: string) => Array.from({ length: 1_001 }, (_, index) => `${prefix}${index}`);
  const facts = associated({ objectType: "TABLE", tagsToAdd: tags("a"), tagsToRemove: tags("r") }, "dw.orders");
  expect(facts.tags).toHaveLength(1_000);
  expect(facts.endings).toHaveLength(1_000);
  expect(facts.warnings).toEqual([
    "/outputs/0/facets/gravitinoTag/tagsToAdd has more than 1000 tags; the rest was left out.",
    "/outputs/0/facets/gravitinoTag/tagsToRemove has more than 1000 tags; the rest was left out.",
  ]);
});

test.each([
  ["no facet", {}, "gravitino://lake/hive", "dw.orders"],
  ["an object of another kind", { gravitinoTag: { objectType: "TOPIC" } }, "gravitino://lake/hive", "dw.orders"],
  ["no catalog", { gravitinoTag: { objectType: "TABLE" } }, "gravitino://lake", "dw.orders"],
  ["no column", { gravitinoTag: { objectType: "COLUMN" } }, "gravitino://lake/hive", "dw.orders"],
])("with %s there is nothing to put tags onto", (_, facets, namespace, name) => {
  const facts = extractedFromGravitino(gravitinoEvent("associate_tags", { namespace, name, facets }));
  expect(facts).toMatchObject({ tags: [], mentions: [] });
  expect(facts.warnings).toEqual(["/outputs/0/facets/gravitinoTag names no catalog, schema, table or column."]);
});
