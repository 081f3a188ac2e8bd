/** The read API of the graph, under `/api/v1/lineage`. It shares nothing with ingest but the tables. */

import type { Db } from "../../kernel/data/db.ts";
import { invalid } from "../../kernel/errors.ts";
import { errors } from "../../kernel/http/schemas.ts";
import type { Http } from "../../kernel/http/server.ts";
import type { Clock } from "../../kernel/time/clock.ts";
import { TenantParams } from "../tenants/schemas.ts";
import { afterOf, assetDetail, listed } from "./asset.ts";
import { eventReadRoutes } from "./event-routes.ts";
import { findAsset } from "./find.ts";
import type { Expansion } from "./graph.ts";
import { columnGraph, type GraphAsked, tableGraph } from "./graph-reply.ts";
import { impactCsv, impactOf } from "./impact.ts";
import { neighbourAfter, neighboursOf } from "./neighbours.ts";
import { pathsBetween } from "./paths.ts";
import * as schemas from "./schemas.ts";
import { type Semantic, search } from "./search.ts";
import { createStatistics } from "./statistics.ts";
import { readTenant } from "./tenant.ts";

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
        summary: "Find assets by the words in their names and attributes, or by meaning",
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
        summary: "List assets: all, those of a kind, those with a name, or those within another",
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

  api.get(
    "/assets/:id/neighbours",
    {
      config: read,
      schema: {
        tags,
        summary:
          "List the direct neighbours of an asset upstream or downstream, such as the statements that read a table",
        params: schemas.IdParams,
        querystring: schemas.NeighboursQuery,
        response: { 200: schemas.NeighboursReply, ...errors(400, 404) },
      },
    },
    async ({ caller, params, query: { tenant, direction, q = null, limit, cursor } }) => {
      const tenantId = await readTenant(db, caller, tenant);
      const after = cursor === undefined ? null : neighbourAfter(cursor);
      if (cursor !== undefined && !after) throw invalid("The parameter `cursor` is none that a page had as `next`");
      return neighboursOf(db, tenantId, params.id, { direction, q, limit, after });
    },
  );

  const asked = ({ maxNodes, maxEdges, expand, ...query }: Asked): GraphAsked => ({
    ...query,
    nodesMax: maxNodes,
    edgesMax: maxEdges,
    ...(expand === undefined ? {} : { expand: expansionsOf(expand) }),
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
      db.reading(async (reader) => tableGraph(reader, await readTenant(reader, caller, tenant), asked(query), now)),
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
      db.reading(async (reader) => columnGraph(reader, await readTenant(reader, caller, tenant), asked(query), now)),
  );

  api.get(
    "/paths",
    {
      config: read,
      schema: {
        tags,
        summary: "The ways of data between two assets, whichever of them comes first; the shortest first",
        querystring: schemas.PathsQuery,
        response: { 200: schemas.PathsReply, ...errors(400, 404) },
      },
    },
    async ({ caller, query: { tenant, ...query } }) =>
      db.reading(async (reader) => pathsBetween(reader, await readTenant(reader, caller, tenant), query, now)),
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
      const { start, ...impact } = await db.reading(async (reader) => {
        const tenantId = await readTenant(reader, caller, tenant);
        const found = await findAsset(reader, tenantId, node);
        return { start: found, ...(await impactOf(reader, tenantId, found, now)) };
      });
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

type Asked = Omit<GraphAsked, "nodesMax" | "edgesMax" | "expand"> & {
  maxNodes: number;
  maxEdges: number;
  expand?: string;
};

function expansionsOf(text: string): Expansion[] {
  return text.split(",").map((one) => {
    const [id = "", direction] = one.split(":");
    return { id, direction: direction === "up" ? "up" : "down" };
  });
}
