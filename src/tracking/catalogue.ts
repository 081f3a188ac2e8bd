/**
 * The errors, metrics, scopes, hints and tags that tracking adds to the catalogues of Millrace. It loads no package, because the
 * CLI reads it too.
 */
import type { Catalogue } from "../kernel/catalogue.ts";
import { errorsOf } from "../kernel/errors.ts";
import type { Hints } from "../kernel/hints/hints.ts";
import type { Metrics } from "../kernel/telemetry/metrics.ts";

export const CATALOGUE = {
  name: "tracking",
  errors: {
    STAGE_UNKNOWN: { status: 400, sentence: "There is no stage `{stage}` here. Use one of {allowed}.{hint}" },
    TRANSITION_UNKNOWN: {
      status: 400,
      sentence: "Stage `{stage}` has no transition `{transition}`. Use one of {allowed}.{hint}",
    },
    FILE_NOT_FOUND: {
      status: 404,
      sentence: "File `{filename}` is not registered. Register it with POST /api/v1/pipeline/files/register.",
    },
    FILE_IN_WORK: {
      status: 409,
      sentence:
        "Workers hold {held} shards of file `{filename}`. Wait until they have finished, or their leases have expired.",
    },
    SHARD_NOT_FOUND: {
      status: 404,
      sentence: "File `{filename}` has no shard {shard}. Register it again with that shard to add it.",
    },
    WRONG_STATUS: {
      status: 409,
      sentence: "Cannot {verb} {stage} of {filename}, shard {shard}: it is `{status}`{because}.",
    },
    FILE_WRONG_STATUS: { status: 409, sentence: "Cannot {verb} event-ingest of {filename}: {because}." },
    LEASE_LOST: {
      status: 409,
      sentence: "The lease on {stage} of {filename}, shard {shard} is not yours: {because}.",
    },
  },
  metrics: {
    millrace_tracking_moves_total: {
      kind: "counter",
      help: "Moves of shards by outcome: moved, repeated, or the code of the refusal.",
      labels: ["stage", "transition", "outcome"],
    },
    millrace_tracking_claimed_total: { kind: "counter", help: "Shards handed out by claims.", labels: ["stage"] },
  },
  scopes: { "pipeline:read": {}, "pipeline:write": {} },
  hints: {
    file: {
      scope: "pipeline:read",
      id: "`filename`",
      help: "It was registered or deleted, or some of its shards were claimed, moved or released.",
    },
  },
  tags: {
    pipeline: "Files and shards in the stages of the pipeline",
  },
} as const satisfies Catalogue;

export const trackingError = errorsOf(CATALOGUE.errors);
export type TrackingHints = Hints<typeof CATALOGUE.hints>;
export type TrackingMetrics = Metrics<typeof CATALOGUE.metrics>;
