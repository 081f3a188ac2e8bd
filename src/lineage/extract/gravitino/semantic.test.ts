import { describe, expect, test } from "vitest";
import { attributesFacet, gravitinoEvent } from "../../events.fixture.ts";
import { extractedFromGravitino } from "../extracted.fixture.ts";

const METRIC = "METRIC gravitino|hive|dw|amount";
const metric = (attributes: Record<string, string>, operation = "register_metric") =>
  extractedFromGravitino(gravitinoEvent(operation, { name: "dw.amount", facets: attributesFacet(attributes) }));

describe("a metric", () => {
  const atomic = {
    code: "amount",
    name: "Order amount",
    metricType: "ATOMIC",
    comment: "sum of orders",
    unit: "CNY",
    calculationFormula: "SUM(amount)",
    refCatalogName: "hive",
    refSchemaName: "dw",
    refTableName: "orders",
    measureColumns: '[{"name":"amount"}]',
    filterColumns: '[{"name":"status"},"dt"]',
  };

  test.each(["register_metric", "alter_metric"])("that is atomic measures and filters by columns (%s)", (operation) => {
    const facts = metric(atomic, operation);
    expect(facts.nodes[METRIC]).toEqual({
      code: "amount",
      name: "Order amount",
      metricType: "ATOMIC",
      description: "sum of orders",
      unit: "CNY",
      calculationFormula: "SUM(amount)",
    });
    expect(facts.owned).toEqual({
      [`${METRIC} MEASURES`]: ["COLUMN gravitino|hive|dw|orders|amount"],
      [`${METRIC} FILTERS_BY`]: ["COLUMN gravitino|hive|dw|orders|status", "COLUMN gravitino|hive|dw|orders|dt"],
      [`${METRIC} DERIVED_FROM`]: [],
      [`${METRIC} COMPUTED_FROM`]: [],
    });
    expect(facts.mentions).toEqual([METRIC, "TABLE gravitino|hive|dw|orders"]);
    expect(facts.warnings).toEqual([]);
  });

  test("finds its table in its own catalog and schema unless it names others", () => {
    const { refCatalogName: _c, refSchemaName: _s, ...near } = atomic;
    expect(metric(near).owned[`${METRIC} MEASURES`]).toEqual(["COLUMN gravitino|hive|dw|orders|amount"]);
    const far = { ...atomic, refCatalogName: "lake", refSchemaName: "ods" };
    expect(metric(far).owned[`${METRIC} MEASURES`]).toEqual(["COLUMN gravitino|lake|ods|orders|amount"]);
  });

  test.each([
    ["DERIVED", "DERIVED_FROM"],
    ["composite", "COMPUTED_FROM"],
  ])("that is %s comes from metrics of the same schema (%s), and measures nothing", (metricType, kind) => {
    const facts = metric({ ...atomic, metricType, parentMetricCodes: "a, b" });
    expect(facts.nodes[METRIC]).toMatchObject({ metricType: metricType.toUpperCase(), parentMetricCodes: ["a", "b"] });
    const parents = ["METRIC gravitino|hive|dw|a", "METRIC gravitino|hive|dw|b"];
    expect(facts.owned).toEqual({
      [`${METRIC} MEASURES`]: [],
      [`${METRIC} FILTERS_BY`]: [],
      [`${METRIC} DERIVED_FROM`]: [],
      [`${METRIC} COMPUTED_FROM`]: [],
      [`${METRIC} ${kind}`]: parents,
    });
    expect(facts.mentions).toEqual([METRIC, ...parents]);
  });

  test("that tells its columns in a broken way keeps its attributes", () => {
    const facts = metric({ ...atomic, measureColumns: "amount", filterColumns: "{}" });
    expect(facts.nodes).toHaveProperty([METRIC]);
    expect(facts.warnings).toEqual([
      "/outputs/0/facets/schema has measureColumns that are no JSON list.",
      "/outputs/0/facets/schema has filterColumns that are no JSON list.",
    ]);
    const { refTableName: _, ...nowhere } = atomic;
    expect(metric(nowhere).warnings).toContain("/outputs/0/facets/schema names measureColumns of no table.");
  });

  test("of no type says nothing of its edges", () => {
    const facts = metric({ code: "amount" });
    expect(facts.owned).toEqual({});
    expect(facts.warnings).toEqual(["/outputs/0/facets/schema has no metricType."]);
  });
});

test.each([
  ["wordroot", "WORDROOT", { code: "amt", name: "amount", dataType: "decimal" }],
  ["modifier", "MODIFIER", { code: "7d", name: "last 7 days", modifierType: "PREFIX" }],
  ["unit", "UNIT", { code: "CNY", name: "Yuan", symbol: "¥" }],
  [
    "valuedomain",
    "VALUEDOMAIN",
    { code: "st", name: "Status", domainType: "ENUM", domainLevel: "BUSINESS", items: "1:new,2:paid", dataType: "int" },
  ],
])("a %s has a code of its own, in whatever schema it was made", (word, kind, attributes) => {
  for (const operation of [`create_${word}`, `alter_${word}`]) {
    const facets = attributesFacet({ ...attributes, comment: "说明" });
    const facts = extractedFromGravitino(gravitinoEvent(operation, { name: `dw.${attributes.code}`, facets }));
    expect(facts.nodes).toEqual({ [`${kind} ${attributes.code}`]: { ...attributes, description: "说明" } });
    expect(facts.mentions).toEqual([`${kind} ${attributes.code}`]);
  }
});

test("a term that does not tell its code has it from the name", () => {
  expect(Object.keys(extractedFromGravitino(gravitinoEvent("create_unit", { name: "dw.kg" })).nodes)).toEqual([
    "UNIT kg",
  ]);
});

test.each(["create_tag", "alter_tag"])("a tag has properties (%s)", (operation) => {
  const facets = attributesFacet({ name: "pii", comment: "personal data", properties: "level=high,owner=a,b,url=x=y" });
  const facts = extractedFromGravitino(
    gravitinoEvent(operation, { namespace: "gravitino://lake", name: "pii", facets }),
  );
  expect(facts.nodes).toEqual({
    "TAG pii": { name: "pii", description: "personal data", properties: { level: "high", owner: "a,b", url: "x=y" } },
  });
});
