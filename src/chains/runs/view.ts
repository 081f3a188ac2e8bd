/** Replies for runs and nodes: their rows, their definition and, for a node that does not run, what it waits for. */
import { counted } from "../../kernel/text/sentences.ts";
import type { Dag, NodeDef } from "../definitions/dag.ts";
import type { LiveState } from "../engine/book.ts";
import type { NodeWaits, Run, RunNode } from "../replies.ts";
import type { NodeRow, RunRow, UnservedRole } from "../store/reads.ts";

/** Fields that only some callers read. */
type More = Readonly<Record<string, unknown>>;

export function runReply(row: RunRow) {
  return {
    runId: row.run_id,
    chainId: row.chain_id,
    chainVersion: row.chain_version,
    jobId: row.job_id,
    jobName: row.job_name,
    status: row.status,
    reason: row.reason ?? whyWaiting(row),
    params: row.params,
    paramsBytes: row.params_bytes,
    opTime: row.op_time,
    priority: row.priority,
    trigger: row.trigger,
    triggeredBy: row.triggered_by,
    parentRunId: row.parent_run_id,
    parentNodeId: row.parent_node_id,
    createdAt: row.created_at,
    updatedAt: row.updated_at,
    startedAt: row.started_at,
    endedAt: row.ended_at,
  } satisfies Run<Date> & More;
}

function whyWaiting({ status, active, max_active_runs, unserved }: RunRow): string | null {
  if (unserved !== null) return `waits for ${unservedProcess(unserved)}`;
  if (status !== "PENDING" || max_active_runs === null || active < max_active_runs) return null;
  return `waits for its turn: ${active} of at most ${max_active_runs} runs of this chain are active`;
}

export type NodeReply = ReturnType<typeof nodeReply>;

/** Makes replies of rows, for the nodes of one DAG. */
export function nodeReplies(dag: Dag): (row: NodeRow) => NodeReply {
  const defs = new Map(dag.nodes.map((def) => [def.id, def]));
  return (row) => nodeReply(row, defs.get(row.node_id));
}

export function nodeReply(row: NodeRow, def: NodeDef | undefined) {
  const waits = waitsOf(row);
  return {
    nodeId: row.node_id,
    type: def?.type ?? "",
    dependsOn: def?.dependsOn ?? [],
    runWhen: def?.runWhen ?? "all_success",
    status: row.status,
    attempt: row.attempt,
    maxAttempts: def?.retry?.maxAttempts ?? 1,
    lastError: row.last_error,
    artifactJson: row.artifact === null ? null : JSON.stringify(row.artifact),
    artifact: row.artifact,
    artifactBytes: row.artifact_bytes,
    startedAt: row.started_at,
    endedAt: row.ended_at,
    dueAt: row.due_at,
    waitingFor: waitingFor(row, waits),
    waits,
    progress: row.progress,
    progressNote: row.progress_note,
    worker: row.worker,
    childRunId: row.child_run_id,
    updatedAt: row.updated_at,
  } satisfies RunNode<Date> & More;
}

function unservedProcess(role: UnservedRole): string {
  return `a process with the role \`${role}\`: none is alive`;
}

function waitsOf({ state, waiting, pool, missing_tables, is_lost, unserved }: NodeRow): NodeWaits | null {
  const cause = state === null ? null : WAIT_CAUSES[state];
  if (cause === null || (cause === "lost" && !is_lost)) return null;
  const tables = cause === "inputs" ? (missing_tables ?? []) : [];
  return {
    cause,
    parents: cause === "inputs" ? (waiting ?? 0) - tables.length : 0,
    tables,
    pool: cause === "slot" ? pool : null,
    unservedRole: cause === "slot" || cause === "retry" || cause === "lost" ? unserved : null,
  };
}

const WAIT_CAUSES = {
  waiting: "inputs",
  ready: "slot",
  delayed: "retry",
  blocked: "stop",
  parked: "started",
  leased: "lost",
} as const satisfies Record<LiveState, NodeWaits["cause"]>;

function waitingFor(row: NodeRow, waits: NodeWaits | null): string | null {
  if (waits === null) return null;
  const { cause, parents, tables, pool, unservedRole: unserved } = waits;
  const { due_at, child_run_id } = row;
  switch (cause) {
    case "inputs": {
      const parts = [
        ...(parents > 0 ? [`${counted(parents, "parent")} to end`] : []),
        ...(tables.length > 0 ? [`${tables.length === 1 ? "the table" : "the tables"} ${tables.join(", ")}`] : []),
      ];
      return parts.join(" and ");
    }
    case "slot": {
      const worker = unserved === null ? "a free worker" : unservedProcess(unserved);
      return pool === null ? worker : `room in the pool \`${pool}\` and ${worker}`;
    }
    case "retry":
      return withScheduler(`its next attempt, due at ${due_at?.toISOString()}`, unserved);
    case "stop":
      return `run ${child_run_id}, which an earlier attempt started, to stop`;
    case "started":
      return child_run_id === null ? "the end of what it started" : `run ${child_run_id}`;
    case "lost":
      return withScheduler("another worker, since its own is lost", unserved);
  }
}

function withScheduler(what: string, unserved: UnservedRole | null): string {
  return unserved === null ? what : `${what}, and ${unservedProcess(unserved)}`;
}
