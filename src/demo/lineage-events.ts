/**
 * The OpenLineage events of the scenario, as Spark's listener sends them: jobs that turn the harvested tables into a report. Their
 * inputs are folders of the lake with a symlink to the table, which joins them to Millrace's own lineage.
 */
import { SOURCES } from "./sources.ts";

const PRODUCER = "https://github.com/OpenLineage/OpenLineage/tree/1.40.0/integration/spark";
const SPEC = "https://openlineage.io/spec";
const WAREHOUSE = "hive://warehouse.example.org:9083";
const JOBS = "spark";

export const REPORT = "report.works_by_publisher";

/** A table with its columns, each with the columns whose values it has: `table.column`. */
interface SparkJob {
  name: string;
  output: string;
  columns: Readonly<Record<string, readonly string[]>>;
  /** How the values come through. */
  subtype: "IDENTITY" | "AGGREGATION";
  sql: string;
}

const SPARK_JOBS: readonly SparkJob[] = [
  {
    name: "literature.collect_works",
    output: "literature.works",
    columns: {
      doi: ["crossref_works.doi", "pubmed_articles.doi", "arxiv_records.doi"],
      title: ["crossref_works.title", "pubmed_articles.title", "arxiv_records.title"],
      publisher: ["crossref_works.publisher"],
    },
    subtype: "IDENTITY",
    sql: "insert into literature.works select doi, title, publisher from crossref_works union all select doi, title, null from pubmed_articles union all select doi, title, null from arxiv_records",
  },
  {
    name: "literature.merge_works",
    output: "literature.works_unique",
    columns: { doi: ["literature.works.doi"], publisher: ["literature.works.publisher"] },
    subtype: "IDENTITY",
    sql: "insert into literature.works_unique select doi, max(publisher) from literature.works group by doi",
  },
  {
    name: "report.list_titles",
    output: "report.titles",
    columns: { title: ["literature.works.title"] },
    subtype: "IDENTITY",
    sql: "insert into report.titles select distinct title from literature.works",
  },
  {
    name: "report.count_works",
    output: REPORT,
    columns: { publisher: ["literature.works_unique.publisher"], works: ["literature.works_unique.doi"] },
    subtype: "AGGREGATION",
    sql: "insert into report.works_by_publisher select publisher, count(doi) from literature.works_unique group by publisher",
  },
];

interface EventTimes {
  /** Milliseconds since 1970. */
  at: number;
  uuid: () => string;
  /** The folder of the lake that has a folder for each table. */
  tablesDir: string;
}

/** START and COMPLETE of each job, in the order of time. */
export function sparkEvents({ at, uuid, tablesDir }: EventTimes): object[] {
  return SPARK_JOBS.flatMap((job, index) => {
    const runId = uuid();
    const lineage = { inputs: inputsOf(job, tablesDir), outputs: [outputOf(job, tablesDir)] };
    const started = at + index * 2;
    return [
      runEvent("START", started, runId, job, { inputs: lineage.inputs, outputs: [] }),
      runEvent("COMPLETE", started + 1, runId, job, lineage),
    ];
  });
}

/** The events of another company's tool, for a tenant of its own. */
export function dbtEvents({ at, uuid }: Omit<EventTimes, "tablesDir">): object[] {
  const namespace = "postgres://db.acme.example:5432";
  const steps = [
    ["shop.public.orders", "shop.public.orders_daily"],
    ["shop.public.orders_daily", "shop.public.revenue"],
  ] as const;
  return steps.map(([input, output], index) => ({
    eventType: "COMPLETE",
    eventTime: new Date(at + index).toISOString(),
    producer: "https://github.com/OpenLineage/OpenLineage/tree/1.40.0/integration/dbt",
    schemaURL: `${SPEC}/2-0-2/OpenLineage.json#/$defs/RunEvent`,
    run: { runId: uuid() },
    job: { namespace: "dbt", name: `acme.${output}` },
    inputs: [{ namespace, name: input }],
    outputs: [{ namespace, name: output }],
  }));
}

function runEvent(type: string, at: number, runId: string, { name, sql }: SparkJob, lineage: object): object {
  return {
    eventType: type,
    eventTime: new Date(at).toISOString(),
    producer: PRODUCER,
    schemaURL: `${SPEC}/2-0-2/OpenLineage.json#/$defs/RunEvent`,
    run: { runId },
    job: { namespace: JOBS, name, facets: { sql: facet("1-1-0", "SQLJobFacet", { query: sql, dialect: "spark" }) } },
    ...lineage,
  };
}

function inputsOf({ columns }: SparkJob, tablesDir: string): object[] {
  const tables = new Set(Object.values(columns).flatMap((from) => from.map((column) => tableAndColumn(column).table)));
  return [...tables].map((table) => datasetOf(table, tablesDir));
}

function outputOf({ output, columns, subtype }: SparkJob, tablesDir: string): object {
  const fields = Object.entries(columns).map(([column, from]) => {
    const inputFields = from.map((name) => {
      const { table, column: field } = tableAndColumn(name);
      const { namespace, name: dataset } = nameOf(table, tablesDir);
      return { namespace, name: dataset, field, transformations: [{ type: "DIRECT", subtype }] };
    });
    return [column, { inputFields }] as const;
  });
  return {
    ...nameOf(output, tablesDir),
    facets: {
      schema: facet("1-1-1", "SchemaDatasetFacet", { fields: Object.keys(columns).map((name) => ({ name })) }),
      columnLineage: facet("1-2-0", "ColumnLineageDatasetFacet", { fields: Object.fromEntries(fields) }),
    },
  };
}

function datasetOf(table: string, tablesDir: string): object {
  if (!isHarvested(table)) return nameOf(table, tablesDir);
  const identifiers = [{ namespace: "millrace://tables", name: table, type: "TABLE" }];
  const symlinks = facet("1-0-1", "SymlinksDatasetFacet", { identifiers });
  return { ...nameOf(table, tablesDir), facets: { symlinks } };
}

function nameOf(table: string, tablesDir: string): { namespace: string; name: string } {
  if (isHarvested(table)) return { namespace: "file", name: `${tablesDir}/${table}` };
  return { namespace: WAREHOUSE, name: table };
}

function isHarvested(table: string): boolean {
  return Object.values(SOURCES).some((source) => source.table === table);
}

function tableAndColumn(name: string): { table: string; column: string } {
  const dot = name.lastIndexOf(".");
  return { table: name.slice(0, dot), column: name.slice(dot + 1) };
}

function facet(version: string, schema: string, fields: object): object {
  return { _producer: PRODUCER, _schemaURL: `${SPEC}/facets/${version}/${schema}.json#/$defs/${schema}`, ...fields };
}
