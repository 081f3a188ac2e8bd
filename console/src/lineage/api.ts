/** What the pages of lineage read of the public API: paths, and the fields that they use. */
import type { Tenant, TenantState } from "../../../src/lineage/tenants/replies.ts";
import { pathTo, withQuery } from "../api/client.ts";

const BASE = "/api/v1/lineage";

export const KINDS = [
  "TABLE",
  "COLUMN",
  "SQL",
  "JOB",
  "METRIC",
  "SCHEMA",
  "CATALOG",
  "TAG",
  "WORDROOT",
  "MODIFIER",
  "UNIT",
  "VALUEDOMAIN",
] as const;
export type Kind = (typeof KINDS)[number];

export interface Asset {
  id: string;
  kind: Kind;
  name: string;
  fullName: string;
  path: readonly string[];
  description: string | null;
}
export interface ListedAsset extends Asset {
  owner: string | null;
}

export type { Tenant, TenantState };
export interface Ready extends Tenant {
  applied: number;
  skipped: number;
  dead: number;
}
export interface Statistics {
  assets: Readonly<Record<string, number>>;
  edges: number;
  events: { last24Hours: number; last7Days: number; newest: string | null; buffered: number; dead: number };
  tasks: readonly { type: TaskType; status: TaskStatus; count: number }[];
  /** A count that is equal to it means: at least so many. */
  countMax: number;
}
/** As text: `100,000+` for a count that has met its limit. */
export function atLeast(count: number, max: number, number: (value: number) => string): string {
  return `${number(count)}${count >= max ? "+" : ""}`;
}
export interface TenantModel {
  model: { embedding?: { provider: string; model: string }; summary?: { provider: string; model: string } } | null;
}

export interface SearchReply {
  notice: string | null;
  items: readonly (Asset & { isDropped: boolean; matched: readonly { field: string; snippet: string }[] })[];
}
export interface Listed<Item> {
  items: readonly Item[];
  next: string | null;
}

export interface LineageEvent {
  id: string;
  kind: string;
  eventType: string | null;
  eventTime: string;
  runId: string | null;
  jobNamespace: string | null;
  jobName: string | null;
  producer: string | null;
  source: string;
  state: EventState;
  error: string | null;
  receivedAt: string;
}
export type EventState = "APPLIED" | "BUFFERED" | "SKIPPED" | "DEAD";
export interface EventDetail extends LineageEvent {
  warnings: readonly string[];
  event: unknown;
}

export interface AssetDetail extends Asset {
  attributes: Readonly<Record<string, unknown>>;
  parents: readonly { id: string; kind: Kind; name: string }[];
  columns: readonly AssetColumn[];
  hasMoreColumns: boolean;
  children: readonly ListedAsset[];
  tags: readonly { id: string; name: string }[];
  summary: { text: string; tags: readonly string[] } | null;
  executions: number;
  lastExecutionAt: string | null;
  otherNames: number;
  firstSeenAt: string;
  lastSeenAt: string | null;
  /** Null if the asset exists. */
  droppedAt: string | null;
  /** Null if the event is not stored any more, or if none named the asset. */
  droppedBy: LineageEvent | null;
}
export interface AssetColumn {
  id: string;
  name: string;
  attributes: Readonly<Record<string, unknown>>;
  valueDomains: readonly string[];
}
export interface Neighbour extends ListedAsset {
  relation: string;
  executions: number | null;
  lastRunAt: string | null;
}

export type Direction = "up" | "down" | "both";
export interface GraphAsset extends Asset {
  distance: number;
  moreUp?: number;
  moreDown?: number;
  isDirect?: boolean;
  isMasked?: boolean;
}
export interface Link {
  from: string;
  to: string;
  kind: string;
}
export interface GraphReply {
  start: string;
  partial: boolean;
  reason: Reason | null;
  nodes: readonly GraphAsset[];
  edges: readonly Link[];
}
export type Reason = "NODES" | "EDGES" | "TIME" | "STEPS";

export interface PathsReply {
  from: string;
  to: string;
  direction: "down" | "up" | null;
  partial: boolean;
  pathCount: number;
  pathCountMax: number;
  paths: readonly (readonly string[])[];
  nodes: readonly ListedAsset[];
  edges: readonly Link[];
}

