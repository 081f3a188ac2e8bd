import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { ApiError } from "../../kernel/errors.ts";
import type { Json } from "../events.fixture.ts";
import { type ParsedEvent, parseEvent } from "../ingest/event.ts";
import { digestOf, factsOf, type Source } from "./index.ts";
import { normalisedSql } from "./sql-text.ts";

const OPERATIONS = [
  "alter_table",
  "alter_table",
  "create_table",
  "alter_table",
  "drop_table",
  "alter_catalog",
  "register_metric",
  "create_tag",
  "associate_tags",
];
const CHANGES = [
  "RENAME_TABLE",
  "ADD_COLUMN",
  "DELETE_COLUMN",
  "RENAME_COLUMN",
  "UPDATE_COLUMN_TYPE",
  "SET_PROPERTY",
  "ADD_INDEX",
];

/** Every other text holds what Postgres refuses. */
const dirty = fc.oneof(
  fc.constantFrom("a", "b", "\0", "a\0b", "\ud800", "x\udfff", "", "n".repeat(4_001), "__proto__"),
  fc.string({ unit: "binary", maxLength: 4 }),
);
/** What should be here, or anything else. */
const rather = <T>(expected: fc.Arbitrary<T>) =>
  fc.oneof({ arbitrary: expected, weight: 9 }, { arbitrary: fc.jsonValue({ maxDepth: 2 }), weight: 1 });
const record = (shape: Record<string, fc.Arbitrary<unknown>>) =>
  rather(
    fc.record(Object.fromEntries(Object.entries(shape).map(([key, value]) => [key, rather(value)])), {
      requiredKeys: [],
    }),
  );
const list = (item: fc.Arbitrary<unknown>) => rather(fc.array(item, { maxLength: 3 }));
const byName = (item: fc.Arbitrary<unknown>) => rather(fc.dictionary(dirty, item, { maxKeys: 3 }));

const transformations = list(record({ type: dirty, subtype: dirty, description: dirty, masking: fc.boolean() }));
const entity = {
  namespace: dirty,
  name: dirty,
  type: fc.constantFrom("JOB", "DATASET"),
  field: dirty,
  transformations,
};
const change = record({
  type: fc.constantFrom(...CHANGES),
  newName: dirty,
  columnName: dirty,
  oldColumnName: dirty,
  newColumnName: dirty,
  dataType: dirty,
  propertyKey: dirty,
  propertyValue: dirty,
  indexName: dirty,
  indexColumns: list(dirty),
  position: fc.constantFrom("FIRST", "AFTER a", "AFTER \0"),
});
const inputs = list(record(entity));
const facets = record({
  schema: record({
    fields: list(record({ name: dirty, type: dirty, description: dirty, fields: list(record({ name: dirty })) })),
  }),
  columnLineage: record({
    fields: byName(record({ inputFields: inputs, transformationType: dirty })),
    dataset: inputs,
  }),
  symlinks: record({
    identifiers: list(record({ namespace: dirty, name: dirty, type: fc.constantFrom("TABLE", "LOCATION") })),
  }),
  lifecycleStateChange: record({
    lifecycleStateChange: fc.constantFrom("DROP", "RENAME", "CREATE"),
    previousIdentifier: record({ namespace: dirty, name: dirty }),
  }),
  documentation: record({ description: dirty }),
  ownership: record({ owners: list(record({ name: dirty, type: dirty })) }),
  tags: record({ tags: list(record({ key: dirty, value: dirty })) }),
  catalog: record({ name: dirty }),
  lineage: record({ inputs, fields: byName(record({ inputs })), entries: list(record({ ...entity, inputs })) }),
  gravitino: record({
    properties: byName(dirty),
    indexes: dirty,
    columns: list(record({ name: dirty })),
    changes: list(change),
  }),
  gravitinoTag: record({
    objectType: fc.constantFrom("CATALOG", "SCHEMA", "TABLE", "COLUMN"),
    tagsToAdd: list(dirty),
    tagsToRemove: list(dirty),
    associatedTags: list(dirty),
  }),
  sql: record({ query: dirty, dialect: dirty }),
}).filter((value) => typeof value === "object" && !Array.isArray(value));
const namespace = fc.constantFrom(
  "file",
  "hive://m",
  "gravitino",
  "gravitino://lake/hive",
  "gravitino://tenant/7/lake/hive",
);
const named = fc.record({ namespace, name: fc.constantFrom("s.t", "/w/a.b", "s.t.c"), facets });
const event = fc.record({
  eventTime: fc.constant("2026-03-01T10:00:00Z"),
  eventType: fc.constantFrom("COMPLETE", "COMPLETE", null, "START"),
  producer: dirty,
  run: fc.record({ runId: fc.uuid(), facets }),
  job: fc.record({
    namespace,
    name: fc.constantFrom("job", ...OPERATIONS.map((operation) => `gravitino.${operation}`)),
    facets,
  }),
  inputs: fc.array(named, { maxLength: 2 }),
  outputs: fc.array(named, { maxLength: 2 }),
});
const source = fc.constantFrom<Source>("GRAVITINO", "COMPUTE_ENGINE");

