/** The API of definitions under `/api/v1/chains`: validate, call one use case, shape the reply. */
import { actionPath } from "../../kernel/http/action-path.ts";
import { DryRunQuery, errors, NoBody } from "../../kernel/http/schemas.ts";
import { actorOf, type Http } from "../../kernel/http/server.ts";
import { grainOf, opTimesBetween } from "../../kernel/time/op-time.ts";
import { chainsError } from "../catalogue.ts";
import type { Chains } from "../chains.ts";
import { chainIdOf } from "../ids.ts";
import * as schemas from "../schemas.ts";
import type { ChainRow, ChainSummaryRow, VersionRow } from "../store/definitions.ts";
import type { ChainOverviewRow } from "../store/summaries.ts";
import { DAG_BYTES_MAX } from "./dag.ts";

const BACKFILL_AT_ONCE = 500;
/** A body with a DAG of the largest size: as JSON text, its quotes and possibly its letters are escaped. */
const DAG_BODY_BYTES_MAX = 4 * DAG_BYTES_MAX;

export function chainRoutes(http: Http, { chains }: { chains: Chains }): void {
  const { definitions, runs } = chains;
  const read = { scope: "chain:read" } as const;
  const write = { scope: "chain:write" } as const;
  const start = { scope: "run:write", bodyOptional: true } as const;
  const tags = ["chains"];

  http.post(
    "/chains",
    {
      config: write,
      bodyLimit: DAG_BODY_BYTES_MAX,
      schema: {
        tags,
        summary: "Create a chain; with `dryRun`, only check it",
        querystring: DryRunQuery,
        body: schemas.CreateChainBody,
        response: { 200: schemas.ChainOrVerdict, ...errors(400) },
      },
    },
    async (request) => {
      const { body, query } = request;
      const chain = await definitions.create(body, actorOf(request), query);
      return query.dryRun ? { valid: true, nodes: chain.dag.nodes.length } : chainReply(chain);
    },
  );

  http.put(
    "/chains/:chainId",
    {
      config: write,
      bodyLimit: DAG_BODY_BYTES_MAX,
      schema: {
        tags,
        summary: "Update a chain from the version that was read; makes the next version",
        params: schemas.ChainParams,
        querystring: DryRunQuery,
        body: schemas.UpdateChainBody,
        response: { 200: schemas.ChainDetail, ...errors(400, 409) },
      },
    },
    async (request) => {
      const { params, query, body } = request;
      return chainReply(await definitions.update(chainIdOf(params), body, actorOf(request), query));
    },
  );

  http.delete(
    "/chains/:chainId",
    {
      config: write,
      schema: {
        tags,
        summary:
          "Delete a chain with its versions and schedules; refused while runs of it are kept or another chain runs it",
        params: schemas.ChainParams,
        querystring: DryRunQuery,
        response: { 200: schemas.DeletedChain, ...errors(400, 409) },
      },
    },
    async (request) => {
      const { params, query } = request;
      const chainId = chainIdOf(params);
      const { name } = await definitions.remove(chainId, actorOf(request), query);
      return { chainId, name, dryRun: query.dryRun };
    },
  );

  for (const enabled of [true, false]) {
    const action = enabled ? "enable" : "disable";
    http.post(
      actionPath("/chains/:chainId", action),
      {
        config: { ...write, bodyOptional: true },
        schema: {
          tags,
          summary: enabled
            ? "Enable a chain: it can start runs"
            : "Disable a chain: it starts no more runs; those under way continue",
          params: schemas.ChainParams,
          querystring: DryRunQuery,
          body: NoBody,
          response: { 200: schemas.ChainDetail, ...errors(400) },
        },
      },
      async (request) => {
        const { params, query } = request;
        return chainReply(await definitions.setEnabled(chainIdOf(params), enabled, actorOf(request), query));
      },
    );
  }

  http.get(
    "/chains",
    {
      config: read,
      schema: {
        tags,
        summary: "List chains by name",
        querystring: schemas.ChainsQuery,
        response: { 200: schemas.ChainsReply, ...errors(400) },
      },
    },
    async ({ query: { page, size, keyword = "", enabled, name } }) => {
      const filter = { keyword, enabled: typeof enabled === "boolean" ? enabled : null, name: name ?? null };
      const { items, total } = await definitions.list(filter, { size, offset: (page - 1) * size });
      return { items: items.map(summaryReply), page, size, total };
    },
  );

  http.get(
    "/chains/summaries",
    {
      config: read,
      schema: {
        tags,
        summary: "List chains by name with their last runs, what starts them and how long they take",
        querystring: schemas.ChainSummariesQuery,
        response: { 200: schemas.ChainSummariesReply, ...errors(400) },
      },
    },
    async ({ query: { page, size, keyword = "" } }) => {
      const { items, total } = await definitions.summaries(keyword, { size, offset: (page - 1) * size });
      return { items: items.map(overviewReply), page, size, total };
    },
  );

  http.get(
    "/chains/:chainId",
    {
      config: read,
      schema: {
        tags,
        summary: "Show a chain",
        params: schemas.ChainParams,
        response: { 200: schemas.ChainDetail, ...errors(400) },
      },
    },
    async ({ params }) => chainReply(await definitions.get(chainIdOf(params))),
  );

  http.get(
    "/chains/:chainId/versions",
    {
      config: read,
      schema: {
        tags,
        summary: "List the versions of a chain, newest first, without their DAGs",
        params: schemas.ChainParams,
        querystring: schemas.VersionsQuery,
        response: { 200: schemas.VersionsReply, ...errors(400) },
      },
    },
    async ({ params, query: { before, limit } }) => {
      const rows = await definitions.versions(chainIdOf(params), { before: before ?? null, limit });
      return { items: rows.map(versionReply), next: rows.length === limit ? (rows.at(-1)?.version ?? null) : null };
    },
  );

  http.get(
    "/chains/:chainId/versions/:version",
    {
      config: read,
      schema: {
        tags,
        summary: "Show one version of a chain, with its DAG",
        params: schemas.VersionParams,
        response: { 200: schemas.VersionReply, ...errors(400) },
      },
    },
    async ({ params }) => {
      const row = await definitions.version(chainIdOf(params), params.version);
      return { ...versionReply(row), dagJson: JSON.stringify(row.dag), dag: row.dag };
    },
  );

  http.post(
    actionPath("/chains/:chainId", "start"),
    {
      config: start,
      schema: {
        tags,
        summary: "Start a run; with an Idempotency-Key a repeated request within 24 hours returns the same run",
        params: schemas.ChainParams,
        querystring: DryRunQuery,
        headers: schemas.StartHeaders,
        body: schemas.StartBody,
        response: { 200: schemas.StartReply, ...errors(400, 409) },
      },
    },
    async (request) => {
      const { params = {}, opTime = null, priority = 0 } = request.body ?? {};
      const key = request.headers["idempotency-key"];
      const asked = { params: params as Record<string, unknown>, opTime, priority, by: request.caller.name };
      const idempotent = key === undefined ? {} : { idempotencyKey: key };
      const chainId = chainIdOf(request.params);
      if (request.query.dryRun) {
        await runs.checkStart(chainId, { ...asked, ...idempotent });
        return { valid: true, nodes: (await definitions.get(chainId)).dag.nodes.length };
      }
      const { runId } = await runs.start(chainId, { ...asked, ...idempotent });
      return { runId };
    },
  );

  http.post(
    actionPath("/chains/:chainId", "backfill"),
    {
      config: { scope: "run:write" },
      schema: {
        tags,
        summary: "Start a run for each opTime of a range; with `dryRun`, only list them",
        params: schemas.ChainParams,
        querystring: DryRunQuery,
        body: schemas.BackfillBody,
        response: { 200: schemas.BackfillReply, ...errors(400, 409) },
      },
    },
    async (request) => {
      const { from, to, params = {}, priority = 0 } = request.body;
      const grain = request.body.grain ?? grainOf(from);
      if (grain === undefined) {
        const reason = `The grain of the range is unknown: \`from\` (\`${from}\`) is not of the form yyyyMMddHH, yyyyMMdd or yyyyMM`;
        throw chainsError("OP_TIME_RANGE", {}, { reason });
      }
      const opTimes = opTimesBetween(from, to, grain);
      const chainId = chainIdOf(request.params);
      await definitions.get(chainId);
      const made: { opTime: string; runId: string }[] = [];
      if (request.query.dryRun || request.body.dryRun) return { opTimes, runs: made };
      const asked = {
        params: params as Record<string, unknown>,
        priority,
        trigger: "backfill",
        by: request.caller.name,
      } as const;
      for (let at = 0; at < opTimes.length; at += BACKFILL_AT_ONCE) {
        const part = opTimes.slice(at, at + BACKFILL_AT_ONCE);
        const runIds = await runs.startMany(
          chainId,
          part.map((opTime) => ({ ...asked, opTime })),
        );
        made.push(...part.map((opTime, index) => ({ opTime, runId: runIds[index] ?? "" })));
      }
      return { opTimes, runs: made };
    },
  );
}

