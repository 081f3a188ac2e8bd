/**
 * Builds OpenLineage events for Millrace's own work. An event is built once, as text, so a repeated delivery has the same bytes
 * and the sink takes it once.
 */
import { VERSION } from "../../version.ts";

const PRODUCER = `urn:millrace:${VERSION}`;
const JOBS = "millrace";
const TABLES = "millrace://tables";
export const KPIS = "millrace://kpis";
export const FILES = "millrace://files";

export interface Dataset {
  namespace: string;
  name: string;
  facets?: Facets;
}
export type Facets = Readonly<Record<string, object>>;
export type EventType = "COMPLETE" | "FAIL" | "ABORT";

export interface OwnJob {
  name: string;
  facets: Facets;
}

export interface JobLineage {
  /** Milliseconds since 1970. */
  at: number;
  job: OwnJob;
  inputs: readonly Dataset[];
  outputs: readonly Dataset[];
}

export interface RunLineage extends JobLineage {
  type: EventType;
  runId: string;
  runFacets: Facets;
}

const SPEC = "https://openlineage.io/spec";
/** Like the sink, which keeps no more of a statement. */
const SQL_LENGTH_MAX = 100_000;

export function runEvent({ type, runId, runFacets, ...lineage }: RunLineage): string {
  return JSON.stringify({ eventType: type, ...eventOf("RunEvent", lineage), run: { runId, facets: runFacets } });
}

/** Of a job as such, without a run. */
export function jobEvent(lineage: JobLineage): string {
  return JSON.stringify(eventOf("JobEvent", lineage));
}

function eventOf(kind: string, { at, job, inputs, outputs }: JobLineage): object {
  return {
    eventTime: new Date(at).toISOString(),
    producer: PRODUCER,
    schemaURL: `${SPEC}/2-0-2/OpenLineage.json#/$defs/${kind}`,
    job: { namespace: JOBS, ...job },
    inputs,
    outputs,
  };
}

export const tables = (names: readonly string[]): Dataset[] => names.map((name) => ({ namespace: TABLES, name }));

/** A standard facet, written as this version of its schema says. */
function standard(version: string, schema: string, fields: object): object {
  return { _producer: PRODUCER, _schemaURL: `${SPEC}/facets/${version}/${schema}.json#/$defs/${schema}`, ...fields };
}

export const jobType = (kind: "MODEL" | "INDICATOR" | "CHAIN" | "NODE" | "ARRIVAL" | "HARVEST"): Facets => ({
  jobType: standard("2-0-3", "JobTypeJobFacet", {
    processingType: "BATCH",
    integration: "MILLRACE",
    jobType: kind,
  }),
});

export const jobDescription = (description: string): Facets => ({
  documentation: standard("1-0-1", "DocumentationJobFacet", { description }),
});

export const datasetDescription = (description: string): Facets => ({
  documentation: standard("1-0-1", "DocumentationDatasetFacet", { description }),
});

export const schema = (fields: readonly { name: string; type?: string }[]): Facets => ({
  schema: standard("1-1-1", "SchemaDatasetFacet", {
    fields: fields.map(({ name, type }) => ({ name, ...(type && { type }) })),
  }),
});

/** Columns by name, each with the column whose values it has. */
export const columnLineage = (
  columns: Readonly<Record<string, { namespace: string; name: string; field: string }>>,
): Facets => ({
  columnLineage: standard("1-2-0", "ColumnLineageDatasetFacet", {
    fields: Object.fromEntries(
      Object.entries(columns).map(([column, { namespace, name, field }]) => [
        column,
        { inputFields: [{ namespace, name, field, transformations: [{ type: "DIRECT", subtype: "IDENTITY" }] }] },
      ]),
    ),
  }),
});

export const sqlText = (query: string, dialect: string | undefined): Facets => ({
  sql: standard("1-1-0", "SQLJobFacet", { query: query.slice(0, SQL_LENGTH_MAX), ...(dialect && { dialect }) }),
});

export const parentRun = (runId: string, jobName: string): Facets => ({
  parent: standard("1-0-1", "ParentRunFacet", { run: { runId }, job: { namespace: JOBS, name: jobName } }),
});

export const errorMessage = (message: string): Facets => ({
  // The language is required, and a failure may come from anywhere.
  errorMessage: standard("1-0-1", "ErrorMessageRunFacet", { message, programmingLanguage: "unknown" }),
});

export const nominalTime = ({ startMs, endMs }: { startMs: number; endMs: number }): Facets => ({
  nominalTime: standard("1-0-1", "NominalTimeRunFacet", {
    nominalStartTime: new Date(startMs).toISOString(),
    nominalEndTime: new Date(endMs).toISOString(),
  }),
});

/** Our own: an opTime need not be a time at all. */
export const opTimeOf = (opTime: string): Facets => ({
  millrace_opTime: { _producer: PRODUCER, _schemaURL: "urn:millrace:facet:opTime:1", opTime },
});
