/**
 * Stories made at random: events that tell of a few names again and again, so that they meet, contradict each other and
 * make one name mean different things at different times.
 */
import * as fc from "fast-check";
import {
  attributesFacet,
  columnLineageFacet,
  dataset,
  gravitinoEvent,
  gravitinoFacet,
  type Json,
  lifecycleFacet,
  runEvent,
  schemaFacet,
  symlinksFacet,
} from "../events.fixture.ts";
import type { Source } from "../extract/index.ts";

const HIVE = "gravitino://tenant/7/lake/hive";
const METASTORE = "hive://metastore:9083";
const anyColumn = fc.constantFrom("x", "y", "z");
const word = fc.constantFrom("one", "two");
const anyProperty = fc.constantFrom("p", "q");
const runId = fc.constantFrom("0195a000-0000-7000-8000-00000000000a", "0195a000-0000-7000-8000-00000000000b");

/** Who tells an event: what Gravitino does is known by its job, and an engine may not tell of it. */
export function sourceOf({ job }: Json): Source {
  return String((job as Json | undefined)?.["name"]).startsWith("gravitino.") ? "GRAVITINO" : "COMPUTE_ENGINE";
}

export interface EventOptions {
  /** The tables of one schema that everything is about. */
  tables?: readonly string[];
  /** How many runs there are for each two drops. */
  runs?: number;
}

/** Any event, without a time. */
export function anyEvent({ tables = ["a", "b", "c"], runs = 5 }: EventOptions = {}): fc.Arbitrary<Json> {
  const table = fc.constantFrom(...tables);
  return fc.oneof(
    { weight: 3, arbitrary: creation(table) },
    { weight: 3, arbitrary: alteration(table) },
    { weight: 2, arbitrary: drop(table) },
    { weight: 2, arbitrary: association(table) },
    { weight: 2, arbitrary: metric(table) },
    { weight: runs, arbitrary: run(table) },
    { weight: 2, arbitrary: engineDdl(table) },
    container,
    term,
    design(table),
  );
}

/** One of a full sync: what it does not list is gone. */
export const anyBaseline = (tables: readonly string[] = ["a", "b", "c"]): fc.Arbitrary<Json> =>
  creation(fc.constantFrom(...tables));

const onTable = (operation: string, name: string, facets: Json) =>
  gravitinoEvent(operation, { name: `dw.${name}`, facets });

function creation(table: fc.Arbitrary<string>): fc.Arbitrary<Json> {
  return fc
    .record({
      operation: fc.constantFrom("create_table", "load_table"),
      table,
      columns: fc.uniqueArray(anyColumn, { minLength: 1 }),
      type: word,
      description: fc.option(word),
      properties: fc.option(fc.dictionary(anyProperty, word)),
    })
    .map(({ operation, table: name, columns, type, description, properties }) =>
      onTable(operation, name, {
        ...schemaFacet(columns.map((one) => ({ name: one, type }))),
        ...gravitinoFacet({ ...(description !== null && { description }), ...(properties && { properties }) }),
      }),
    );
}

function alteration(table: fc.Arbitrary<string>): fc.Arbitrary<Json> {
  const change = fc.oneof(
    { weight: 2, arbitrary: table.map((newName) => ({ type: "RENAME_TABLE", newName })) },
    fc.record({ type: fc.constant("RENAME_COLUMN"), oldColumnName: anyColumn, newColumnName: anyColumn }),
    anyColumn.map((columnName) => ({ type: "DELETE_COLUMN", columnName })),
    fc.record({ type: fc.constant("ADD_COLUMN"), columnName: anyColumn, dataType: word }),
    word.map((newComment) => ({ type: "UPDATE_COMMENT", newComment })),
    fc.record({ type: fc.constant("SET_PROPERTY"), propertyKey: anyProperty, propertyValue: word }),
    anyProperty.map((propertyKey) => ({ type: "REMOVE_PROPERTY", propertyKey })),
  );
  return fc
    .record({ table, changes: fc.array(change, { minLength: 1, maxLength: 2 }) })
    .map(({ table: name, changes }) => onTable("alter_table", name, gravitinoFacet({ changes })));
}