/** As it comes over the wire. */
const sent = (value: unknown): unknown => JSON.parse(JSON.stringify(value));

function parsed(value: unknown): ParsedEvent | undefined {
  try {
    return parseEvent(value);
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    expect(error.code).toBe("VALIDATION_FAILED");
    return undefined;
  }
}

describe("whatever is sent", () => {
  test("is an event or is refused as none, and an event can always be read", () => {
    fc.assert(
      fc.property(fc.jsonValue({ stringUnit: "binary" }), source, (value, from) => {
        const read = parsed(value);
        if (read) factsOf(read, from);
      }),
      { numRuns: 500 },
    );
  });

  test("in place of a part of an event is taken or refused, and what is taken can be read", () => {
    const part = fc.constantFrom("eventTime", "eventType", "producer", "run", "job", "dataset", "inputs", "outputs");
    fc.assert(
      fc.property(event, part, fc.oneof(fc.jsonValue(), facets), source, (whole, name, value, from) => {
        const read = parsed(sent({ ...whole, [name]: value }));
        if (read) factsOf(read, from);
      }),
      { numRuns: 300 },
    );
  });

  test("within facets never makes an error, nor a text that Postgres refuses", () => {
    fc.assert(
      fc.property(event, source, (whole, from) => {
        const facts = factsOf(parseEvent(sent(whole)), from);
        expect(textsOf(facts).filter((text) => text.includes("\0") || !text.isWellFormed())).toEqual([]);
      }),
      { numRuns: 500 },
    );
  });
});

test("a number that JSON can tell and Postgres cannot take reaches no claim", () => {
  const body = JSON.stringify({
    eventTime: "2026-03-01T10:00:00Z",
    job: { namespace: "gravitino", name: "gravitino.alter_table" },
    outputs: [
      {
        namespace: "gravitino://lake/hive",
        name: "dw.orders",
        facets: {
          gravitino: {
            properties: { huge: "HUGE", list: [1, "HUGE"] },
            createTime: "HUGE",
            columns: [{ name: "a", defaultValue: "HUGE" }],
            changes: [{ type: "SET_PROPERTY", propertyKey: "set", propertyValue: "HUGE" }],
          },
        },
      },
    ],
  }).replaceAll('"HUGE"', "-1e999");
  const { nodes } = factsOf(parseEvent(JSON.parse(body)), "GRAVITINO");
  expect(nodes.map(({ attributes }) => attributes)).toEqual([
    { properties: { huge: null, list: [1, null], set: "" } },
    { metalake: "lake" },
    { position: 1 },
  ]);
});

test("events of the same digest make the same facts, apart from the literals in a statement", () => {
  // Of few facets and few words, so that many of them are alike.
  const facet = fc.constantFrom<Json>(
    {},
    { lifecycleStateChange: { lifecycleStateChange: "DROP" } },
    { lifecycleStateChange: { lifecycleStateChange: "CREATE" } },
    { schema: { fields: [{ name: "a" }] } },
    { version: { datasetVersion: "1" } },
    { gravitino: { changes: [{ type: "DELETE_COLUMN", columnName: "a" }] } },
  );
  const sql = (query: string, dialect?: string): Json => ({ sql: { query, dialect } });
  const small = fc.record({
    eventTime: fc.constantFrom("2026-03-01T10:00:00Z", "2026-03-02T10:00:00Z"),
    eventType: fc.constantFrom("START", "COMPLETE"),
    producer: fc.constantFrom("spark", "flink"),
    run: fc.constantFrom(undefined, { runId: "a" }, { runId: "a", facets: { processing_engine: { name: "spark" } } }),
    job: fc.record({
      namespace: fc.constant("file"),
      name: fc.constantFrom("job", "gravitino.alter_table"),
      facets: fc.constantFrom<Json>({}, sql("select 1"), sql("select 2"), sql("select a"), sql("select 1", "trino")),
    }),
    outputs: fc.array(fc.record({ namespace, name: fc.constant("s.t"), facets: facet }), { maxLength: 1 }),
  });
  const factsByDigest = new Map<string, unknown>();
  let alike = 0;
  fc.assert(
    fc.property(small, source, (whole, from) => {
      const read = parseEvent(sent(whole));
      const { execution, ...facts } = factsOf(read, from);
      const digest = digestOf(read, from);
      const nodes = facts.nodes.map(({ name, attributes: { content, ...rest } }) => {
        return { name, rest, content: content && normalisedSql(content as string) };
      });
      const shown = { ...facts, nodes, process: execution?.process };
      if (factsByDigest.has(digest)) {
        alike += 1;
        expect(shown).toEqual(factsByDigest.get(digest));
      }
      factsByDigest.set(digest, shown);
    }),
    { numRuns: 3_000 },
  );
  expect(alike).toBeGreaterThan(100);
});

function textsOf(value: unknown): string[] {
  if (typeof value === "string") return [value];
  if (typeof value !== "object" || value === null) return [];
  return Object.entries(value).flatMap(([key, item]) => [key, ...textsOf(item)]);
}
