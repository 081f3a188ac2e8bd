/**
 * SQL for nodes and edges of one tenant. Writers hold the exclusive lock of its graph (graph-lock.ts), so rows need no
 * locks.
 */
import { itemsByKey, toArrays, unnest } from "../../kernel/data/batch.ts";
import type { Queryable } from "../../kernel/data/db.ts";
import { statement } from "../../kernel/data/statement.ts";
import type { Attributes } from "../graph/facts.ts";
import type { NodeKind } from "../graph/names.ts";

/** For each attribute, or kind of owned edges, the time of the event that set it. */
export type Times = Readonly<Record<string, number>>;

export interface NodeRow {
  id: string;
  kind: NodeKind;
  key: string;
  path: string[];
  parent_id: string | null;
  attributes: Attributes;
  times: Times;
  contested: boolean;
  gone: boolean;
}
const COLUMNS = `n.id::text, n.kind, n.key, n.path, n.parent_id::text, n.attributes, n.times, n.contested,
  n.deleted_at is not null as gone`;

const BY_KEY = statement<NodeRow>(
  "lineage.nodes_by_key",
  `select ${COLUMNS} from lineage.node n where n.tenant_id = $1 and n.key = any($2::uuid[])`,
);
export const nodesByKey = (tx: Queryable, tenantId: string, keys: readonly string[]): Promise<NodeRow[]> =>
  keys.length === 0 ? Promise.resolve([]) : tx.rows(BY_KEY, [tenantId, keys]);

const BELOW = statement<NodeRow>(
  "lineage.nodes_below",
  `with recursive below as (
     select n.id from lineage.node n where n.tenant_id = $1 and n.parent_id = any($2::int8[])
     union all
     select c.id from below b join lineage.node c on c.tenant_id = $1 and c.parent_id = b.id
   )
   select ${COLUMNS} from below b join lineage.node n on n.tenant_id = $1 and n.id = b.id`,
);
/** Everything that lies below these, gone or not. */
export const nodesBelow = (tx: Queryable, tenantId: string, ids: readonly string[]): Promise<NodeRow[]> =>
  ids.length === 0 ? Promise.resolve([]) : tx.rows(BELOW, [tenantId, ids]);

const NEXT_IDS = statement<{ id: string }>(
  "lineage.next_node_ids",
  "select nextval('lineage.node_id_seq')::text as id from generate_series(1, $1::int4)",
);
/** Known before the rows are written, so that children can name their parents in the same statement. */
export const nextNodeIds = async (tx: Queryable, count: number): Promise<string[]> =>
  (await tx.rows(NEXT_IDS, [count])).map(({ id }) => id);

export interface WrittenNode {
  id: string;
  kind: NodeKind;
  key: string;
  path: readonly string[];
  name: string;
  parent_id: string | null;
  attributes: Attributes;
  times: Times;
  contested: boolean;
  words: string;
}
const NODE = {
  key: "uuid",
  id: "int8",
  kind: "text",
  path: "jsonb",
  name: "text",
  parent_id: "int8",
  attributes: "jsonb",
  times: "jsonb",
  contested: "bool",
  words: "text",
};
const { key: NODE_KEY, ...NODE_VALUES } = NODE;
const INSERT = statement(
  "lineage.insert_nodes",
  `insert into lineage.node (tenant_id, id, kind, key, path, name, parent_id, attributes, times, contested, words)
   overriding system value
   select $11::int8, i.id, i.kind, i.key, array(select jsonb_array_elements_text(i.path)), i.name, i.parent_id,
          i.attributes, i.times, i.contested, to_tsvector('simple', i.words)
   from ${itemsByKey({ key: NODE_KEY }, NODE_VALUES)}`,
);
export async function insertNodes(tx: Queryable, tenantId: string, nodes: readonly WrittenNode[]): Promise<void> {
  if (nodes.length > 0) await tx.rows(INSERT, [...toArrays(NODE, nodes), tenantId]);
}