function drop(table: fc.Arbitrary<string>): fc.Arbitrary<Json> {
  return fc.oneof(
    { weight: 4, arbitrary: table.map((name) => onTable("drop_table", name, lifecycleFacet("DROP"))) },
    fc.constant(gravitinoEvent("drop_schema", { name: "dw", facets: lifecycleFacet("DROP") })),
    fc.constant(gravitinoEvent("drop_catalog", { namespace: "gravitino", name: "hive" })),
    fc
      .constantFrom("m", "n")
      .map((code) => gravitinoEvent("drop_metric", { name: `dw.${code}`, facets: attributesFacet({ code }) })),
    fc.constant(gravitinoEvent("drop_tag", { namespace: "gravitino://lake", name: "pii" })),
    fc.constant(gravitinoEvent("drop_valuedomain", { name: "dw.status" })),
  );
}

/** Schemas and catalogs are told of by themselves too. */
const container: fc.Arbitrary<Json> = fc.oneof(
  fc
    .record({ operation: fc.constantFrom("create_schema", "alter_schema", "load_schema"), description: word })
    .map(({ operation, description }) =>
      gravitinoEvent(operation, { name: "dw", facets: gravitinoFacet({ description }) }),
    ),
  fc
    .record({ operation: fc.constantFrom("create_catalog", "alter_catalog"), description: word })
    .map(({ operation, description }) =>
      gravitinoEvent(operation, { namespace: "gravitino", name: "hive", facets: gravitinoFacet({ description }) }),
    ),
);

const term: fc.Arbitrary<Json> = fc.oneof(
  word.map((comment) =>
    gravitinoEvent("create_tag", {
      namespace: "gravitino://lake",
      name: "pii",
      facets: attributesFacet({ name: "pii", comment }),
    }),
  ),
  word.map((name) =>
    gravitinoEvent("alter_valuedomain", { name: "dw.status", facets: attributesFacet({ code: "status", name }) }),
  ),
);

function association(table: fc.Arbitrary<string>): fc.Arbitrary<Json> {
  const target = fc.oneof(
    fc.constant({ objectType: "CATALOG", namespace: "gravitino://lake", name: "hive" }),
    fc.constant({ objectType: "SCHEMA", namespace: "gravitino://lake/hive", name: "dw" }),
    table.map((name) => ({ objectType: "TABLE", namespace: "gravitino://lake/hive", name: `dw.${name}` })),
    fc.record({ table, column: anyColumn }).map(({ table: name, column }) => ({
      objectType: "COLUMN",
      namespace: "gravitino://lake/hive",
      name: `dw.${name}.${column}`,
    })),
  );
  return fc
    .record({ target, tag: fc.constantFrom("pii", "vd:status"), add: fc.boolean() })
    .map(({ target: { objectType, namespace, name }, tag, add }) =>
      gravitinoEvent("associate_tags", {
        namespace,
        name,
        facets: { gravitinoTag: { objectType, tagsToAdd: add ? [tag] : [], tagsToRemove: add ? [] : [tag] } },
      }),
    );
}

function metric(table: fc.Arbitrary<string>): fc.Arbitrary<Json> {
  const atomic = fc.record({ table, measured: anyColumn, filtered: anyColumn, name: word }).map((told) => ({
    code: "m",
    name: told.name,
    metricType: "ATOMIC",
    refCatalogName: "hive",
    refSchemaName: "dw",
    refTableName: told.table,
    measureColumns: JSON.stringify([{ name: told.measured }]),
    filterColumns: JSON.stringify([{ name: told.filtered }]),
  }));
  const made = fc
    .record({ metricType: fc.constantFrom("DERIVED", "COMPOSITE"), parents: fc.constantFrom("m", "m,o") })
    .map(({ metricType, parents }) => ({ code: "n", metricType, parentMetricCodes: parents }));
  return fc
    .record({ operation: fc.constantFrom("register_metric", "alter_metric"), told: fc.oneof(atomic, made) })
    .map(({ operation, told }) =>
      gravitinoEvent(operation, { name: `dw.${told.code}`, facets: attributesFacet(told as Record<string, string>) }),
    );
}

