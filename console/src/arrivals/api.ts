/** What the pages of arrivals read of the public API: paths, and the fields that they use. */
import type { RerunPolicy, Trigger } from "../../../src/arrivals/runs/states.ts";
import { pathTo, withQuery } from "../api/client.ts";

const BASE = "/api/v1/kpi";

export type Grain = "hour" | "day" | "month";

export interface CellsReply {
  grain: Grain | null;
  opTimes: readonly string[];
  /** There are opTimes after these. */
  later: boolean;
  rows: readonly { name: string; title: string | null; cells: string }[];
  next: string | null;
}

export interface Run {
  id: string;
  opTime: string;
  modelId: string;
  status: "RUNNING" | "SUCCESS" | "FAILED";
  startTime: string;
  endTime: string | null;
  message: string | null;
  computeCount: number | null;
  storageCount: number | null;
  generation: number;
  trigger: Trigger;
  causedBy: { table: string; opTime: string } | null;
  consumed: Readonly<Record<string, string>>;
  warnings: readonly string[];
  chainRunId: string | null;
  attempt: number;
  retryAt: string | null;
}

export interface ModelWhy {
  state: string;
  verdict: string;
  tables: readonly {
    table: string;
    opTime: string;
    optional: boolean;
    missing: boolean;
    deadline: string | null;
    arrivedAt: string | null;
    sequence: string | null;
    announcedBy: string | null;
    usualAt: string | null;
    consumedBy: { taskId: string; generation: number } | null;
  }[];
  runs: readonly Run[];
  wouldRun: readonly string[];
  computed: readonly { kpiId: string; missing: readonly string[] }[];
}

export interface TableWhy {
  arrival: {
    arrivalTime: string;
    firstTime: string;
    arrivals: number;
    sequence: string;
    announcedBy: string | null;
  } | null;
  usualAt: string | null;
  models: readonly {
    modelId: string;
    opTime: string;
    optional: boolean;
    deadline: string | null;
    state: string;
    last: Run["status"] | null;
  }[];
  more: number;
}

export interface SeriesReply {
  kpis: readonly {
    kpiId: string;
    name: string;
    modelId: string | null;
    lines: readonly {
      dimensions: Readonly<Record<string, string | number | boolean | null>>;
      opTimes: readonly string[];
      values: readonly (number | null)[];
    }[];
    moreLines: number;
  }[];
  moreKpis: number;
}

export interface Backfill {
  runs: number;
  items: readonly { opTime: string; runs: boolean; missing: readonly string[] }[];
}

export interface Model {
  modelId: string;
  name: string;
  description: string | null;
  state: number;
  engine: string | null;
  sql: string | null;
  chain: string | null;
  dependencies: readonly {
    table: string;
    optional: boolean;
    quietSeconds: number;
    deadline: string | null;
    grain: Grain | null;
    offset: number;
  }[];
  kpis: readonly string[];
  grain: Grain | null;
  timeZone: string;
  produces: string | null;
  rerun: RerunPolicy;
  timeoutSeconds: number;
  retry: { maxAttempts: number; backoffMs?: number } | null;
  version: number;
}

export interface Kpi {
  kpiId: string;
  type: "EXTENDED" | "COMPUTED";
  name: string;
  expression: string | null;
  dependsOn: readonly string[];
  modelId: string | null;
}

export interface KpiValue {
  opTime: string;
  valueText: string;
  dimensions: Readonly<Record<string, unknown>>;
  modelId: string | null;
  generation: number;
  updatedAt: string;
}

export type DeliveryStatus = "PENDING" | "SENDING" | "DELIVERED" | "FAILED" | "CANCELLED";
export interface Delivery {
  id: string;
  event: string;
  callbackUrl: string | null;
  alert: string | null;
  subscriptionIds: readonly number[];
  modelId: string | null;
  opTime: string | null;
  status: DeliveryStatus;
  attempts: number;
  nextAttemptAt: string | null;
  statusCode: number | null;
  error: string | null;
  createdAt: string;
  durationMs: number | null;
  kpiIds: readonly string[];
  endpoint: Endpoint;
}
/** The state of a receiver. */
export interface Endpoint {
  heldUntil: string | null;
  failingSince: string | null;
  disabledReason: string | null;
}
export interface DeliveryDetail extends Delivery {
  payload: unknown;
  request: { method: string; url: string | null; headers: Readonly<Record<string, string>> };
  log: readonly {
    attempt: number;
    at: string;
    durationMs: number;
    statusCode: number | null;
    error: string | null;
    answer: string | null;
  }[];
}
export interface Subscription extends Endpoint {
  id: number;
  kpiId: string;
  callbackUrl: string;
  teamName: string;
  secretType: "Header" | "Query" | "Body" | null;
  secretKey: string | null;
  retryNum: number;
  userId: string;
  status: "0" | "1";
  pending: number;
  disabledAt: string | null;
  createdAt: string;
}
export interface Tested {
  delivered: boolean;
  statusCode: number | null;
  error: string | null;
  answer: string | null;
  durationMs: number;
}
export interface Paged<Item> {
  items: readonly Item[];
  total: number;
}

type Query = Parameters<typeof withQuery>[1];
export const paths = {
  cells: (query: Query) => withQuery(`${BASE}/readiness/cells`, query),
  modelWhy: (modelId: string, opTime: string) => withQuery(`${model(modelId)}/why`, { opTime }),
  tableWhy: (table: string, opTime: string) => withQuery(`${BASE}/arrivals/why`, { table, opTime }),
  series: (query: Query) => withQuery(`${BASE}/series`, query),
  models: (query: Query) => withQuery(`${BASE}/models`, query),
  model,
  run: (modelId: string) => `${model(modelId)}:run`,
  retry: (modelId: string) => `${model(modelId)}:retry`,
  backfill: (modelId: string) => `${model(modelId)}:backfill`,
  publish: (modelId: string, isPublished: boolean) => `${model(modelId)}:${isPublished ? "publish" : "unpublish"}`,
  runs: (modelId: string) => withQuery(`${BASE}/task-logs`, { modelId, size: 50 }),
  kpis: (query: Query) => withQuery(`${BASE}/indicators`, query),
  kpi: (kpiId: string) => BASE + pathTo`/indicators/${kpiId}`,
  values: (kpiId: string) => withQuery(`${BASE}/data`, { kpiId, order: "desc", size: 1_000 }),
  deliveries: (query: Query) => withQuery(`${BASE}/deliveries`, query),
  delivery: (id: string) => BASE + pathTo`/deliveries/${id}`,
  redeliver: (id: string) => `${BASE + pathTo`/deliveries/${id}`}:redeliver`,
  recover: (isDry: boolean) => withQuery(`${BASE}/deliveries:recover`, { dryRun: isDry ? true : undefined }),
  subscriptions: (query: Query) => withQuery(`${BASE}/subscriptions`, query),
  newSubscription: `${BASE}/subscriptions`,
  subscription,
  testSubscription: (id: string) => `${subscription(id)}:test`,
  rotateKey: (id: string) => `${subscription(id)}:rotate`,
} as const;

function model(modelId: string): string {
  return BASE + pathTo`/models/${modelId}`;
}

function subscription(id: number | string): string {
  return BASE + pathTo`/subscriptions/${id}`;
}
