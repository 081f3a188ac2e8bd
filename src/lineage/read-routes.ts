/** What people read of the graph, under `/api/v1/lineage`. Ingest shares nothing with it but the tables. */

import type { Db } from "../kernel/data/db.ts";
import { invalid } from "../kernel/errors.ts";
import { errors } from "../kernel/http/schemas.ts";
import type { Http } from "../kernel/http/server.ts";
import type { Clock } from "../kernel/time/clock.ts";
import { eventReadRoutes } from "./event-read-routes.ts";
import * as schemas from "./read-schemas.ts";
import { afterOf, assetDetail, listed } from "./reads/asset.ts";
import { findAsset } from "./reads/find.ts";
import { columnGraph, type GraphAsked, tableGraph } from "./reads/graph-reply.ts";
import { impactCsv, impactOf } from "./reads/impact.ts";
import { type Semantic, search } from "./reads/search.ts";
import { createStatistics } from "./reads/statistics.ts";
import { readTenant } from "./reads/tenant.ts";
import { TenantParams } from "./tenant-schemas.ts";

export interface ReadRoutesDeps {
  db: Db;
  clock: Clock;
  /** Search by meaning, where there is a model for it. */
  semantic?: Semantic;
}

const now = () => performance.now();

export function readRoutes(api: Http, { db, clock, semantic }: ReadRoutesDeps): void {
  const read = { scope: "lineage:read" } as const;
  const tags = ["lineage"];
  const statistics = createStatistics(db, clock);

  api.get(
    "/search",
    {
      config: read,
      schema: {
        tags,
        summary: "Find assets by the words in their names and in what is told of them, or by meaning",
        querystring: schemas.SearchQuery,
        response: { 200: schemas.SearchReply, ...errors(400, 404, 409) },
      },
    },
    async ({ caller, query: { tenant, kind = null, ...asked } }) =>
      search(db, semantic, await readTenant(db, caller, tenant), { ...asked, kind }),
  );

  api.get(
    "/assets",
    {
      config: read,
      schema: {
        tags,
        summary: "List assets: all, those of a kind, those with a name, or those that lie in another",
        querystring: schemas.AssetsQuery,
        response: { 200: schemas.AssetsReply, ...errors(400, 404) },
      },
    },
    async ({ caller, query: { tenant, kind = null, name = null, parent = null, limit, cursor } }) => {
      const tenantId = await readTenant(db, caller, tenant);
      const after = cursor === undefined ? null : afterOf(cursor);
      if (cursor !== undefined && !after) throw invalid("The parameter `cursor` is none that a page had as `next`");
      return listed(db, tenantId, { kind, name, parent, limit, after });
    },
  );

  api.get(
    "/assets/:id",
    {
      config: read,
      schema: {
        tags,
        summary: "Show an asset with its columns, tags, neighbours and the newest events that name it",
        params: schemas.IdParams,
        querystring: schemas.TenantQuery,
        response: { 200: schemas.AssetReply, ...errors(400, 404) },
      },
    },
    async ({ caller, params, query: { tenant } }) => assetDetail(db, await readTenant(db, caller, tenant), params.id),
  );

  const asked = ({ maxNodes, maxEdges, ...query }: Omit<GraphAsked, "nodesMax" | "edgesMax"> & Caps): GraphAsked => ({
    ...query,
    nodesMax: maxNodes,
    edgesMax: maxEdges,
  });
  api.get(
    "/graph",
    {
      config: read,
      schema: {
        tags,
        summary: "Where the data of a table come from and where they go, over statements, jobs and metrics",
        querystring: schemas.GraphQuery,
        response: { 200: schemas.GraphReply, ...errors(400, 404) },
      },
    },
    async ({ caller, query: { tenant, ...query } }) =>
      tableGraph(db, await readTenant(db, caller, tenant), asked(query), now),
  );

  api.get(
    "/columns/graph",
    {
      config: read,
      schema: {
        tags,
        summary: "Where the values of a column come from and where they go, and what becomes of them on the way",
        querystring: schemas.GraphQuery,
        response: { 200: schemas.ColumnGraphReply, ...errors(400, 404) },
      },
    },
    async ({ caller, query: { tenant, ...query } }) =>
      columnGraph(db, await readTenant(db, caller, tenant), asked(query), now),
  );

  api.get(
    "/impact",
    {
      config: read,
      schema: {
        tags,
        summary: "Everything that a change of an asset would reach, as a list; as CSV, with the header `x-partial`",
        querystring: schemas.ImpactQuery,
        response: {
          200: {
            description: "What is reached, the nearest first",
            content: {
              "application/json": { schema: schemas.ImpactReply },
              "text/csv": { schema: schemas.ImpactCsv },
            },
          },
          ...errors(400, 404),
        },
      },
    },
    async ({ caller, query: { tenant, node, format } }, reply) => {
      const tenantId = await readTenant(db, caller, tenant);
      const start = await findAsset(db, tenantId, node);
      const impact = await impactOf(db, tenantId, start, now);
      const partial = impact.reason !== null;
      if (format === "json") return { start: start.id, partial, ...impact };
      return reply
        .type("text/csv; charset=utf-8")
        .header("x-partial", String(partial))
        .header("content-disposition", `attachment; filename="impact-${start.id}.csv"`)
        .send(impactCsv(impact));
    },
  );

  api.get(
    "/tenants/:tenantId/statistics",
    {
      config: read,
      schema: {
        tags,
        summary: "How many assets, edges, events and tasks a tenant has; up to half a minute old",
        params: TenantParams,
        response: { 200: schemas.StatisticsReply, ...errors(400, 404) },
      },
    },
    async ({ caller, params: { tenantId } }) => statistics(await readTenant(db, caller, tenantId)),
  );

  eventReadRoutes(api, db);
}

interface Caps {
  maxNodes: number;
  maxEdges: number;
}
