import { describe, expect, test } from "vitest";
import {
  attributesFacet,
  dataset,
  gravitinoEvent,
  gravitinoFacet,
  lifecycleFacet,
  schemaFacet,
} from "../../events.fixture.ts";
import { extractedFrom, extractedFromGravitino } from "../extracted.fixture.ts";

const TABLE = "TABLE gravitino|hive|dw|orders";
const FACETS = {
  ...schemaFacet([{ name: "id", type: "long", description: "key" }, "status"]),
  ...gravitinoFacet({
    description: "orders fact",
    properties: { format: "parquet" },
    partitions: "identity(dt)",
    distribution: "Distribution{strategy=NONE}",
    sortOrders: "id asc",
    indexes: "PRIMARY_KEY pk(id)",
    creator: "alice",
    createTime: "2026-03-10T08:00:00Z",
    lastModifier: "bob",
    lastModifiedTime: "2026-03-11T08:00:00Z",
    columns: [
      { name: "id", nullable: false, autoIncrement: true },
      { name: "status", nullable: true, autoIncrement: false, defaultValue: "new" },
    ],
  }),
};

describe("a table", () => {
  test.each(["create_table", "load_table", "alter_table"])("of %s has all that its facets tell", (operation) => {
    const facts = extractedFromGravitino(gravitinoEvent(operation, { facets: FACETS }));
    expect(facts.nodes).toEqual({
      [TABLE]: {
        producer: "https://github.com/apache/gravitino/openlineage-listener",
        description: "orders fact",
        properties: { format: "parquet" },
        partitions: "identity(dt)",
        distribution: "Distribution{strategy=NONE}",
        sortOrders: "id asc",
        indexes: "PRIMARY_KEY pk(id)",
        creator: "alice",
        createTime: "2026-03-10T08:00:00Z",
        lastModifier: "bob",
        lastModifiedTime: "2026-03-11T08:00:00Z",
      },
      "CATALOG gravitino|hive": { metalake: "lake" },
      [`COLUMN ${TABLE.slice(6)}|id`]: {
        dataType: "long",
        description: "key",
        position: 1,
        nullable: false,
        autoIncrement: true,
      },
      [`COLUMN ${TABLE.slice(6)}|status`]: {
        dataType: "string",
        position: 2,
        nullable: true,
        autoIncrement: false,
        defaultValue: "new",
      },
    });
    expect(facts).toMatchObject({ edges: [], endings: [], mentions: [TABLE], execution: undefined, warnings: [] });
  });

  test("that was dropped ends, and nothing is claimed of it", () => {
    const facts = extractedFromGravitino(gravitinoEvent("drop_table", { facets: lifecycleFacet("DROP") }));
    expect(facts).toMatchObject({ nodes: {}, endings: [TABLE], mentions: [TABLE] });
  });

  test("that a statement made has it as its origin", () => {
    const facts = extractedFromGravitino(
      gravitinoEvent("create_table", {
        facets: FACETS,
        jobFacets: { sql: { query: "create table orders as select * from raw" } },
        inputs: [dataset("gravitino://tenant/7/lake/hive", "dw.raw")],
      }),
    );
    const [sql] = Object.keys(facts.nodes).filter((name) => name.startsWith("SQL"));
    expect(facts.edges).toEqual([`TABLE gravitino|hive|dw|raw INPUT_OF ${sql}`, `${sql} OUTPUT_TO ${TABLE}`]);
    expect(facts.mentions).toContain("TABLE gravitino|hive|dw|raw");
    expect(facts.execution).toMatch(/^SQL /);
  });
});

test.each(["create_schema", "alter_schema", "load_schema"])("a schema of %s", (operation) => {
  const facets = { documentation: { description: "dw layer" }, ...gravitinoFacet({ properties: { owner: "bi" } }) };
  const facts = extractedFromGravitino(gravitinoEvent(operation, { name: "dw", facets }));
  expect(facts.nodes).toEqual({
    "SCHEMA gravitino|hive|dw": { description: "dw layer", properties: { owner: "bi" } },
    "CATALOG gravitino|hive": { metalake: "lake" },
  });
  expect(facts.mentions).toEqual(["SCHEMA gravitino|hive|dw"]);
});

test.each(["create_catalog", "alter_catalog"])("a catalog of %s, whose namespace is bare", (operation) => {
  const facets = gravitinoFacet({ description: "prod hive", properties: { uri: "thrift://m" }, provider: "hive" });
  const facts = extractedFromGravitino(gravitinoEvent(operation, { namespace: "gravitino", name: "hive", facets }));
  expect(facts.nodes).toEqual({
    "CATALOG gravitino|hive": { description: "prod hive", properties: { uri: "thrift://m" }, provider: "hive" },
  });
  expect(facts.mentions).toEqual(["CATALOG gravitino|hive"]);
});

test("every drop is an ending, and no more", () => {
  const code = attributesFacet({ code: "amt", name: "amt" });
  const endingsOf = (operation: string, options: object) => {
    const facts = extractedFromGravitino(
      gravitinoEvent(operation, { facets: { ...code, ...lifecycleFacet("DROP") }, ...options }),
    );
    expect(facts.nodes).toEqual({});
    expect(facts.mentions).toEqual(facts.endings);
    return facts.endings;
  };
  expect(endingsOf("drop_catalog", { namespace: "gravitino", name: "hive" })).toEqual(["CATALOG gravitino|hive"]);
  expect(endingsOf("drop_schema", { name: "dw" })).toEqual(["SCHEMA gravitino|hive|dw"]);
  expect(endingsOf("drop_metric", { name: "dw.amt" })).toEqual(["METRIC gravitino|hive|dw|amt"]);
  for (const kind of ["wordroot", "modifier", "unit", "valuedomain"]) {
    expect(endingsOf(`drop_${kind}`, { name: "dw.amt" })).toEqual([`${kind.toUpperCase()} amt`]);
  }
  expect(endingsOf("drop_tag", { namespace: "gravitino://lake", name: "amt" })).toEqual(["TAG amt"]);
});

describe("an operation", () => {
  test("counts only if Gravitino sends it: from anyone else it is a job like any other", () => {
    const event = gravitinoEvent("drop_table");
    expect(extractedFromGravitino(event).endings).toEqual([TABLE]);
    const facts = extractedFrom(event, "COMPUTE_ENGINE");
    expect(facts.endings).toEqual([]);
    expect(facts.edges).toEqual([`JOB gravitino://tenant/7|gravitino.drop_table OUTPUT_TO ${TABLE}`]);
  });

  test("that has failed, or only begins, has changed nothing", () => {
    for (const eventType of ["START", "FAIL", "ABORT"]) {
      const facts = extractedFromGravitino(gravitinoEvent("drop_table", { eventType }));
      expect(facts).toMatchObject({ nodes: {}, endings: [], mentions: [] });
    }
  });

  test("that is not known, or is about nothing, or outside of any catalog, is told in a warning", () => {
    expect(extractedFromGravitino(gravitinoEvent("paint_table")).warnings).toEqual([
      "/job/name is no operation that is known: paint_table.",
    ]);
    expect(extractedFromGravitino({ ...gravitinoEvent("create_table"), outputs: [] }).warnings).toEqual([
      "/outputs is empty.",
    ]);
    expect(extractedFromGravitino(gravitinoEvent("create_table", { namespace: "gravitino://lake" }))).toMatchObject({
      nodes: {},
      warnings: ["/outputs/0/namespace names no catalog of Gravitino."],
    });
  });
});
