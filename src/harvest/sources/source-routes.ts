/** The API about the state of sources, under `/api/v1/harvest/sources`: their health, where their time goes, what is missing. */
import type { Db } from "../../kernel/data/db.ts";
import { gateReply } from "../../kernel/gate/gate-reply.ts";
import type { Gates } from "../../kernel/gate/gates.ts";
import { errors } from "../../kernel/http/schemas.ts";
import type { Http } from "../../kernel/http/server.ts";
import type { Clock } from "../../kernel/time/clock.ts";
import type { Registry } from "../definition/registry.ts";
import { lagSecondsOf } from "../plan/reads.ts";
import { SourceParams } from "../registry-schemas.ts";
import type { PaceRow } from "../store/sources/pace.ts";
import { type Coverage, readCoverage } from "./coverage.ts";
import { type Pace, readPace } from "./pace.ts";
import * as schemas from "./source-schemas.ts";
import { readSummaries, readWaitedGates, type Summary } from "./summaries.ts";

export interface SourceRoutesDeps {
  db: Db;
  clock: Clock;
  gates: Pick<Gates, "describe">;
  registry: Pick<Registry, "get">;
}

const read = { scope: "harvest:read" } as const;
const tags = ["harvest"];

export function sourceRoutes(http: Http, deps: SourceRoutesDeps): void {
  const { registry } = deps;

  http.get(
    "/sources",
    {
      config: read,
      schema: {
        tags,
        summary: "List sources with their health: last plan, watermark, missing windows, gates",
        querystring: schemas.SourcesQuery,
        response: { 200: schemas.SourcesReply, ...errors(400) },
      },
    },
    async ({ query: { q, page, size } }) => {
      const found = await readSummaries(deps, { q, source: undefined }, { size, offset: (page - 1) * size });
      return { items: found.items.map(summaryReply), page, size, total: found.total };
    },
  );

  http.get(
    "/sources/:source",
    {
      config: read,
      schema: {
        tags,
        summary: "Show the health of a source",
        params: SourceParams,
        response: { 200: schemas.SourceSummary, ...errors(400, 404) },
      },
    },
    async ({ params: { source } }) => {
      const [found] = (await readSummaries(deps, { q: undefined, source }, { size: 1, offset: 0 })).items;
      if (found) return summaryReply(found);
      await registry.get(source); // It names similar ones.
      throw new Error(`the source ${source} is there and has no summary`);
    },
  );

  http.get(
    "/sources/:source/gates",
    {
      config: read,
      schema: {
        tags,
        summary: "Show the rate gates that requests of a source pass, and what waits for them",
        params: SourceParams,
        response: { 200: schemas.GatesReply, ...errors(400, 404) },
      },
    },
    async ({ params: { source } }) => {
      await registry.get(source);
      const gates = await readWaitedGates(deps, source);
      return { items: gates.map(({ row, waiting }) => ({ ...gateReply(row), waiting })) };
    },
  );

  http.get(
    "/sources/:source/pace",
    {
      config: read,
      schema: {
        tags,
        summary: "Show where the time of a source goes: waiting at its gates, or for its answers",
        params: SourceParams,
        querystring: schemas.PaceQuery,
        response: { 200: schemas.PaceReply, ...errors(400, 404) },
      },
    },
    async ({ params: { source }, query: { hours } }) => {
      await registry.get(source);
      return paceReply(await readPace(deps, source, hours));
    },
  );

  http.get(
    "/sources/:source/coverage",
    {
      config: read,
      schema: {
        tags,
        summary: "Show which time of a source is harvested, missing or under way, for each watermark",
        params: SourceParams,
        querystring: schemas.CoverageQuery,
        response: { 200: schemas.CoverageReply, ...errors(400, 404) },
      },
    },
    async ({ params: { source }, query: { windows } }) => {
      await registry.get(source);
      return { items: (await readCoverage(deps, source, windows)).map(coverageReply) };
    },
  );
}

function summaryReply({ row, missing, watermark, gates }: Summary) {
  const { plan_id: planId, status_code: status, endpoint_name: endpoint, created_at: createdAt } = row;
  const hasPlan = planId !== null && status !== null && endpoint !== null && createdAt !== null;
  const { wait_reason: reason, wait_tasks: tasks, wait_until: until } = row;
  return {
    source: row.provenance_code,
    name: row.name,
    revision: row.revision,
    updatedAt: row.updated_at,
    endpoints: row.endpoints,
    nextAt: row.next_at,
    openPlans: row.open_plans,
    lastPlan: hasPlan
      ? {
          planId,
          status,
          endpoint,
          window: row.window_from && row.window_to ? { from: row.window_from, to: row.window_to } : null,
          createdAt,
          endedAt: row.ended_at,
          reason: row.reason,
        }
      : null,
    missingWindows: missing,
    watermark,
    waiting: reason !== null && tasks !== null && until !== null ? { reason, tasks, until } : null,
    gates: gates.map((gate) => ({
      key: gate.key,
      ratePerSec: gate.rate_per_sec,
      currentRatePerSec: gate.current_rate_per_sec,
      cooldownUntil: gate.cooldown_until,
      quotaUsed: gate.quotas.length === 0 ? null : Math.max(...gate.quotas.map(({ used, limit }) => used / limit)),
    })),
  };
}

function paceReply({ since, hours, bucketSec, rows, parked, failures }: Pace) {
  return {
    since,
    hours,
    bucketSec,
    ...sumOf(rows),
    buckets: rows.map(({ bucket, ...row }) => ({
      at: new Date(since.getTime() + bucket * bucketSec * 1_000),
      ...sumsReply(row),
    })),
    parked,
    failures: failures.map(({ run_id, plan_id, slice_id, ended_at, error }) => ({
      runId: Number(run_id),
      planId: plan_id,
      sliceId: Number(slice_id),
      at: ended_at,
      reason: error,
    })),
  };
}

type Sums = Omit<PaceRow, "bucket">;

function sumsReply({ busy_ms, wait_ms, answer_ms, ...counts }: Sums) {
  return { ...counts, busyMs: busy_ms, waitMs: wait_ms, answerMs: answer_ms };
}

function sumOf(rows: readonly PaceRow[]) {
  const total = (name: keyof Sums) => rows.reduce((sum, row) => sum + row[name], 0);
  return {
    runs: total("runs"),
    failed: total("failed"),
    running: total("running"),
    requests: total("requests"),
    throttled: total("throttled"),
    records: total("records"),
    busyMs: total("busy_ms"),
    waitMs: total("wait_ms"),
    answerMs: total("answer_ms"),
  };
}

function coverageReply({ row, closedUntil, from, to, stretches, isCut }: Coverage) {
  const { watermark } = row;
  return {
    endpoint: row.endpoint_name,
    namespace: row.namespace_key,
    operation: row.operation_code,
    watermark,
    movedAt: row.moved_at,
    closedUntil,
    lagSeconds: lagSecondsOf({ ...row, normalized_instant: watermark }, closedUntil),
    from,
    to,
    stretches,
    cut: isCut,
  };
}