const CHANGED = {
  id: "int8",
  parent_id: "int8",
  attributes: "jsonb",
  times: "jsonb",
  contested: "bool",
  words: "text",
};
const { id: NODE_ID, ...CHANGED_VALUES } = CHANGED;
const UPDATE = statement(
  "lineage.update_nodes",
  `update lineage.node n set parent_id = i.parent_id, attributes = i.attributes, times = i.times, contested = i.contested,
          words = to_tsvector('simple', i.words), deleted_at = null, last_attributes = null, updated_at = now()
   from ${itemsByKey({ id: NODE_ID }, CHANGED_VALUES)} where n.tenant_id = $7 and n.id = i.id`,
);
/** They are there again, if they were gone. */
export async function updateNodes(
  tx: Queryable,
  tenantId: string,
  nodes: readonly Pick<WrittenNode, "id" | "parent_id" | "attributes" | "times" | "contested" | "words">[],
): Promise<void> {
  if (nodes.length > 0) await tx.rows(UPDATE, [...toArrays(CHANGED, nodes), tenantId]);
}

const MOVED = { id: "int8", key: "uuid", path: "jsonb", name: "text", parent_id: "int8", words: "text" };
const { id: MOVED_ID, ...MOVED_VALUES } = MOVED;
const MOVE = statement(
  "lineage.move_nodes",
  `update lineage.node n set key = i.key, path = array(select jsonb_array_elements_text(i.path)), name = i.name,
          parent_id = i.parent_id, words = to_tsvector('simple', i.words), updated_at = now()
   from ${itemsByKey({ id: MOVED_ID }, MOVED_VALUES)} where n.tenant_id = $7 and n.id = i.id`,
);
/** Renames them; attributes and edges stay. */
export async function moveNodes(
  tx: Queryable,
  tenantId: string,
  nodes: readonly Pick<WrittenNode, "id" | "key" | "path" | "name" | "parent_id" | "words">[],
): Promise<void> {
  if (nodes.length > 0) await tx.rows(MOVE, [...toArrays(MOVED, nodes), tenantId]);
}

const CLEAR = statement(
  "lineage.clear_nodes",
  `update lineage.node n set attributes = '{}', times = '{}', contested = false, deleted_at = coalesce(n.deleted_at, now()),
          last_attributes = case when n.deleted_at is null then n.attributes else n.last_attributes end, updated_at = now()
   where n.tenant_id = $1 and n.id = any($2::int8[])`,
);
const DELETE_FROM = statement<EdgeKey>(
  "lineage.delete_edges_from",
  "delete from lineage.edge e where e.tenant_id = $1 and e.src = any($2::int8[]) returning e.src::text, e.kind, e.dst::text",
);
const DELETE_TO = statement<EdgeKey>(
  "lineage.delete_edges_to",
  "delete from lineage.edge e where e.tenant_id = $1 and e.dst = any($2::int8[]) returning e.src::text, e.kind, e.dst::text",
);
/**
 * Marks them as deleted and clears their attributes, because their names may be used again; what was known last is kept apart for
 * people who look for a dropped asset. Deletes and returns their edges.
 */
export async function clearNodes(tx: Queryable, tenantId: string, ids: readonly string[]): Promise<EdgeKey[]> {
  if (ids.length === 0) return [];
  await tx.rows(CLEAR, [tenantId, ids]);
  return [...(await tx.rows(DELETE_FROM, [tenantId, ids])), ...(await tx.rows(DELETE_TO, [tenantId, ids]))];
}

