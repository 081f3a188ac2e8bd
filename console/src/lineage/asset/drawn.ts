/**
 * The graph that the server answers, as it is drawn. Neighbours that it leaves out are a pill that brings them; where an asset has
 * more of them than are drawn at once, they are one folded node that opens a list.
 */
import type { GraphEdge, GraphNode, Side } from "../../parts/graph/model.ts";
import type { Direction, GraphAsset, GraphReply, Link } from "../api.ts";
import { iconOf, nearPlaceOf } from "../kinds.ts";

/** Neighbours of an asset that are drawn before the others are folded. */
export const FANOUT = 8;
const LIST_PREFIX = "list:";

interface Texts {
  others(count: string): string;
  openList: string;
  masked: string;
  indirect: string;
}

export interface DrawnGraph {
  nodes: GraphNode[];
  edges: GraphEdge[];
  /** The asset of the page, or one of its columns. */
  start: string | undefined;
  /** Columns of the table that no edge leads to. */
  unused: number;
}

export function drawnGraph(
  { start, nodes, edges }: GraphReply,
  direction: Direction,
  texts: Texts,
  number: (value: number) => string,
): DrawnGraph {
  const before = countsOf(edges.map(({ to }) => to));
  const after = countsOf(edges.map(({ from }) => from));
  const isUsed = ({ id, moreUp = 0, moreDown = 0 }: GraphAsset) =>
    before.has(id) || after.has(id) || moreUp + moreDown > 0;
  // A graph of columns begins with all columns of a table, of which most may have no lineage.
  const used = nodes.filter((node) => isUsed(node));
  const shown = used.length > 0 ? used : nodes.filter(({ id }) => id === start);
  const drawn: GraphNode[] = [];
  const lines: GraphEdge[] = withoutShortcuts(edges).map(({ from, to }) => ({ from, to }));
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
  const isColumns = nodes.some(({ kind }) => kind === "COLUMN");
  const own = shown.filter(({ distance }) => distance === 0);
  const middle = own[Math.floor(own.length / 2)]?.id;
  return { nodes: drawn, edges: lines, start: middle, unused: isColumns ? nodes.length - shown.length : 0 };
}

/** Between two tables the statement says it all: an edge beside it that tells the same is not drawn. */
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

/** Whether a pill would not bring all of them. */
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

/** `17:down` of the node that stands for the other neighbours of 17. */
export function listOf(nodeId: string): string | undefined {
  return nodeId.startsWith(LIST_PREFIX) ? nodeId.slice(LIST_PREFIX.length) : undefined;
}

/** `17:down` */
export function hopOf(text: string | undefined): { id: string; direction: "up" | "down" } | undefined {
  const [, id, direction] = /^(\d{1,18}):(up|down)$/.exec(text ?? "") ?? [];
  return id === undefined ? undefined : { id, direction: direction === "up" ? "up" : "down" };
}

/** In the order in which they were opened; the server takes so many. */
const EXPAND_MAX = 30;
export function withHop(expand: string | undefined, hop: string): string {
  const hops = (expand ?? "").split(",").filter((one) => hopOf(one) !== undefined && one !== hop);
  return [...hops, hop].slice(-EXPAND_MAX).join(",");
}