/** An engine names tables as Gravitino does, or by their location with or without a symlink, or by a name that is one itself. */
function place(table: fc.Arbitrary<string>): fc.Arbitrary<Json> {
  return fc.oneof(
    table.map((name) => dataset(HIVE, `dw.${name}`)),
    table.map((name) => dataset("file", `/w/${name}`)),
    table.map((name) => dataset("file", `/w/${name}`, symlinksFacet([HIVE, `dw.${name}`]))),
    table.map((name) => dataset("s3://w", name, symlinksFacet([METASTORE, `dw.${name}`]))),
    table.map((name) => dataset("s3://w", name)),
    table.map((name) => dataset(METASTORE, `dw.${name}`, symlinksFacet([HIVE, `dw.${name}`]))),
  );
}

const documented = (description: string | null): Json =>
  description === null ? {} : { documentation: { description } };

function run(table: fc.Arbitrary<string>): fc.Arbitrary<Json> {
  return fc
    .record({
      from: place(table),
      to: place(table),
      column: anyColumn,
      source: anyColumn,
      decides: fc.option(anyColumn),
      type: word,
      /** As the reader calls the type of what it reads. */
      read: fc.option(word),
      description: fc.option(word),
      sql: fc.option(fc.constantFrom("insert into a select 1", "insert into a select x")),
      jobName: fc.constantFrom("load", "report"),
      runId,
      eventType: fc.constantFrom("START", "COMPLETE"),
    })
    .map(({ from, to, column, source, decides, type, read, description, sql, ...options }) => {
      const { namespace, name } = from as { namespace: string; name: string };
      const whole = decides === null ? [] : ([[namespace, name, decides, [{ type: "INDIRECT" }]]] as const);
      const facets = {
        ...(to["facets"] as Json),
        ...schemaFacet([{ name: column, type }]),
        ...columnLineageFacet({ [column]: [[namespace, name, source]] }, whole),
        ...documented(description),
      };
      const jobFacets = sql === null ? {} : { sql: { query: sql } };
      const seen = read === null ? {} : schemaFacet([{ name: source, type: read }]);
      const inputs = [{ ...from, facets: { ...(from["facets"] as Json), ...seen } }];
      return runEvent({ ...options, jobFacets, inputs, outputs: [{ ...to, facets }] });
    });
}

function engineDdl(table: fc.Arbitrary<string>): fc.Arbitrary<Json> {
  return fc.oneof(
    table.map((name) => runEvent({ outputs: [dataset(HIVE, `dw.${name}`, lifecycleFacet("DROP"))] })),
    table.map((name) => runEvent({ outputs: [dataset("file", `/w/${name}`, lifecycleFacet("DROP"))] })),
    fc
      .record({ from: table, to: table, eventType: fc.constantFrom("START", "COMPLETE") })
      .map(({ from, to, eventType }) =>
        runEvent({
          eventType,
          outputs: [dataset(HIVE, `dw.${to}`, lifecycleFacet("RENAME", { namespace: HIVE, name: `dw.${from}` }))],
        }),
      ),
  );
}

/** What is told without a run: of a dataset, and of a job. */
function design(table: fc.Arbitrary<string>): fc.Arbitrary<Json> {
  const { run: _run, eventType: _type, inputs: _in, outputs: _out, job: _job, ...frame } = runEvent();
  return fc.oneof(
    fc.record({ place: place(table), column: anyColumn, type: word, description: fc.option(word) }).map((told) => {
      const facets = {
        ...(told.place["facets"] as Json),
        ...schemaFacet([{ name: told.column, type: told.type }]),
        ...documented(told.description),
      };
      return { ...frame, dataset: { ...told.place, facets } };
    }),
    fc.record({ from: place(table), to: place(table), description: word }).map(({ from, to, description }) => ({
      ...frame,
      job: { namespace: "spark", name: "load", facets: documented(description) },
      inputs: [from],
      outputs: [to],
    })),
  );
}
