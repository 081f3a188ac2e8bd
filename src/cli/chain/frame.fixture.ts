/** Runs and nodes for tests of frames. */
import type { NodeStatus, Run, RunNode } from "./api.ts";

export const BEGIN = Date.parse("2025-01-01T00:00:00.000Z");

/** A time in seconds after the start. */
export const at = (seconds: number) => new Date(BEGIN + seconds * 1000).toISOString();

export function runOf(fields: Partial<Run> = {}): Run {
  return {
    runId: "run-1",
    chainId: "chain-1",
    chainVersion: 1,
    jobName: "daily",
    status: "RUNNING",
    reason: null,
    opTime: null,
    trigger: "api",
    triggeredBy: "a key",
    parentRunId: null,
    params: {},
    createdAt: at(0),
    updatedAt: at(0),
    startedAt: at(0),
    endedAt: null,
    ...fields,
  };
}

/** PENDING by default; a started node starts with the run. */
export function nodeOf(
  nodeId: string,
  dependsOn: readonly string[] = [],
  status: NodeStatus = "PENDING",
  fields: Partial<RunNode> = {},
): RunNode {
  const ended = ["SUCCESS", "FAILED", "STOPPED"].includes(status);
  return {
    nodeId,
    type: "noop",
    dependsOn,
    runWhen: "all_success",
    status,
    attempt: status === "PENDING" || status === "SKIPPED" ? 0 : 1,
    maxAttempts: 3,
    lastError: null,
    startedAt: ended || status === "RUNNING" || status === "RETRYING" ? at(0) : null,
    endedAt: ended ? at(1) : null,
    dueAt: null,
    progress: null,
    progressNote: null,
    worker: null,
    childRunId: null,
    waitingFor: null,
    waits: null,
    updatedAt: at(0),
    ...fields,
  };
}
