/** What the pages of harvest read of the public API: paths, and the fields that they use. */
import { pathTo, withQuery } from "../api/client.ts";

const BASE = "/api/v1/harvest";
/** The longest reason that a person can give. */
export const REASON_MAX = 2_000;

export type PlanStatus = "DRAFT" | "SLICING" | "READY" | "PARTIAL" | "COMPLETE" | "FAILED" | "CANCELLED";
export type SliceStatus = "READY" | "COMPLETE" | "INCOMPLETE" | "SPLIT" | "FAILED" | "CANCELLED";
export type TaskStatus = "QUEUED" | "EXECUTING" | "SUCCEEDED" | "PARTIAL" | "FAILED" | "CANCELLED";
export type RunStatus = "RUNNING" | "SUCCEEDED" | "PARTIAL" | "FAILED" | "CANCELLED";

export interface TimeWindow {
  from: string;
  to: string;
}

export interface SourceSummary {
  source: string;
  name: string;
  revision: number;
  endpoints: number;
  nextAt: string | null;
  openPlans: number;
  lastPlan: {
    planId: string;
    status: PlanStatus;
    createdAt: string;
    endedAt: string | null;
    reason: string | null;
  } | null;
  missingWindows: number;
  watermark: { namespace: string; at: string; closedUntil: string; lagSeconds: number } | null;
  waiting: { reason: string; tasks: number; until: string } | null;
  gates: readonly {
    key: string;
    ratePerSec: number;
    currentRatePerSec: number;
    cooldownUntil: string | null;
    quotaUsed: number | null;
  }[];
}

interface PaceSums {
  runs: number;
  failed: number;
  running: number;
  requests: number;
  throttled: number;
  records: number;
  busyMs: number;
  waitMs: number;
  answerMs: number;
}
export interface Pace extends PaceSums {
  since: string;
  hours: number;
  bucketSec: number;
  buckets: readonly ({ at: string } & PaceSums)[];
  parked: readonly { reason: string; times: number; ms: number }[];
  failures: readonly { runId: number; planId: string; sliceId: number; at: string; reason: string | null }[];
}

export interface Gate {
  key: string;
  declaredBy: "operator" | "source" | null;
  ratePerSec: number;
  burst: number;
  concurrency: number | null;
  headerRatePerSec: number | null;
  headerConcurrency: number | null;
  currentRatePerSec: number;
  lastCutAt: string | null;
  cooldownUntil: string | null;
  backlogMs: number;
  slotsTaken: number;
  quotas: readonly {
    unit: "requests" | "credits" | "usd_micros";
    windowSec: number;
    limit: number;
    heldBack: number;
    used: number;
    resetAt: string;
  }[];
  waiting: number;
}

export interface Stretch extends TimeWindow {
  kind: "complete" | "accepted" | "open" | "gap" | "none";
  planId: string | null;
  sliceId: number | null;
  reason: string | null;
}
export interface Coverage extends TimeWindow {
  endpoint: string;
  namespace: string;
  operation: Operation;
  watermark: string | null;
  movedAt: string | null;
  closedUntil: string;
  lagSeconds: number | null;
  stretches: readonly Stretch[];
  cut: boolean;
}
/** How far an operation has come. */
export interface Cursor {
  namespace: string;
  operation: Operation;
  value: string;
  updatedAt: string;
}
/** An advance or a rewind of a watermark, or a gap that holds it back. */
export interface CursorEvent {
  at: string;
  kind: "advance" | "rewind" | "gap" | "accepted";
  from: string | null;
  to: string;
  planId: string | null;
  sliceId: number | null;
  by: string | null;
  reason: string | null;
}
export interface Rewound extends TimeWindow {
  /** Complete slices that will be harvested once more. */
  slices: number;
}

export const OPERATIONS = ["HARVEST", "BACKFILL", "UPDATE"] as const;
export type Operation = (typeof OPERATIONS)[number];
/** Null is all. */
export interface Pause {
  source: string;
  endpoint: string | null;
  operation: Operation | null;
  at: string;
  by: string;
  reason: string | null;
  /** Made by Millrace, since access to the endpoint is refused. */
  automatic: boolean;
}
type Verdict = "ok" | "warn" | "fail";
export interface ConnectionCheck {
  endpoint: string;
  verdict: Verdict;
  lines: readonly {
    name: "address" | "connection" | "credential" | "page" | "detail" | "clock" | "rate";
    verdict: Verdict;
    found: string;
    advice: string | null;
  }[];
}
export interface Why {
  causes: readonly { code: string; sentence: string; since: string | null; until: string | null }[];
}

