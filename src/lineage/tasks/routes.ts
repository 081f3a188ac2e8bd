/** The API of tenants' models and of async tasks, under `/api/v1/lineage`. */
import type { Static } from "typebox";
import { invalid } from "../../kernel/errors.ts";
import { actionPath } from "../../kernel/http/action-path.ts";
import { DryRunQuery, errors, NoBody } from "../../kernel/http/schemas.ts";
import { actorOf, type Http } from "../../kernel/http/server.ts";
import { lineageError } from "../catalogue.ts";
import { requireTenantScope } from "../tenants/scope.ts";
import type { Tasks } from "./index.ts";
import type { EmbeddingModel, TenantModel } from "./model.ts";
import { attemptReply, batchReply, taskReply } from "./replies.ts";
import * as schemas from "./schemas.ts";

const read = { scope: "lineage:read" } as const;
const write = { scope: "lineage:write" } as const;
// Whoever chooses a model says where a tenant's metadata are sent; every client that sends events has a key that writes.
const admin = { scope: "admin" } as const;
const action = { ...write, bodyOptional: true } as const;
const tags = ["lineage"];
const TENANT = "/tenants/:tenantId";

export function taskRoutes(http: Http, { tasks }: { tasks: Pick<Tasks, "models" | "actions"> }): void {
  // Of a key that is bound to a tenant, the others do not exist: before anything else is looked at.
  http.register(async (scope) => {
    const routes = scope as Http;
    routes.addHook("preValidation", async ({ caller, params }) =>
      requireTenantScope(caller, (params as { tenantId: string }).tenantId),
    );
    modelRoutes(routes, tasks);
    listRoutes(routes, tasks);
    actionRoutes(routes, tasks);
  });
}

function modelRoutes(http: Http, { models }: Pick<Tasks, "models">): void {
  http.put(
    `${TENANT}/model`,
    {
      config: admin,
      schema: {
        tags,
        summary: "Choose what embeds and summarises a tenant's assets; what it has by another model is computed again",
        params: schemas.TenantParams,
        querystring: DryRunQuery,
        body: schemas.ModelBody,
        response: { 200: schemas.ModelReply, ...errors(400, 404) },
      },
    },
    async (request) => {
      const { params, query, body } = request;
      return { model: await models.choose(params.tenantId, modelOf(body), actorOf(request), query) };
    },
  );

  http.get(
    `${TENANT}/model`,
    {
      config: read,
      schema: {
        tags,
        summary: "Show a tenant's model; null if it has none",
        params: schemas.TenantParams,
        response: { 200: schemas.ModelReply, ...errors(400, 404) },
      },
    },
    async ({ params }) => ({ model: await models.get(params.tenantId) }),
  );

  http.delete(
    `${TENANT}/model`,
    {
      config: admin,
      schema: {
        tags,
        summary: "Have no model: nothing more is computed, what there is stays",
        params: schemas.TenantParams,
        querystring: DryRunQuery,
        response: { 200: schemas.ModelReply, ...errors(400, 404) },
      },
    },
    async (request) => {
      await models.remove(request.params.tenantId, actorOf(request), request.query);
      return { model: null };
    },
  );
}

