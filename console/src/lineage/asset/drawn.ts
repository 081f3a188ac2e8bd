/**
 * The server's graph as it is drawn. A pill (`+37`) loads neighbours that are not in the graph; if an asset has more than can be
 * drawn, they are one collapsed node that opens a list.
 */
import type { GraphEdge, GraphNode, Side } from "../../parts/graph/model.ts";
import type { Direction, GraphAsset, GraphReply, Link } from "../api.ts";
import { iconOf, nearPlaceOf } from "../kinds.ts";
import { COLUMNS_SHOWN, foldColumns } from "./fold-columns.ts";

/** Neighbours of an asset that are drawn before the others are folded. */
export const FANOUT = 8;
const LIST_PREFIX = "list:";
/** The limit of the server on `expand`. */
const EXPAND_MAX = 30;

interface Texts {
  others(count: string): string;
  openList: string;
  otherColumns(count: string): string;
  expandColumns: string;
  masked: string;
  indirect: string;
}

export interface DrawnGraph {
  nodes: GraphNode[];
  edges: GraphEdge[];
  /** The asset of the page, or one of its columns. */
  start: string | undefined;
  /** How many assets are drawn, those that another node stands for included. */
  assets: number;
  /** Columns of the table that no edge leads to. */
  unused: number;
  /** Nodes that stand for columns which are not drawn, by the number of them. */
  others: ReadonlyMap<string, number>;
}

export interface Wish {
  direction: Direction;
  /** The node whose details are open. */
  selected: string | undefined;
  /** Ids of columns, separated by commas: all columns of their tables are drawn. */
  columns: string | undefined;
}

export function drawnGraph(
  { start, nodes, edges }: GraphReply,
  { direction, selected = start, columns = "" }: Wish,
  texts: Texts,
  number: (value: number) => string,
): DrawnGraph {
  const before = countsOf(edges.map(({ to }) => to));
  const after = countsOf(edges.map(({ from }) => from));
  const isUsed = ({ id, moreUp = 0, moreDown = 0 }: GraphAsset) =>
    before.has(id) || after.has(id) || moreUp + moreDown > 0;
  // A graph of columns begins with all columns of a table, of which most may have no lineage.
  const used = nodes.filter((node) => isUsed(node));
  const all = used.length > 0 ? used : nodes.filter(({ id }) => id === start);
  const kept = new Set([start, selected]);
  const { shown, others } = foldColumns(all, edges, { kept, expanded: new Set(columns.split(",")) });
  const groupOf = new Map([...others].flatMap(([group, list]) => list.map(({ id }) => [id, group] as const)));
  const end = (id: string) => groupOf.get(id) ?? id;
  const drawn: GraphNode[] = [];
  const lines: GraphEdge[] = withoutShortcuts(edges).map(({ from, to }) => ({ from: end(from), to: end(to) }));
  for (const node of shown) {
    const { id } = node;
    const up = direction === "down" ? 0 : (node.moreUp ?? 0);
    const down = direction === "up" ? 0 : (node.moreDown ?? 0);
    const isListed = { before: isMany(before.get(id), up), after: isMany(after.get(id), down) };
    drawn.push({
      id,
      title: node.name,
      subtitle: nearPlaceOf(node),
      icon: iconOf(node.kind),
      badge: badgeOf(node, texts),
      hiddenBefore: isListed.before ? undefined : up,
      hiddenAfter: isListed.after ? undefined : down,
    });
    for (const [side, count] of [
      ["before", up],
      ["after", down],
    ] as const) {
      if (!isListed[side]) continue;
      const list = listId(id, side);
      drawn.push({ id: list, title: texts.others(number(count)), subtitle: texts.openList, icon: "menu" });
      lines.push(side === "before" ? { from: list, to: id } : { from: id, to: list });
    }
  }
  for (const [id, list] of others) {
    const [first] = list;
    const subtitle = first && nearPlaceOf(first);
    drawn.push({
      id,
      title: texts.otherColumns(number(list.length)),
      subtitle,
      icon: "menu",
      badge: texts.expandColumns,
    });
  }
  const isColumns = nodes.some(({ kind }) => kind === "COLUMN");
  const columnsOf = (some: readonly GraphAsset[]) => some.filter(({ kind }) => kind === "COLUMN").length;
  // The same one when the table is expanded.
  const own = shown.filter(({ distance }) => distance === 0).slice(0, COLUMNS_SHOWN);
  const middle = own[Math.floor(own.length / 2)]?.id;
  return {
    nodes: drawn,
    edges: lines,
    start: middle,
    assets: isColumns ? all.length : nodes.length,
    unused: columnsOf(nodes) - columnsOf(all),
    others: new Map([...others].map(([id, list]) => [id, list.length])),
  };
}

/** Two tables connected through a statement need no direct edge as well. */
function withoutShortcuts(edges: readonly Link[]): readonly Link[] {
  const readBy = new Map<string, Set<string>>();
  for (const { from, to, kind } of edges)
    if (kind === "INPUT_OF") readBy.set(to, (readBy.get(to) ?? new Set()).add(from));
  const told = new Set<string>();
  for (const { from, to, kind } of edges)
    if (kind === "OUTPUT_TO") for (const table of readBy.get(from) ?? []) told.add(`${table} ${to}`);
  return edges.filter(({ from, to, kind }) => kind !== "DERIVES_FROM" || !told.has(`${from} ${to}`));
}

function countsOf(ids: readonly string[]): ReadonlyMap<string, number> {
  const counts = new Map<string, number>();
  for (const id of ids) counts.set(id, (counts.get(id) ?? 0) + 1);
  return counts;
}

/** Whether there are more neighbours than a pill loads. */
function isMany(drawn = 0, more: number): boolean {
  return more > 0 && drawn > 0 && drawn + more > FANOUT;
}

function badgeOf({ isMasked, isDirect }: GraphAsset, { masked, indirect }: Texts): string | undefined {
  if (isMasked === true) return masked;
  return isDirect === false ? indirect : undefined;
}

function listId(id: string, side: Side): string {
  return `${LIST_PREFIX}${id}:${side === "before" ? "up" : "down"}`;
}

/** Id `17:down` of the node that groups the other downstream neighbours of 17. */
export function listOf(nodeId: string): string | undefined {
  return nodeId.startsWith(LIST_PREFIX) ? nodeId.slice(LIST_PREFIX.length) : undefined;
}

/** `17:down` */
export function hopOf(text: string | undefined): { id: string; direction: "up" | "down" } | undefined {
  const [, id, direction] = /^(\d{1,18}):(up|down)$/.exec(text ?? "") ?? [];
  return id === undefined ? undefined : { id, direction: direction === "up" ? "up" : "down" };
}

/** Adds a column whose table is expanded. */
export function withColumn(columns: string | undefined, id: string): string {
  const ids = (columns ?? "").split(",").filter((one) => /^\d{1,18}$/.test(one) && one !== id);
  return [...ids, id].slice(-EXPAND_MAX).join(",");
}

/** In the order in which they were opened, up to the server's limit. */
export function withHop(expand: string | undefined, hop: string): string {
  const hops = (expand ?? "").split(",").filter((one) => hopOf(one) !== undefined && one !== hop);
  return [...hops, hop].slice(-EXPAND_MAX).join(",");
}