export interface Plan {
  planId: string;
  status: PlanStatus;
  source: string;
  endpoint: string;
  operation: Operation;
  window: TimeWindow | null;
  priority: number;
  createdAt: string;
  endedAt: string | null;
  /** Why no task of it starts. */
  paused: string | null;
  remarks: { reason?: string };
}
interface Counts {
  expected: number | null;
  received: number;
  repeated: number;
  inserted: number;
  updated: number;
  unchanged: number;
  deleted: number;
  quarantined: number;
  missing: number;
}
export interface PlanDetail extends Plan {
  namespace: string;
  unslicedFrom: string | null;
  slices: Partial<Record<SliceStatus, number>>;
  tasks: Partial<Record<TaskStatus, number>>;
  reconciliation: Counts & { gaps: number; acceptedGaps: number };
  divided: readonly {
    sliceId: number;
    window: TimeWindow | null;
    expected: number | null;
    by: readonly string[];
    parts: Partial<Record<SliceStatus, number>>;
  }[];
  waits: readonly { reason: string; tasks: number; until: string | null }[];
  landing: {
    /** Null: the lake. */
    engine: string | null;
    table: string;
    windows: Partial<Record<"PENDING" | "LANDING" | "LANDED" | "FAILED", number>>;
    obstacle: string | null;
    grain: "hour" | "day";
    /** Windows that do not land because only a part of them is harvested. */
    partial: readonly string[];
  } | null;
}
/** What was expected before all records had come, and by what. */
export interface Estimate {
  records: number;
  basis: "TOTAL" | "HINT" | "SAMPLE" | "HISTORY";
}
export type PartRange =
  | { from: string | number; until: string | number }
  | { value: string }
  | { values: readonly string[] }
  | { rest: string };
/** A range of each dimension that a slice is divided by. */
export type Part = Readonly<Record<string, PartRange>>;
export interface Division {
  by: string;
  parts: number;
  first: readonly { name: string; records: number | null }[];
  isKnown: boolean;
}
export interface LadderStep {
  name: string;
  type: string;
  kind: "halves" | "list";
  parts: readonly string[];
  count: number;
}
export interface Slice extends Counts {
  sliceId: number;
  parentSliceId: number | null;
  /** Of a part: the slice that has its window. */
  rootSliceId: number | null;
  number: number;
  window: TimeWindow | null;
  part: Part | null;
  estimate: Estimate | null;
  status: SliceStatus;
  reason: string | null;
  generation: number;
  batches: number;
  accepted: { at: string; by: string; reason: string } | null;
  createdAt: string;
  endedAt: string | null;
}
export interface Run {
  runId: number;
  attempt: number;
  status: RunStatus;
  stats: {
    reqCount?: number;
    retryCount?: number;
    "429Count"?: number;
    waitTotalMs?: number;
    avgLatencyMs?: number;
    pagesVisited?: number;
    retCount?: number;
    restarts?: readonly string[];
  };
  error: string | null;
  startedAt: string;
  endedAt: string | null;
}
export interface Task {
  taskId: number;
  status: TaskStatus;
  attempts: number;
  lost: number;
  waitReason: string | null;
  scheduledAt: string | null;
  error: string | null;
  runs: readonly Run[];
}
export interface SliceDetail extends Slice {
  tasks: readonly Task[];
}
export interface PlanRun {
  runId: number;
  sliceId: number;
  slice: number;
  attempt: number;
  status: RunStatus;
  error: string | null;
  startedAt: string;
  endedAt: string | null;
}
export interface Batch {
  generation: number;
  number: number;
  phase: number;
  request: { method?: string; url?: string };
  response: { status?: number; bytes?: number; rate?: { waitMs?: number } };
  stats: { items?: number; received?: number; latencyMs?: number; retries?: number };
  createdAt: string;
}

export interface Source {
  source: string;
  baseUrlOverride: string | null;
  revision: number;
  updatedAt: string;
  updatedBy: string;
  definition: Readonly<Record<string, unknown>> & {
    endpoints: Readonly<Record<string, { role?: string; default?: boolean; params?: readonly Param[] }>>;
  };
}
export interface Param {
  name: string;
  required?: boolean;
  pattern?: string;
}
export interface Draft {
  planId: string | null;
  endpoint: string;
  window: TimeWindow | null;
  priority: number;
  slices: number;
  notes: readonly string[];
  warnings: readonly { field?: string; reason?: string }[];
  estimate: Estimate | null;
  windows?: readonly (TimeWindow & {
    bounds: { from: string; until: string; to: string };
    estimate: Estimate | null;
    division: Division | null;
  })[];
  parts?: readonly Part[];
  limits?: { cap: number | null; slice: number | null };
  ladder?: readonly LadderStep[];
}
export interface Schedule {
  scheduleId: number;
  name: string;
  endpoint: string;
  operation: Operation;
  cron: string;
  timeZone: string;
  paused: boolean;
  nextAt: string | null;
  /** Why it does not fire although it is on. */
  held: string | null;
  lastAt: string | null;
  last: { planId?: string; status?: PlanStatus; nothing?: string; refused?: string } | null;
}