function listRoutes(http: Http, { actions, models }: Pick<Tasks, "actions" | "models">): void {
  http.get(
    `${TENANT}/tasks`,
    {
      config: read,
      schema: {
        tags,
        summary: "List a tenant's async tasks; those that were due last come first",
        params: schemas.TenantParams,
        querystring: schemas.TasksQuery,
        response: { 200: schemas.TasksReply, ...errors(400, 404) },
      },
    },
    async ({ params: { tenantId }, query: { page, size, ...filter } }) => {
      await models.get(tenantId); // An unknown tenant is told from one without tasks.
      const { items, total } = await actions.list(tenantId, filter, { size, offset: (page - 1) * size });
      return { items: items.map(taskReply), page, size, total };
    },
  );

  http.get(
    `${TENANT}/tasks/:taskId`,
    {
      config: read,
      schema: {
        tags,
        summary: "Show an async task with its attempts",
        params: schemas.TaskParams,
        response: { 200: schemas.TaskDetail, ...errors(400, 404) },
      },
    },
    async ({ params: { tenantId, taskId } }) => {
      const { attempts, ...task } = await actions.get(tenantId, taskIdOf(tenantId, taskId));
      return { ...taskReply(task), attempts: attempts.map(attemptReply) };
    },
  );

  http.get(
    `${TENANT}/batches`,
    {
      config: read,
      schema: {
        tags,
        summary: "List the batches in which a tenant's async tasks were worked on, newest first",
        params: schemas.TenantParams,
        querystring: schemas.BatchesQuery,
        response: { 200: schemas.BatchesReply, ...errors(400, 404) },
      },
    },
    async ({ params: { tenantId }, query: { page, size, ...filter } }) => {
      await models.get(tenantId);
      const { items, total } = await actions.batches(tenantId, filter, { size, offset: (page - 1) * size });
      return { items: items.map(batchReply), page, size, total };
    },
  );
}

function actionRoutes(http: Http, { actions, models }: Pick<Tasks, "actions" | "models">): void {
  http.post(
    actionPath(`${TENANT}/tasks/:taskId`, "reset"),
    {
      config: action,
      schema: {
        tags,
        summary: "Try an async task again at once, with all its retries",
        params: schemas.TaskParams,
        querystring: DryRunQuery,
        body: NoBody,
        response: { 200: schemas.TaskReply, ...errors(400, 404, 409) },
      },
    },
    async (request) => {
      const { tenantId, taskId } = request.params;
      return taskReply(await actions.reset(tenantId, taskIdOf(tenantId, taskId), actorOf(request), request.query));
    },
  );

  http.post(
    actionPath(`${TENANT}/tasks/:taskId`, "cancel"),
    {
      config: action,
      schema: {
        tags,
        summary: "Cancel an async task that is not being worked on",
        params: schemas.TaskParams,
        querystring: DryRunQuery,
        body: NoBody,
        response: { 200: schemas.TaskReply, ...errors(400, 404, 409) },
      },
    },
    async (request) => {
      const { tenantId, taskId } = request.params;
      return taskReply(await actions.cancel(tenantId, taskIdOf(tenantId, taskId), actorOf(request), request.query));
    },
  );

  http.post(
    `${TENANT}/tasks::reset`,
    {
      config: write,
      schema: {
        tags,
        summary: "Try again all async tasks of a tenant that have a status",
        params: schemas.TenantParams,
        body: schemas.ResetBody,
        response: { 200: schemas.ResetReply, ...errors(400, 404) },
      },
    },
    async (request) => {
      const { tenantId } = request.params;
      await models.get(tenantId);
      return { reset: await actions.resetAll(tenantId, request.body.status, actorOf(request)) };
    },
  );
}

const BUILTIN_DIMENSION = 384;

function modelOf({ embedding, summary }: Static<typeof schemas.ModelBody>): TenantModel {
  return { ...(embedding ? { embedding: embeddingOf(embedding) } : {}), ...(summary ? { summary } : {}) };
}

function embeddingOf({
  dimension,
  ...model
}: Omit<EmbeddingModel, "dimension"> & { dimension?: number }): EmbeddingModel {
  if (dimension !== undefined) return { ...model, dimension };
  if (model.provider === "builtin") return { ...model, dimension: BUILTIN_DIMENSION };
  throw invalid("embedding.dimension is missing: write how many numbers the model's vectors have");
}

function taskIdOf(tenantId: string, taskId: string): string {
  if (!/^[1-9]\d{0,17}$/.test(taskId)) throw lineageError("TASK_NOT_FOUND", { tenantId, taskId });
  return taskId;
}
