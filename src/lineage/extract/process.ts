/** What reads and writes: the statement that ran, if the event tells it, else the job. */
import type { Attributes } from "../claims.ts";
import type { ParsedEvent } from "../event.ts";
import type { AssetName } from "../names.ts";
import type { Draft } from "./draft.ts";
import { facet, given, text } from "./facets.ts";
import { sqlHash } from "./sql-text.ts";

type Job = NonNullable<ParsedEvent["job"]>;

/** Longer statements are told apart by their beginning only. */
const SQL_LENGTH_MAX = 100_000;
const ENGINES = ["spark", "flink", "airflow", "dbt", "trino", "hive", "dagster", "debezium", "gravitino"];

interface Statement {
  content: string;
  /** What it is known by: the same for all literals. */
  hash: string;
  dialect: string | undefined;
}

/** Claims it, and that this run executed it. Nothing for an event that connects nothing: it only tells the state of a run. */
export function claimProcess(event: ParsedEvent, draft: Draft): AssetName | undefined {
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

const sqlName = (job: Job, { hash }: Statement): AssetName => ({ kind: "SQL", path: [job.namespace, job.name, hash] });

/** The statement that the job runs, if it is told. */
export function statementOf({ facets }: Job): Statement | undefined {
  const sql = facet(facets, "sql");
  const content = text(sql?.["query"], SQL_LENGTH_MAX);
  return content === undefined ? undefined : { content, hash: sqlHash(content), dialect: text(sql?.["dialect"]) };
}

function jobAttributes(job: Job, engine: string | undefined): Attributes {
  const description = text(facet(job.facets, "documentation")?.["description"]);
  return given({ jobNamespace: job.namespace, jobName: job.name, engine, description });
}

function sqlAttributes(job: Job, { content, dialect }: Statement, engine: string | undefined): Attributes {
  return given({ content, dialect, engine, jobNamespace: job.namespace, jobName: job.name });
}

/** In lower case: one and the same engine is `AIRFLOW` in one facet and `Airflow` in another. */
export function engineOf({ runFacets, producer }: ParsedEvent, job: Job): string | undefined {
  const named =
    text(facet(runFacets, "processing_engine")?.["name"]) ?? text(facet(job.facets, "jobType")?.["integration"]);
  if (named !== undefined) return named.toLowerCase();
  const address = producer?.toLowerCase() ?? "";
  return ENGINES.find((engine) => address.includes(engine));
}
