/** The API of models: define, publish, run, backfill, and explain. */

import type { Db } from "../../kernel/data/db.ts";
import { actionPath } from "../../kernel/http/action-path.ts";
import { DryRunQuery, errors, NoBody } from "../../kernel/http/schemas.ts";
import { actorOf, type Http } from "../../kernel/http/server.ts";
import { systemClock } from "../../kernel/time/clock.ts";
import * as actions from "../action-schemas.ts";
import type { Arrivals } from "../arrivals.ts";
import { endOf, prefersAsync } from "../open-routes.ts";
import { modelReply, taskReply } from "../replies.ts";
import * as schemas from "../schemas.ts";
import type { ArrivalsSettings } from "../settings.ts";
import { explain } from "./why.ts";

export interface ModelRoutesDeps {
  db: Db;
  arrivals: Arrivals;
  settings: ArrivalsSettings;
}

/** Enough for SQL of the maximum length in any script. */
const MODEL_BODY_BYTES_MAX = 8 * 1_048_576;

export function modelRoutes(http: Http, { db, arrivals, settings }: ModelRoutesDeps): void {
  const { models, requests, runWaiters } = arrivals;
  const read = { scope: "kpi:read" } as const;
  const write = { scope: "kpi:write" } as const;
  const tags = ["models"];

  http.get(
    "/models",
    {
      config: read,
      schema: {
        tags,
        summary: "List models",
        querystring: schemas.ModelsQuery,
        response: { 200: schemas.ModelsReply, ...errors(400) },
      },
    },
    async ({ query: { q = null, state = null, page, size } }) => {
      const { items, total } = await models.list({ q, state, page, size });
      return { items: items.map(modelReply), page, size, total };
    },
  );

  http.put(
    "/models/:modelId",
    {
      config: write,
      bodyLimit: MODEL_BODY_BYTES_MAX,
      schema: {
        tags,
        summary: "Create or replace a model; a new one is not published; with `dryRun`, only check it",
        params: schemas.ModelPutParams,
        querystring: DryRunQuery,
        body: schemas.ModelBody,
        response: { 200: schemas.ModelReply, 201: schemas.ModelReply, ...errors(400, 409) },
      },
    },
    async (request, reply) => {
      const { params, body, query } = request;
      const { model, created } = await models.put(params.modelId, body, actorOf(request), query);
      return reply.code(created && !query.dryRun ? 201 : 200).send(modelReply(model));
    },
  );

  http.get(
    "/models/:modelId",
    {
      config: read,
      schema: {
        tags,
        summary: "Show a model",
        params: schemas.ModelParams,
        response: { 200: schemas.ModelReply, ...errors(400, 404) },
      },
    },
    async ({ params }) => modelReply(await models.get(params.modelId)),
  );

  http.delete(
    "/models/:modelId",
    {
      config: write,
      schema: {
        tags,
        summary: "Delete a model, its values and what was computed from them; the log of its runs stays",
        params: schemas.ModelParams,
        querystring: DryRunQuery,
        response: { 200: schemas.ModelReply, ...errors(400, 404, 409) },
      },
    },
    async (request) => modelReply(await models.remove(request.params.modelId, actorOf(request), request.query)),
  );

  for (const published of [true, false]) {
    http.post(
      actionPath("/models/:modelId", published ? "publish" : "unpublish"),
      {
        config: { ...write, bodyOptional: true },
        schema: {
          tags,
          summary: published
            ? "Publish a model: later arrivals run it; earlier ones do not"
            : "Unpublish a model: a run in flight may end, and no other starts",
          params: schemas.ModelParams,
          querystring: DryRunQuery,
          body: NoBody,
          response: { 200: schemas.ModelReply, ...errors(400, 404) },
        },
      },
      async (request) => {
        const { params, query } = request;
        return modelReply(await models.setPublished(params.modelId, published, actorOf(request), query));
      },
    );
  }

  http.post(
    actionPath("/models/:modelId", "run"),
    {
      config: write,
      schema: {
        tags,
        summary: "Run a model for an opTime even if nothing new has arrived, and wait for it like an announcement does",
        params: schemas.ModelParams,
        querystring: DryRunQuery,
        body: schemas.RunBody,
        response: { 200: schemas.TriggeredReply, ...errors(400, 404, 409) },
      },
    },
    async (request) => {
      const { params, query, body, raw, signal } = request;
      const { generation } = await requests.run(params.modelId, body, actorOf(request), query);
      if (query.dryRun) {
        const message = "It would run; this was a dry run.";
        return { modelId: params.modelId, opTime: body.opTime, generation, status: "SKIPPED" as const, message };
      }
      const key = { model_id: params.modelId, op_time: body.opTime, generation };
      const waitMs = prefersAsync(raw) ? 0 : settings.waitSeconds * 1000;
      const ended = await runWaiters.ended(
        key,
        AbortSignal.any([signal, AbortSignal.timeout(waitMs), runWaiters.closing]),
      );
      return { modelId: params.modelId, opTime: body.opTime, generation, ...endOf(ended) };
    },
  );

  http.post(
    actionPath("/models/:modelId", "backfill"),
    {
      config: write,
      schema: {
        tags,
        summary: "Run a model for each opTime of a range whose tables have arrived; with `dryRun`, only list them",
        params: schemas.ModelParams,
        querystring: DryRunQuery,
        body: schemas.BackfillBody,
        response: { 200: schemas.BackfillReply, ...errors(400, 404, 409) },
      },
    },
    async (request) => {
      const { params, query, body } = request;
      const dryRun = query.dryRun || body.dryRun;
      const items = await requests.backfill(params.modelId, { ...body, dryRun }, actorOf(request));
      return { dryRun, runs: items.filter(({ runs }) => runs).length, items };
    },
  );

  http.post(
    actionPath("/models/:modelId", "retry"),
    {
      config: { ...write, bodyOptional: true },
      schema: {
        tags,
        summary: "Run a model again for an opTime, or for all, whose newest run has failed",
        params: schemas.ModelParams,
        querystring: DryRunQuery,
        body: actions.RetryBody,
        response: { 200: actions.RetryReply, ...errors(400, 404, 409) },
      },
    },
    async (request) => {
      const { params, query, body } = request;
      const opTimes = await requests.retry(params.modelId, body ?? {}, actorOf(request), query);
      return { modelId: params.modelId, dryRun: query.dryRun, opTimes };
    },
  );

  http.post(
    actionPath("/models/:modelId", "stop"),
    {
      config: { ...write, bodyOptional: true },
      schema: {
        tags,
        summary: "Stop what runs or is about to run, for an opTime or for all; nothing is stored of it",
        params: schemas.ModelParams,
        querystring: DryRunQuery,
        body: actions.StopBody,
        response: { 200: actions.StopReply, ...errors(400, 404) },
      },
    },
    async (request) => {
      const { params, query, body } = request;
      const stopped = await requests.stop(params.modelId, body ?? {}, actorOf(request), query);
      return { modelId: params.modelId, dryRun: query.dryRun, stopped };
    },
  );

  http.get(
    "/models/:modelId/why",
    {
      config: read,
      schema: {
        tags,
        summary: "Why a model has run for an opTime, or has not, and what would make it run",
        params: schemas.ModelParams,
        querystring: schemas.WhyQuery,
        response: { 200: schemas.WhyReply, ...errors(400, 404) },
      },
    },
    async ({ params, query }) => {
      const explanation = await explain(db, systemClock, params.modelId, query.opTime);
      return { ...explanation, runs: explanation.runs.map(taskReply) };
    },
  );
}