function common(row: Omit<ChainRow, "dag">) {
  return {
    chainId: row.chain_id,
    name: row.name,
    description: row.description,
    enabled: row.enabled,
    version: row.version,
    maxActiveRuns: row.max_active_runs,
    runTimeoutMs: row.run_timeout_ms,
    createdAt: row.created_at,
    updatedAt: row.updated_at,
  };
}

function chainReply(row: ChainRow) {
  return { ...common(row), dagJson: JSON.stringify(row.dag), dag: row.dag };
}

function overviewReply({ chain_id, node_count, next_at, next_name, waits_for, percentiles, ...row }: ChainOverviewRow) {
  const [p50Ms = null, p95Ms = null] = percentiles ?? [];
  const next = next_at === null || next_name === null ? null : { at: next_at, name: next_name };
  return { ...row, chainId: chain_id, nodeCount: node_count, next, waitsFor: waits_for, p50Ms, p95Ms };
}

function summaryReply(row: ChainSummaryRow) {
  return { ...common(row), nodeCount: row.node_count, lastRun: lastRunReply(row) };
}

function versionReply({ version, name, description, created_at, created_by }: VersionRow) {
  return { version, name, description, createdAt: created_at, createdBy: created_by };
}

/** Inside JSON, Postgres writes times in its own format. */
function lastRunReply({ last_run: run }: ChainSummaryRow) {
  return run && { ...run, createdAt: new Date(run.createdAt).toISOString() };
}
