/** SQL for the Neo4j projection: the present state of a tenant's assets and edges, by id or page by page. */
import { itemsByKey, toArrays } from "../../../kernel/data/batch.ts";
import type { Queryable } from "../../../kernel/data/db.ts";
import { statement } from "../../../kernel/data/statement.ts";
import type { Attributes, LineageEdgeKind, OwnedEdgeKind } from "../../graph/facts.ts";
import type { NodeKind, TagEdgeKind } from "../../graph/names.ts";

export type EdgeKind = LineageEdgeKind | OwnedEdgeKind | TagEdgeKind;

const TENANT_IDS = statement<{ id: string }>(
  "lineage.projected_tenant_ids",
  "select id::text from lineage.tenant t order by t.id",
);
export const tenantIds = async (db: Queryable): Promise<string[]> => (await db.rows(TENANT_IDS)).map(({ id }) => id);

export interface TenantState {
  code: string;
  name: string;
  created_at: Date;
}
const TENANT = statement<TenantState>(
  "lineage.projected_tenant",
  "select code, name, created_at from lineage.tenant where id = $1",
);
export const tenantState = async (db: Queryable, tenantId: string): Promise<TenantState | undefined> =>
  (await db.rows(TENANT, [tenantId]))[0];

/** An asset that exists, with what was computed of it. */
export interface NodeState {
  id: string;
  kind: NodeKind;
  path: string[];
  attributes: Attributes;
  /** None if the parent is gone. */
  parent_id: string | null;
  created_at: Date;
  updated_at: Date;
  executions: string | null;
  vector: number[] | null;
  provider: string | null;
  embedded_at: Date | null;
  summary: string | null;
  summary_tags: string[] | null;
  generated_at: Date | null;
}
const NODE = `n.id::text, n.kind, n.path, n.attributes, p.id::text as parent_id, n.created_at, n.updated_at,
  x.executions::text, e.vector, e.provider, e.updated_at as embedded_at, s.summary, s.tags as summary_tags, s.generated_at`;
const BESIDE_NODE = `
  left join lineage.node p on p.tenant_id = $1 and p.id = n.parent_id and p.deleted_at is null
  left join lineage.execution_count x on x.tenant_id = $1 and x.node_id = n.id
  left join lineage.embedding e on e.tenant_id = $1 and e.node_id = n.id
  left join lineage.summary s on s.tenant_id = $1 and s.node_id = n.id`;

const NODES = statement<NodeState>(
  "lineage.projected_nodes",
  `select ${NODE} from ${itemsByKey({ id: "int8" }, {}, 2)}
   join lineage.node n on n.tenant_id = $1 and n.id = i.id ${BESIDE_NODE}
   where n.deleted_at is null order by n.id`,
);
export const nodeStates = (db: Queryable, tenantId: string, ids: readonly string[]): Promise<NodeState[]> =>
  db.rows(NODES, [tenantId, ids]);

const NODES_AFTER = statement<NodeState>(
  "lineage.projected_nodes_after",
  `select ${NODE} from (
     select * from lineage.node x where tenant_id = $1 and id > $2 and deleted_at is null order by x.id limit $3
   ) n ${BESIDE_NODE} order by n.id`,
);
export const nodeStatesAfter = (db: Queryable, tenantId: string, id: string, limit: number): Promise<NodeState[]> =>
  db.rows(NODES_AFTER, [tenantId, id, limit]);

/** That an asset lies in its parent. */
export type PlaceState = Pick<NodeState, "id" | "kind" | "parent_id">;

const CHILDREN = statement<PlaceState>(
  "lineage.projected_children",
  `select c.id::text, c.kind, c.parent_id::text from ${itemsByKey({ id: "int8" }, {}, 2)}
   join lineage.node c on c.tenant_id = $1 and c.parent_id = i.id
   where c.deleted_at is null order by c.id`,
);
export const childrenOf = (db: Queryable, tenantId: string, ids: readonly string[]): Promise<PlaceState[]> =>
  db.rows(CHILDREN, [tenantId, ids]);