export type QuarantineCode = "MISSING_ID" | "BAD_TIME" | "MISSING_FIELD" | "ILLEGAL_VALUE" | "TOO_LARGE";
export interface QuarantineGroup {
  endpoint: string;
  code: QuarantineCode;
  /** The path that failed. */
  expression: string | null;
  records: number;
  /** Of the newest. */
  reason: string;
  createdAt: string;
}
export interface QuarantineGroups {
  items: readonly QuarantineGroup[];
  countedMax: number;
  /** An endpoint has more than are counted. */
  cut: boolean;
}
export interface QuarantinedRecord {
  id: string;
  key: string | null;
  code: QuarantineCode;
  reason: string;
  expression: string | null;
  fragment: string;
  batch: { slice: number };
  createdAt: string;
  /** A record of its id has arrived since. */
  resolved: boolean;
}

/** One page of a long list. */
export interface Listed<Item, Next = string> {
  items: readonly Item[];
  next: Next | null;
}

type Query = Parameters<typeof withQuery>[1];
const sourceAt = (source: string) => BASE + pathTo`/sources/${source}`;
const planAt = (planId: string) => BASE + pathTo`/plans/${planId}`;
const registryAt = (source: string) => BASE + pathTo`/registry/sources/${source}`;
export const paths = {
  sources: (query: Query) => withQuery(`${BASE}/sources`, query),
  source: sourceAt,
  pace: (source: string, hours: number | undefined) => withQuery(`${sourceAt(source)}/pace`, { hours }),
  gates: (source: string) => `${sourceAt(source)}/gates`,
  coverage: (source: string, windows: number) => withQuery(`${sourceAt(source)}/coverage`, { windows }),
  cursors: (query: Query) => withQuery(`${BASE}/cursors`, query),
  timeline: (source: string, namespace: string, query: Query) =>
    withQuery(BASE + pathTo`/cursors/${source}/${namespace}/timeline`, query),
  rewind: (source: string, namespace: string, isDry: boolean) =>
    withQuery(`${BASE + pathTo`/cursors/${source}/${namespace}`}:rewind`, { dryRun: isDry ? true : undefined }),
  pauses: (source: string | undefined) => withQuery(`${BASE}/pauses`, { source }),
  pause: (source: string) => `${sourceAt(source)}:pause`,
  resume: (source: string) => `${sourceAt(source)}:resume`,
  check: (source: string) => `${sourceAt(source)}:check`,
  schedules: (source: string) => withQuery(`${BASE}/schedules`, { source }),
  schedule: (scheduleId: number, action: "pause" | "resume") => `${BASE + pathTo`/schedules/${scheduleId}`}:${action}`,
  definition: registryAt,
  apply: (source: string, baseUrl: string | null, revision: number) =>
    withQuery(registryAt(source), { baseUrl: baseUrl ?? undefined, revision }),
  validate: (baseUrl: string | null) =>
    withQuery(`${BASE}/registry/sources:validate`, { baseUrl: baseUrl ?? undefined }),
  diff: (baseUrl: string | null) => withQuery(`${BASE}/registry/sources:diff`, { baseUrl: baseUrl ?? undefined }),
  plans: (query: Query) => withQuery(`${BASE}/plans`, query),
  makePlan: (isDry: boolean) => withQuery(`${BASE}/plans`, { dryRun: isDry ? true : undefined }),
  plan: planAt,
  cancel: (planId: string) => `${planAt(planId)}:cancel`,
  slices: (planId: string, query: Query) => withQuery(`${planAt(planId)}/slices`, query),
  slice: (planId: string, sliceId: number) => planAt(planId) + pathTo`/slices/${sliceId}`,
  accept: (planId: string, sliceId: number) => `${planAt(planId) + pathTo`/slices/${sliceId}`}:accept`,
  cancelSlice: (planId: string, sliceId: number) => `${planAt(planId) + pathTo`/slices/${sliceId}`}:cancel`,
  cancelTask: (taskId: number) => `${BASE + pathTo`/tasks/${taskId}`}:cancel`,
  why: (planId: string, sliceId: number) => `${planAt(planId) + pathTo`/slices/${sliceId}`}/why`,
  runs: (planId: string, limit: number) => withQuery(`${planAt(planId)}/runs`, { limit }),
  batches: (runId: number, query: Query) => withQuery(BASE + pathTo`/runs/${runId}/batches`, query),
  quarantine: (query: Query) => withQuery(`${BASE}/quarantine`, query),
  quarantineGroups: (source: string) => withQuery(`${BASE}/quarantine/groups`, { source }),
  openGate: (key: string) => `${pathTo`/api/v1/gates/${key}`}:open`,
} as const;
