/** The process that reads and writes: the statement, if the event has its text, else the job. */
import type { Attributes } from "../graph/facts.ts";
import type { AssetName } from "../graph/names.ts";
import type { ParsedEvent } from "../ingest/event.ts";
import type { Draft } from "./draft.ts";
import { facet, given, text } from "./facets.ts";
import { sqlHash } from "./sql-text.ts";

type Job = NonNullable<ParsedEvent["job"]>;

/** Longer statements are distinguished by their beginning only. */
const SQL_LENGTH_MAX = 100_000;
const ENGINES = ["spark", "flink", "airflow", "dbt", "trino", "hive", "dagster", "debezium", "gravitino"];

/**
 * The id of a query of Trino or Presto: day, time, a number, and the server. Trino's listener names each job by it, or by a format
 * that holds it (`openlineage-event-listener.job.name-format`), so that each query would be a job of its own.
 */
const QUERY_ID = /(?<![\p{L}\p{N}])\d{8}_\d{6}_\d{5}_[a-z0-9]{5}(?![\p{L}\p{N}])/gu;
/** Enough of the hash to distinguish the statements of a server in a list. */
const SHOWN_HASH_HEX = 8;

interface Statement {
  /** The name of its job, without what differs from run to run. */
  jobName: string;
  content: string;
  /** What it is known by: the same for all literals. */
  hash: string;
  dialect: string | undefined;
}

/** Adds the process and its execution. None for an event without datasets, which only reports the state of a run. */
export function addProcess(event: ParsedEvent, draft: Draft): AssetName | undefined {
  const { job, inputs, outputs, runId } = event;
  if (!job || (inputs.length === 0 && outputs.length === 0 && !facet(job.facets, "lineage"))) return undefined;
  const engine = engineOf(event, job);
  const statement = statementOf(job);
  const process = statement ? sqlName(job, statement) : jobName(job.namespace, job.name);
  draft.node(process, statement ? sqlAttributes(job, statement, engine) : jobAttributes(job, engine));
  if (runId !== null) draft.ran(process, runId);
  return process;
}

export const jobName = (namespace: string, name: string): AssetName => ({ kind: "JOB", path: [namespace, name] });

const sqlName = ({ namespace }: Job, { jobName: name, hash }: Statement): AssetName => ({
  kind: "SQL",
  path: [namespace, name, hash],
});

/** The statement that the job runs, if the event has it. */
export function statementOf({ name, facets }: Job): Statement | undefined {
  const sql = facet(facets, "sql");
  const content = text(sql?.["query"], SQL_LENGTH_MAX);
  if (content === undefined) return undefined;
  const hash = sqlHash(content);
  const stable = name.replace(QUERY_ID, `query-${hash.slice(0, SHOWN_HASH_HEX)}`);
  return { jobName: stable, content, hash, dialect: text(sql?.["dialect"]) };
}

function jobAttributes(job: Job, engine: string | undefined): Attributes {
  const description = text(facet(job.facets, "documentation")?.["description"]);
  return given({ jobNamespace: job.namespace, jobName: job.name, engine, description });
}

function sqlAttributes({ namespace }: Job, statement: Statement, engine: string | undefined): Attributes {
  const { jobName: name, content, dialect } = statement;
  return given({ content, dialect, engine, jobNamespace: namespace, jobName: name });
}

/** In lower case: one and the same engine is `AIRFLOW` in one facet and `Airflow` in another. */
export function engineOf({ runFacets, producer }: ParsedEvent, job: Job): string | undefined {
  const named =
    text(facet(runFacets, "processing_engine")?.["name"]) ?? text(facet(job.facets, "jobType")?.["integration"]);
  if (named !== undefined) return named.toLowerCase();
  const address = producer?.toLowerCase() ?? "";
  return ENGINES.find((engine) => address.includes(engine));
}