const PLACES_AFTER = statement<PlaceState>(
  "lineage.projected_places_after",
  `select c.id::text, c.kind, p.id::text as parent_id from (
     select * from lineage.node x where tenant_id = $1 and id > $2 and deleted_at is null order by x.id limit $3
   ) c left join lineage.node p on p.tenant_id = $1 and p.id = c.parent_id and p.deleted_at is null
   order by c.id`,
);
export const placesAfter = (db: Queryable, tenantId: string, id: string, limit: number): Promise<PlaceState[]> =>
  db.rows(PLACES_AFTER, [tenantId, id, limit]);

export interface EdgeKey {
  src: string;
  kind: EdgeKind;
  dst: string;
}
/** An edge between two assets that exist. */
export interface EdgeState extends EdgeKey {
  transformations: string[];
}
const EDGE = "e.src::text, e.kind, e.dst::text, e.transformations";
const ENDS = `
  join lineage.node a on a.tenant_id = $1 and a.id = e.src and a.deleted_at is null
  join lineage.node b on b.tenant_id = $1 and b.id = e.dst and b.deleted_at is null`;

const EDGE_KEY = { src: "int8", kind: "text", dst: "int8" };
const EDGES = statement<EdgeState>(
  "lineage.projected_edges",
  `select ${EDGE} from ${itemsByKey(EDGE_KEY, {}, 2)}
   join lineage.edge e on e.tenant_id = $1 and e.src = i.src and e.kind = i.kind and e.dst = i.dst ${ENDS}
   order by e.src, e.kind, e.dst`,
);
export const edgeStates = (db: Queryable, tenantId: string, edges: readonly EdgeKey[]): Promise<EdgeState[]> =>
  db.rows(EDGES, [tenantId, ...toArrays(EDGE_KEY, edges)]);

const EDGES_AT = statement<EdgeState>(
  "lineage.projected_edges_at",
  `with touching as (
     select o.* from ${itemsByKey({ id: "int8" }, {}, 2)} join lineage.edge o on o.tenant_id = $1 and o.src = i.id
     union
     select o.* from ${itemsByKey({ id: "int8" }, {}, 2)} join lineage.edge o on o.tenant_id = $1 and o.dst = i.id
   )
   select ${EDGE} from touching e ${ENDS} order by e.src, e.kind, e.dst`,
);
/** All that begin or end at one of these. */
export const edgesAt = (db: Queryable, tenantId: string, ids: readonly string[]): Promise<EdgeState[]> =>
  db.rows(EDGES_AT, [tenantId, ids]);

/** One of a page; where an end is gone it only carries the page on. */
export interface PagedEdge extends EdgeState {
  exists: boolean;
}
const EDGES_AFTER = statement<PagedEdge>(
  "lineage.projected_edges_after",
  `select ${EDGE}, a.id is not null and b.id is not null as exists from (
     select * from lineage.edge x where tenant_id = $1 and (src, kind, dst) > ($2::int8, $3::text, $4::int8)
     order by x.src, x.kind, x.dst limit $5
   ) e
   left join lineage.node a on a.tenant_id = $1 and a.id = e.src and a.deleted_at is null
   left join lineage.node b on b.tenant_id = $1 and b.id = e.dst and b.deleted_at is null
   order by e.src, e.kind, e.dst`,
);
export const edgesAfter = (
  db: Queryable,
  tenantId: string,
  { src, kind, dst }: { src: string; kind: string; dst: string },
  limit: number,
): Promise<PagedEdge[]> => db.rows(EDGES_AFTER, [tenantId, src, kind, dst, limit]);

const DIMENSION = statement<{ dimension: number }>(
  "lineage.projected_dimension",
  "select dimension from lineage.embedding group by dimension order by count(*) desc, dimension limit 1",
);
/** That of most vectors, of all tenants. */
export const commonDimension = async (db: Queryable): Promise<number | undefined> =>
  (await db.rows(DIMENSION))[0]?.dimension;