export interface Affected extends ListedAsset {
  distance: number;
  via: readonly string[];
  transformations: readonly { type: string; subtype?: string; masking?: boolean }[];
  lastRunAt: string | null;
}
export interface ImpactReply {
  partial: boolean;
  items: readonly Affected[];
}

export const TASK_STATUSES = ["PENDING", "RUNNING", "SUCCEEDED", "FAILED", "DEAD", "CANCELED"] as const;
export type TaskStatus = (typeof TASK_STATUSES)[number];
export const TASK_TYPES = ["EMBEDDING", "SQL_SUMMARY"] as const;
export type TaskType = (typeof TASK_TYPES)[number];
export interface Task {
  id: string;
  type: TaskType;
  resourceType: Kind;
  resourceId: string;
  status: TaskStatus;
  retryCount: number;
  maxRetry: number;
  nextRunAt: string;
  lastError: string | null;
  createdAt: string;
  updatedAt: string;
}
export type AttemptStatus = Extract<TaskStatus, "RUNNING" | "SUCCEEDED" | "FAILED" | "CANCELED">;
export interface TaskDetail extends Task {
  modelFingerprint: string;
  attempts: readonly {
    attemptNo: number;
    startedAt: string;
    finishedAt: string | null;
    status: AttemptStatus;
    latencyMs: number | null;
    errorMessage: string | null;
  }[];
}
export interface Batch {
  batchNo: string;
  type: TaskType;
  plannedSize: number;
  successCount: number;
  failedCount: number;
  startedAt: string;
  finishedAt: string | null;
  status: AttemptStatus;
}
export interface Paged<Item> {
  items: readonly Item[];
  total: number;
}

/** What is found by a search or along edges may change with any asset, and costs the server more than one asset. */
export const ASSETS = [{ kind: "asset" }];
export const ASSETS_PACE = { atMostEveryMs: 2_000 };

type Query = Parameters<typeof withQuery>[1];
const tenantPath = (tenant: string) => BASE + pathTo`/tenants/${tenant}`;
const assetPath = (id: string) => BASE + pathTo`/assets/${id}`;

export const paths = {
  tenants: (query: Query = {}) => withQuery(`${BASE}/tenants`, { size: 1_000, ...query }),
  newTenant: `${BASE}/tenants`,
  syncStart: (tenant: string) => `${tenantPath(tenant)}:sync-start`,
  ready: (tenant: string) => `${tenantPath(tenant)}:ready`,
  statistics: (tenant: string) => `${tenantPath(tenant)}/statistics`,
  model: (tenant: string) => `${tenantPath(tenant)}/model`,
  search: (query: Query) => withQuery(`${BASE}/search`, query),
  assets: (query: Query) => withQuery(`${BASE}/assets`, query),
  asset: (tenant: string, id: string) => withQuery(assetPath(id), { tenant }),
  neighbours: (id: string, query: Query) => withQuery(`${assetPath(id)}/neighbours`, query),
  graph: (query: Query) => withQuery(`${BASE}/graph`, query),
  columnGraph: (query: Query) => withQuery(`${BASE}/columns/graph`, query),
  paths: (query: Query) => withQuery(`${BASE}/paths`, query),
  impact: (query: Query) => withQuery(`${BASE}/impact`, query),
  events: (query: Query) => withQuery(`${BASE}/events`, query),
  event: (tenant: string, id: string) => withQuery(BASE + pathTo`/events/${id}`, { tenant }),
  deadLetters: (query: Query) => withQuery(`${BASE}/dead-letters`, query),
  replay: (tenant: string, id: string) => `${tenantPath(tenant) + pathTo`/dead-letters/${id}`}:replay`,
  replayAll: (tenant: string) => `${tenantPath(tenant)}/dead-letters:replay`,
  tasks: (tenant: string, query: Query) => withQuery(`${tenantPath(tenant)}/tasks`, query),
  task: (tenant: string, id: string) => tenantPath(tenant) + pathTo`/tasks/${id}`,
  resetTask: (tenant: string, id: string) => `${tenantPath(tenant) + pathTo`/tasks/${id}`}:reset`,
  cancelTask: (tenant: string, id: string) => `${tenantPath(tenant) + pathTo`/tasks/${id}`}:cancel`,
  resetTasks: (tenant: string) => `${tenantPath(tenant)}/tasks:reset`,
  batches: (tenant: string, query: Query) => withQuery(`${tenantPath(tenant)}/batches`, query),
} as const;
