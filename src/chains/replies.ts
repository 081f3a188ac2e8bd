/**
 * Replies of the chains API, declared once for the server, the command line and the page. `Time` is a `Date` where the server
 * makes a reply, and text where it is read. The page imports these types from here, so this file imports nothing but types.
 */
import type { RunWhen } from "./definitions/dag.ts";
import type { NodeStatus, RunStatus } from "./engine/states.ts";

export type { NodeStatus, RunStatus };

export interface ChainDetail {
  chainId: string;
  name: string;
  description: string | null;
  enabled: boolean;
  version: number;
  dag: { nodes: readonly ChainNode[] };
  maxActiveRuns: number | null;
  runTimeoutMs: number | null;
}
export interface ChainNode {
  id: string;
  type: string;
  dependsOn?: readonly string[];
  waitsFor?: readonly string[];
}

export interface Run<Time = string> {
  runId: string;
  /** Null for the run of a `map`. */
  chainId: string | null;
  chainVersion: number | null;
  /** The chain's name at the start of the run. */
  jobName: string;
  status: RunStatus;
  reason: string | null;
  opTime: string | null;
  trigger: string;
  triggeredBy: string;
  parentRunId: string | null;
  /** In a list, null if they are large. */
  params: Readonly<Record<string, unknown>> | null;
  /** With the run itself only: the run of its chain before it. */
  previous?: { runId: string; chainVersion: number | null } | null;
  createdAt: Time;
  updatedAt: Time;
  startedAt: Time | null;
  endedAt: Time | null;
}

/** Why a node does not run. */
export interface NodeWaits {
  /**
   * `inputs`: parents and tables; `slot`: room in its pool and a worker; `retry`: its next attempt, at `dueAt`; `stop`: the run
   * `childRunId`, which is to stop; `started`: that run, or other work that it started; `lost`: a worker, since its own is lost.
   */
  cause: "inputs" | "slot" | "retry" | "stop" | "started" | "lost";
  /** How many have not ended. */
  parents: number;
  /** Those that have not arrived. */
  tables: string[];
  pool: string | null;
  /** No process with this role is alive. */
  unservedRole: "scheduler" | "worker" | null;
}

export interface RunNode<Time = string> {
  nodeId: string;
  type: string;
  dependsOn: readonly string[];
  runWhen: RunWhen;
  status: NodeStatus;
  attempt: number;
  maxAttempts: number;
  lastError: string | null;
  startedAt: Time | null;
  endedAt: Time | null;
  /** When a retry is due. */
  dueAt: Time | null;
  /** What it waits for, as text: `2 parents to end`. */
  waitingFor: string | null;
  /** The same in parts. */
  waits: NodeWaits | null;
  /** From 0 to 1. */
  progress: number | null;
  progressNote: string | null;
  worker: string | null;
  childRunId: string | null;
  updatedAt: Time;
}

export interface Attempt<Time = string> {
  attempt: number;
  status: string;
  error: string | null;
  startedAt: Time | null;
  endedAt: Time | null;
}

export interface LogLine<Time = string> {
  id: string;
  at: Time;
  attempt: number;
  level: string;
  text: string;
}

/** Attempts that another one followed, and the nodes that the time of the run depends on. */
export interface Timeline<Time = string> {
  attempts: readonly EarlierAttempt<Time>[];
  truncated: boolean;
  criticalPath: readonly string[];
}
export interface EarlierAttempt<Time = string> {
  nodeId: string;
  attempt: number;
  status: string;
  error: string | null;
  startedAt: Time;
  endedAt: Time;
}

export interface TimedRun<Time = string> {
  runId: string;
  opTime: string | null;
  status: RunStatus;
  chainVersion: number | null;
  createdAt: Time;
  startedAt: Time | null;
  endedAt: Time | null;
}

export interface NodeTimes {
  status: NodeStatus;
  /** From when its parents allowed it to run until its first attempt: for a worker, its pool or its tables. */
  waitedMs: number;
  /** In all its attempts. */
  ranMs: number;
  /** Between its attempts, whatever the reason, and from the last one until a person set it to succeeded. */
  pausedMs: number;
  attempts: number;
}

/** Where most of a node's difference comes from. */
export type Cause =
  | "added"
  | "removed"
  | "not_run_before"
  | "not_run_now"
  | "retried"
  | "waited"
  | "paused"
  | "ran"
  | "same";

export interface ComparedNode {
  nodeId: string;
  type: string;
  pool: string | null;
  waitsFor: readonly string[];
  /** The time of the run depended on it. */
  critical: boolean;
  /** Null: it is not in this run. */
  now: NodeTimes | null;
  /** Null: it is not in the other run. */
  before: NodeTimes | null;
  /** Of all its time: positive if it took longer now. */
  differenceMs: number;
  cause: Cause;
}

export interface Comparison<Time = string> {
  run: TimedRun<Time>;
  /** Null: there is no earlier successful run. */
  with: TimedRun<Time> | null;
  /** Earlier runs of the chain that have ended, newest first. */
  earlier: readonly TimedRun<Time>[];
  /** What cost most comes first. */
  nodes: readonly ComparedNode[];
  total: number;
}

export interface Grid<Time = string> {
  /** Newest first. */
  runs: readonly TimedRun<Time>[];
  nodes: readonly GridNode[];
  /** How many nodes come before these. */
  from: number;
  /** Of all nodes. */
  total: number;
}
export interface GridNode {
  nodeId: string;
  type: string;
  /** One for each run; null if the run does not have the node. */
  statuses: readonly (NodeStatus | null)[];
}
