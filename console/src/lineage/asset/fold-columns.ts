/** Which columns of a graph are drawn: ten of each table, and one node for the others until the table is expanded. */
import type { GraphAsset, Link } from "../api.ts";

/** One more is drawn as well: a node for it would take the same room. */
export const COLUMNS_SHOWN = 10;

export interface FoldedColumns {
  shown: readonly GraphAsset[];
  /** By the id of the first of them, which the node for them has too: when it is expanded, that column takes its place. */
  others: ReadonlyMap<string, readonly GraphAsset[]>;
}

interface Wish {
  /** Columns that are always drawn. */
  kept: ReadonlySet<string>;
  /** Tables are expanded by any of their columns. */
  expanded: ReadonlySet<string>;
}

export function foldColumns(
  nodes: readonly GraphAsset[],
  edges: readonly Link[],
  { kept, expanded }: Wish,
): FoldedColumns {
  const drawn = new Set(nodes.filter(({ kind, id }) => kind !== "COLUMN" || kept.has(id)).map(({ id }) => id));
  const neighbours = neighboursOf(edges);
  const others = new Map<string, readonly GraphAsset[]>();
  for (const columns of tablesOf(nodes)) {
    const isWhole = columns.length <= COLUMNS_SHOWN + 1 || columns.some(({ id }) => expanded.has(id));
    // The lineage of what is drawn nearer to the asset comes first. The sort is stable, so the order of the table stays.
    const rank = ({ id }: GraphAsset) => (kept.has(id) ? 0 : neighbours.get(id)?.some((one) => drawn.has(one)) ? 1 : 2);
    const ranks = new Map(columns.map((column) => [column, rank(column)]));
    const ranked = columns.toSorted((one, other) => (ranks.get(one) ?? 0) - (ranks.get(other) ?? 0));
    const first = new Set(isWhole ? columns : ranked.slice(0, COLUMNS_SHOWN));
    for (const { id } of first) drawn.add(id);
    const rest = columns.filter((column) => !first.has(column));
    if (rest[0]) others.set(rest[0].id, rest);
  }
  return { shown: nodes.filter(({ id }) => drawn.has(id)), others };
}

/** The columns of each table in the order in which they became known, the nearest table first. */
function tablesOf(nodes: readonly GraphAsset[]): readonly (readonly GraphAsset[])[] {
  const tables = new Map<string, GraphAsset[]>();
  for (const node of nodes.toSorted((one, other) => one.distance - other.distance || compareIds(one.id, other.id))) {
    if (node.kind !== "COLUMN") continue;
    const table = JSON.stringify(node.path.slice(0, -1));
    const columns = tables.get(table);
    if (columns) columns.push(node);
    else tables.set(table, [node]);
  }
  return [...tables.values()];
}

/** Ids are numbers, some of them too large for a number of JavaScript. */
function compareIds(one: string, other: string): number {
  if (one.length !== other.length) return one.length - other.length;
  return one < other ? -1 : 1;
}

function neighboursOf(edges: readonly Link[]): ReadonlyMap<string, readonly string[]> {
  const neighbours = new Map<string, string[]>();
  const add = (one: string, other: string) => {
    const list = neighbours.get(one);
    if (list) list.push(other);
    else neighbours.set(one, [other]);
  };
  for (const { from, to } of edges) {
    add(from, to);
    add(to, from);
  }
  return neighbours;
}
