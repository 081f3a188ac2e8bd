/**
 * The API of tenants. Creating and changing one is for admins; its syncs and dead letters are also for keys that are bound to
 * the tenant.
 */
import { audit } from "../../kernel/auth/audit.ts";
import type { Db } from "../../kernel/data/db.ts";
import { actionPath } from "../../kernel/http/action-path.ts";
import { DryRunQuery, errors, NoBody } from "../../kernel/http/schemas.ts";
import { actorOf, type Http } from "../../kernel/http/server.ts";
import { replayAll } from "../ingest/dead-letters.ts";
import type { Ingest } from "../ingest/ingest.ts";
import { TakenReply } from "../ingest/schemas.ts";
import type { TenantRow } from "../store/tenants.ts";
import type { Tenant, TenantsReply } from "./replies.ts";
import * as schemas from "./schemas.ts";
import { requireTenantScope } from "./scope.ts";
import type { Tenants } from "./tenants.ts";

export interface TenantRoutesDeps {
  db: Db;
  tenants: Tenants;
  ingest: Ingest;
}

const NOTHING_DONE = { applied: 0, skipped: 0, dead: 0 };

/** Under `/api/v1/lineage`. */
export function tenantRoutes(api: Http, { db, tenants, ingest }: TenantRoutesDeps): void {
  const admin = { scope: "admin" } as const;
  const read = { scope: "lineage:read" } as const;
  const write = { scope: "lineage:write" } as const;
  const tags = ["lineage tenants"];

  api.post(
    "/tenants",
    {
      config: admin,
      schema: {
        tags,
        summary: "Create a tenant; one that needs no full sync may be READY at once",
        querystring: DryRunQuery,
        body: schemas.NewTenant,
        response: { 200: schemas.TenantReply, 201: schemas.TenantReply, ...errors(400, 409) },
      },
    },
    async (request, reply) => {
      const { id, state = "NEW", rateLimitPerMinute = null, bodyLimitBytes = null, ...names } = request.body;
      const tenant = { ...names, id: String(id), state, rateLimitPerMinute, bodyLimitBytes };
      const created = await tenants.create(tenant, actorOf(request), request.query);
      return reply.code(request.query.dryRun ? 200 : 201).send(tenantReply(created));
    },
  );

  api.get(
    "/tenants",
    {
      config: read,
      schema: {
        tags,
        summary: "List the tenants that the key may see",
        querystring: schemas.TenantsQuery,
        response: { 200: schemas.TenantsReply, ...errors(400) },
      },
    },
    async ({ caller, query: { q = null, state = null, page, size } }) => {
      const { items, total } = await tenants.list({ id: caller.tenantId, q, state, page, size });
      return { items: items.map(tenantReply), page, size, total } satisfies TenantsReply<Date>;
    },
  );

  api.get(
    "/tenants/:tenantId",
    {
      config: read,
      schema: {
        tags,
        summary: "Show a tenant",
        params: schemas.TenantParams,
        response: { 200: schemas.TenantReply, ...errors(400, 404) },
      },
    },
    async ({ caller, params: { tenantId } }) => {
      requireTenantScope(caller, tenantId);
      return tenantReply(await tenants.get(tenantId));
    },
  );

  api.patch(
    "/tenants/:tenantId",
    {
      config: admin,
      schema: {
        tags,
        summary: "Change a tenant's names or limits; null takes a limit of its own away",
        params: schemas.TenantParams,
        querystring: DryRunQuery,
        body: schemas.TenantPatch,
        response: { 200: schemas.TenantReply, ...errors(400, 404, 409) },
      },
    },
    async (request) => {
      const { caller, params, query, body } = request;
      requireTenantScope(caller, params.tenantId);
      return tenantReply(await tenants.update(params.tenantId, body, actorOf(request), query));
    },
  );

  api.post(
    actionPath("/tenants/:tenantId", "sync-start"),
    {
      config: { ...write, bodyOptional: true },
      schema: {
        tags,
        summary:
          "Begin a full sync: events wait until the tenant is READY, and those before the cutover are left out then",
        params: schemas.TenantParams,
        querystring: DryRunQuery,
        body: schemas.SyncStart,
        response: { 200: schemas.TenantReply, ...errors(400, 404, 409) },
      },
    },
    async (request) => {
      const { caller, params, query, body } = request;
      requireTenantScope(caller, params.tenantId);
      const cutoverTime = body?.cutoverTime === undefined ? null : new Date(body.cutoverTime);
      return tenantReply(await tenants.startSync(params.tenantId, cutoverTime, actorOf(request), query));
    },
  );

  api.post(
    actionPath("/tenants/:tenantId", "ready"),
    {
      config: { ...write, bodyOptional: true },
      schema: {
        tags,
        summary:
          "Apply what has waited since the cutover, and from then on every event at once; of a READY tenant nothing",
        description:
          "200 says that the tenant is READY. 202 says that more is buffered than one request can apply: the reply counts what was done, and the same call continues.",
        params: schemas.TenantParams,
        body: NoBody,
        response: { 200: schemas.ReadyReply, 202: schemas.ReadyReply, ...errors(400, 404) },
      },
    },
    async (request, reply) => {
      const { tenantId } = request.params;
      requireTenantScope(request.caller, tenantId);
      const before = await tenants.get(tenantId);
      if (before.state === "READY") return { ...tenantReply(before), ...NOTHING_DONE };
      const done = await ingest.makeReady(tenantId);
      tenants.forget(tenantId);
      const after = await tenants.get(tenantId);
      await audit(db, actorOf(request), "tenant.ready", tenantId, { ...done, state: after.state });
      return reply.code(after.state === "READY" ? 200 : 202).send({ ...tenantReply(after), ...done });
    },
  );

  api.post(
    actionPath("/tenants/:tenantId/dead-letters/:eventId", "replay"),
    {
      config: { ...write, bodyOptional: true },
      schema: {
        tags,
        summary: "Try a dead letter again",
        params: schemas.DeadLetterParams,
        body: NoBody,
        response: { 200: TakenReply, ...errors(400, 404) },
      },
    },
    async (request) => {
      const { tenantId, eventId } = request.params;
      requireTenantScope(request.caller, tenantId);
      const taken = await ingest.replay(tenantId, eventId);
      await audit(db, actorOf(request), "lineage.replay", `${tenantId}/${eventId}`, { state: taken.state });
      return taken;
    },
  );

  api.post(
    "/tenants/:tenantId/dead-letters::replay",
    {
      config: { ...write, bodyOptional: true },
      schema: {
        tags,
        summary:
          "Try the dead letters of a tenant again, oldest first, as many as `limit`; `next` continues behind them",
        params: schemas.TenantParams,
        body: schemas.ReplayAll,
        response: { 200: schemas.ReplayAllReply, ...errors(400, 404) },
      },
    },
    async (request) => {
      const { tenantId } = request.params;
      requireTenantScope(request.caller, tenantId);
      await tenants.get(tenantId);
      const { limit = schemas.REPLAY_DEFAULT, after = null } = request.body ?? {};
      const done = await replayAll({ db, ingest }, tenantId, { after, limit });
      const { applied, dead } = done;
      await audit(db, actorOf(request), "lineage.replay", tenantId, { applied, dead });
      return done;
    },
  );
}

function tenantReply(row: TenantRow) {
  return {
    id: Number(row.id),
    code: row.code,
    name: row.name,
    state: row.state,
    cutoverTime: row.cutover_time,
    rateLimitPerMinute: row.rate_limit_per_minute,
    bodyLimitBytes: row.body_limit_bytes,
    createdAt: row.created_at,
    updatedAt: row.updated_at,
  } satisfies Tenant<Date>;
}
