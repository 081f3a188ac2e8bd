/** What the pages of chains read of the API, and where. */
import type { ChainNode, LogLine, NodeStatus, Run, RunNode, RunStatus } from "../../../src/chains/replies.ts";
import { pathTo, withQuery } from "../api/client.ts";

export type * from "../../../src/chains/replies.ts";
export type { ChainDetail as Chain } from "../../../src/chains/replies.ts";

export interface ChainSummary {
  chainId: string;
  name: string;
  enabled: boolean;
  version: number;
  nodeCount: number;
  runs: readonly SummaryRun[];
  next: { at: string; name: string } | null;
  waitsFor: readonly string[];
  p50Ms: number | null;
  p95Ms: number | null;
}
export interface SummaryRun {
  runId: string;
  status: RunStatus;
  reason: string | null;
  opTime: string | null;
  startedAt: string | null;
  endedAt: string | null;
}
export interface ChainVersion {
  version: number;
  name: string;
  description: string | null;
  createdAt: string;
  createdBy: string;
  dag: { nodes: readonly ChainNode[] };
}
export interface VersionPage {
  items: readonly Omit<ChainVersion, "dag">[];
  next: number | null;
}
export interface Schedule {
  scheduleId: string;
  name: string;
  cron: string;
  timeZone: string;
  paused: boolean;
  nextAt: string | null;
  lastRunId: string | null;
}
export interface RunPage {
  items: readonly Run[];
  total: number;
  next: string | null;
}
export interface NodeDetail extends RunNode {
  artifactJson: string | null;
}
export interface LogPage {
  items: readonly LogLine[];
  next: string;
}
export interface Move {
  nodeId: string;
  from: NodeStatus;
  to: NodeStatus;
}
export interface Effect {
  nodes: readonly Move[];
  revision: string;
}

export const paths = {
  summaries: (query: Readonly<Record<string, string | number | undefined>>) =>
    withQuery("/api/v1/chains/summaries", query),
  chain: (chainId: string) => pathTo`/api/v1/chains/${chainId}`,
  chains: "/api/v1/chains",
  chainAction: (chainId: string, action: string) => `${pathTo`/api/v1/chains/${chainId}`}:${action}`,
  versions: (chainId: string, before: string | undefined) =>
    withQuery(pathTo`/api/v1/chains/${chainId}/versions`, { before, limit: 100 }),
  version: (chainId: string, version: number) => pathTo`/api/v1/chains/${chainId}/versions/${version}`,
  schedules: (chainId: string) => pathTo`/api/v1/chains/${chainId}/schedules`,
  schedule: (chainId: string, scheduleId: string) => pathTo`/api/v1/chains/${chainId}/schedules/${scheduleId}`,
  scheduleAction: (chainId: string, scheduleId: string, action: string) =>
    `${pathTo`/api/v1/chains/${chainId}/schedules/${scheduleId}`}:${action}`,
  runs: (query: Readonly<Record<string, string | number | undefined>>) => withQuery("/api/v1/runs", query),
  run: (runId: string) => pathTo`/api/v1/runs/${runId}?dag=false`,
  nodes: (runId: string) => pathTo`/api/v1/runs/${runId}/nodes`,
  node: (runId: string, nodeId: string) => pathTo`/api/v1/runs/${runId}/nodes/${nodeId}`,
  attempts: (runId: string, nodeId: string) => pathTo`/api/v1/runs/${runId}/nodes/${nodeId}/attempts`,
  logs: (runId: string, nodeId: string) => pathTo`/api/v1/runs/${runId}/nodes/${nodeId}/logs`,
  timeline: (runId: string) => pathTo`/api/v1/runs/${runId}/timeline`,
  comparison: (runId: string, other: string | undefined) =>
    withQuery(pathTo`/api/v1/runs/${runId}/comparison`, { with: other }),
  grid: (chainId: string, query: Readonly<Record<string, string | number | undefined>>) =>
    withQuery(pathTo`/api/v1/chains/${chainId}/grid`, query),
  runAction: (runId: string, action: string) => `${pathTo`/api/v1/runs/${runId}`}:${action}`,
  nodeAction: (runId: string, nodeId: string, action: string) =>
    `${pathTo`/api/v1/runs/${runId}/nodes/${nodeId}`}:${action}`,
};
