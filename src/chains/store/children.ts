/** SQL for child runs as the nodes see them that wait for them: the newest one, and the artifacts of its nodes. */
import type { Db, Queryable } from "../../kernel/data/db.ts";
import { statement } from "../../kernel/data/statement.ts";
import type { RunStatus } from "../engine/states.ts";
import type { NodeKey } from "./live.ts";

export interface ChildRow {
  run_id: string;
  status: RunStatus;
  request: string | null;
  /** An attempt of the node has succeeded with it. */
  is_used: boolean;
}
const NEWEST = statement<ChildRow>(
  "chains.child.newest",
  `select c.run_id, c.status, c.request, exists (
     select from chains.job_run_attempt a
     where a.run_id = $1 and a.node_id = $2 and a.status = 'SUCCESS' and a.ended_at >= c.created_at
   ) as is_used
   from chains.job_run c where c.parent_run_id = $1 and c.parent_node_id = $2
   order by c.created_at desc limit 1`,
);

/** The newest child run of a node. */
export async function newestChild(db: Db, runId: string, nodeId: string): Promise<ChildRow | undefined> {
  return (await db.rows(NEWEST, [runId, nodeId]))[0];
}

const IS_CHILD = statement<{ found: boolean }>(
  "chains.child.is_child",
  `select exists (
     select from chains.job_run where run_id = $1 and parent_run_id = $2 and parent_node_id = $3
   ) as found`,
);

/** Whether the node has started the run. */
export async function isChildOf(db: Queryable, runId: string, { run_id, node_id }: NodeKey): Promise<boolean> {
  return (await db.rows(IS_CHILD, [runId, run_id, node_id]))[0]?.found ?? false;
}

const OF_NODES = "run_id = $1 and artifact_json is not null and ($2::text[] is null or node_id = any($2))";
// Stored, small numbers take up to six times the space of their text.
const STORED_FACTOR = 8;
const BYTES = statement<{ bytes: number }>(
  "chains.child.artifact_bytes",
  `select (case when stored > $3::float8 * ${STORED_FACTOR} then stored else (
     select coalesce(sum(octet_length(artifact_json::text)), 0) from chains.job_run_node where ${OF_NODES}
   ) end)::float8 as bytes
   from (
     select coalesce(sum(pg_column_size(artifact_json)), 0)::float8 as stored from chains.job_run_node where ${OF_NODES}
   ) s`,
);

/**
 * The size of the artifacts of these nodes of a run, or of all, as text. If it is far above `enough`, their stored size, since
 * gigabytes would have to be decompressed to measure them.
 */
export async function artifactBytes(
  db: Db,
  runId: string,
  nodeIds: readonly string[] | null,
  enough: number,
): Promise<number> {
  return (await db.rows(BYTES, [runId, nodeIds, enough]))[0]?.bytes ?? 0;
}

const ARTIFACTS = statement<{ node_id: string; artifact: unknown }>(
  "chains.child.artifacts",
  `select node_id, artifact_json as artifact from chains.job_run_node
   where run_id = $1 and ($2::text[] is null or node_id = any($2)) order by node_no`,
);

/** The artifacts of these nodes of a run, or of all, in the order of its definition. */
export function readArtifacts(db: Db, runId: string, nodeIds: readonly string[] | null) {
  return db.rows(ARTIFACTS, [runId, nodeIds]);
}