// Deleted children do not count, so the parents of pruned nodes may be pruned next.
const PRUNE = statement<{ id: string }>(
  "lineage.prune_nodes",
  `update lineage.node n set deleted_at = now(), updated_at = now()
   where n.tenant_id = $1 and n.deleted_at is null and not n.times ? '(standing)'
     and n.id = any(array(select p.parent_id from lineage.node p where p.tenant_id = $1 and p.id = any($2::int8[])))
     and not exists (
       select from lineage.node c where c.tenant_id = $1 and c.parent_id = n.id and c.deleted_at is null
     )
   returning n.id::text`,
);
/** Takes away what was there only because of something below it, once nothing is. */
export async function pruneAbove(tx: Queryable, tenantId: string, ids: readonly string[]): Promise<string[]> {
  const pruned: string[] = [];
  for (let frontier = ids; frontier.length > 0; ) {
    frontier = (await tx.rows(PRUNE, [tenantId, frontier])).map(({ id }) => id);
    pruned.push(...frontier);
  }
  return pruned;
}

const DELETE = statement(
  "lineage.delete_nodes",
  "delete from lineage.node n where n.tenant_id = $1 and n.id = any($2::int8[])",
);
export async function deleteNodes(tx: Queryable, tenantId: string, ids: readonly string[]): Promise<void> {
  if (ids.length > 0) await tx.rows(DELETE, [tenantId, ids]);
}

export interface EdgeKey {
  src: string;
  kind: string;
  dst: string;
}
export interface NewEdge extends EdgeKey {
  transformations: readonly string[];
  first_at: number;
}
const EDGE_KEY = { src: "int8", kind: "text", dst: "int8" };
const EDGE_VALUES = { transformations: "jsonb", first_at: "int8" };
// Transformations are a set that grows. The guard keeps what is known from leaving a dead row behind.
const UPSERT_EDGES = statement<EdgeKey>(
  "lineage.upsert_edges",
  `insert into lineage.edge as e (tenant_id, src, kind, dst, transformations, first_at)
   select $6::int8, i.src, i.kind, i.dst, array(select jsonb_array_elements_text(i.transformations)), i.first_at
   from ${itemsByKey(EDGE_KEY, EDGE_VALUES)}
   on conflict (tenant_id, src, kind, dst) do update set
     transformations = array(select distinct t from unnest(e.transformations || excluded.transformations) t order by t),
     first_at = least(e.first_at, excluded.first_at)
   where not e.transformations @> excluded.transformations or excluded.first_at < e.first_at
   returning e.src::text, e.kind, e.dst::text`,
);
/** Those that are new or have changed. */
export const upsertEdges = async (tx: Queryable, tenantId: string, edges: readonly NewEdge[]): Promise<EdgeKey[]> =>
  edges.length === 0 ? [] : tx.rows(UPSERT_EDGES, [...toArrays({ ...EDGE_KEY, ...EDGE_VALUES }, edges), tenantId]);

const DELETE_OWNED = statement<EdgeKey>(
  "lineage.delete_owned_edges",
  `delete from lineage.edge e using ${unnest({ src: "int8", kind: "text" }, "i", 2)}
   where e.tenant_id = $1 and e.src = i.src and e.kind = i.kind returning e.src::text, e.kind, e.dst::text`,
);
/** All edges of a kind that leave an asset. */
export const deleteOwnedEdges = async (
  tx: Queryable,
  tenantId: string,
  owners: readonly Pick<EdgeKey, "src" | "kind">[],
) => (owners.length === 0 ? [] : tx.rows(DELETE_OWNED, [tenantId, ...toArrays({ src: "int8", kind: "text" }, owners)]));

const DELETE_EDGES = statement<EdgeKey>(
  "lineage.delete_edges",
  `delete from lineage.edge e using ${unnest(EDGE_KEY, "i", 2)}
   where e.tenant_id = $1 and e.src = i.src and e.kind = i.kind and e.dst = i.dst returning e.src::text, e.kind, e.dst::text`,
);
export const deleteEdges = (tx: Queryable, tenantId: string, edges: readonly EdgeKey[]): Promise<EdgeKey[]> =>
  edges.length === 0 ? Promise.resolve([]) : tx.rows(DELETE_EDGES, [tenantId, ...toArrays(EDGE_KEY, edges)]);
