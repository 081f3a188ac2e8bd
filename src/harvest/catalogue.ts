/**
 * The settings, errors, metrics, scopes, hints and tags that harvest adds to the catalogues of Millrace. It loads no package, because
 * the CLI reads it too.
 */
import type { Catalogue } from "../kernel/catalogue.ts";
import { hostPorts } from "../kernel/config/kinds.ts";
import { errorsOf } from "../kernel/errors.ts";
import type { Hints } from "../kernel/hints/hints.ts";
import type { Metrics } from "../kernel/telemetry/metrics.ts";

/** The specification counts latencies in milliseconds. */
const MILLISECONDS = [5, 10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 30_000, 120_000];
/** The labels of most metrics; `op` is the operation. */
const PARTITION = ["source", "endpoint", "op"] as const;

export const CATALOGUE = {
  name: "harvest",
  settings: {
    allowPrivate: {
      env: "MILLRACE_HARVEST_ALLOW_PRIVATE",
      flag: "harvest-allow-private",
      kind: hostPorts,
      default: "",
      description:
        "Hosts with their port that sources may call although they are private or have no TLS, such as localhost:8080.",
    },
  },
  errors: {
    SOURCE_NOT_FOUND: { status: 404, sentence: "There is no source {source}.{hint}" },
    REVISION_CONFLICT: {
      status: 409,
      sentence:
        "The source {source} has the revision {revision} by now, and this definition was made from revision {yours}.",
    },
    SOURCE_IN_USE: {
      status: 409,
      sentence: "The source {source} cannot be deleted: {because}. Remove its schedules to stop harvesting it.",
    },
    ENDPOINT_NOT_FOUND: { status: 404, sentence: "The source {source} has no endpoint {endpoint}.{hint}" },
    PLAN_NOT_FOUND: { status: 404, sentence: "There is no plan {id}." },
    PLAN_ENDED: { status: 409, sentence: "Plan {id} cannot be cancelled: it is {status}." },
    HARVEST_SLICE_NOT_FOUND: { status: 404, sentence: "The plan {plan} has no slice {id}." },
    HARVEST_SLICE_NO_GAP: {
      status: 409,
      sentence:
        "Slice {id} is {status}. Only a gap can be accepted: a slice that is FAILED or INCOMPLETE, or that was cancelled without its plan.{hint}",
    },
    HARVEST_SLICE_IS_PART: {
      status: 409,
      sentence: "Slice {id} is a part of slice {whole}, which is the gap: accept that one.",
    },
    HARVEST_SLICE_ENDED: { status: 409, sentence: "Slice {id} cannot be cancelled: it is {status}.{hint}" },
    HARVEST_TASK_ENDED: { status: 409, sentence: "Task {id} cannot be cancelled: it is {status}." },
    HARVEST_CURSOR_NOT_FOUND: {
      status: 404,
      sentence: "The source {source} has no cursor of {operation} for {namespace}.{hint}",
    },
    HARVEST_CURSOR_BEHIND: {
      status: 409,
      sentence:
        "The cursor is at {value}, and {to} is not before it. It moves forward by itself, when slices complete.",
    },
    HARVEST_NOTHING_TO_PLAN: { status: 409, sentence: "There is nothing to plan. {reason}." },
    HARVEST_TASK_NOT_FOUND: { status: 404, sentence: "There is no task {id}." },
    HARVEST_RUN_NOT_FOUND: { status: 404, sentence: "There is no run {id} of a task." },
    HARVEST_SCHEDULE_NOT_FOUND: { status: 404, sentence: "There is no schedule {id} of a source." },
    DEFINITION_INVALID: { status: 400, sentence: "The definition of {source} cannot be used: {reason}" },
  },
  metrics: {
    patra_ingest_batches_total: { kind: "counter", help: "Pages that were committed.", labels: PARTITION },
    patra_ingest_items_total: {
      kind: "counter",
      help: "Records of committed pages by action: insert, update, skip, delete, quarantine.",
      labels: [...PARTITION, "action"],
    },
    patra_ingest_batch_latency_ms: {
      kind: "histogram",
      help: "Milliseconds from the request of a page to its commit.",
      labels: PARTITION,
      buckets: MILLISECONDS,
    },
    patra_ingest_http_latency_ms: {
      kind: "histogram",
      help: "Milliseconds of a request, to the last byte of the response.",
      labels: PARTITION,
      buckets: MILLISECONDS,
    },
    patra_ingest_errors_total: {
      kind: "counter",
      help: "Failed requests by level: L1 transient, L2 of the request, L3 of data, L4 of access.",
      labels: [...PARTITION, "level"],
    },
    patra_ingest_429_total: { kind: "counter", help: "Requests that the source throttled.", labels: PARTITION },
    patra_ingest_retries_total: { kind: "counter", help: "Requests that were sent again.", labels: PARTITION },
    patra_ingest_executor_concurrency: {
      kind: "gauge",
      help: "Tasks that run in this process.",
      labels: [],
    },
    patra_ingest_cursor_advance_events_total: {
      kind: "counter",
      help: "Advances of cursors.",
      labels: ["direction"],
    },
    patra_ingest_cursor_lag_seconds: {
      kind: "gauge",
      help: "From the watermark to the last instant that could be harvested by now; 0 for a source of days on the day after. For BACKFILL, from its cursor back to the earliest record of the source. The same in all processes.",
      labels: PARTITION,
    },
    patra_ingest_missing_windows: {
      kind: "gauge",
      help: "Windows that ended FAILED or INCOMPLETE or were cancelled without their plan, and that nobody has accepted and nothing has completed since, so that the watermark does not pass them. The same in all processes.",
      labels: PARTITION,
    },
    patra_ingest_plans_ended_total: {
      kind: "counter",
      help: "Plans that ended, by status: COMPLETE, FAILED, CANCELLED.",
      labels: [...PARTITION, "status"],
    },
  },
  scopes: { "harvest:read": {}, "harvest:write": {}, "harvest:control": {} },
  hints: {
    source: {
      scope: "harvest:read",
      id: "`source`",
      help: "Its definition or one of its schedules changed, or one fired.",
    },
    plan: {
      scope: "harvest:read",
      id: "`planId`",
      help: "It was created, sliced, cancelled or ended, or its slices, tasks, runs or batches changed.",
    },
    cursor: { scope: "harvest:read", id: "`source/namespace`", help: "Its watermark moved." },
  },
  tags: { harvest: "Sources, plans, records and cursors" },
} as const satisfies Catalogue;

export const harvestError = errorsOf(CATALOGUE.errors);
export type HarvestHints = Hints<typeof CATALOGUE.hints>;
export type HarvestMetrics = Metrics<typeof CATALOGUE.metrics>;
