/** What a graph is made of. The module gives nodes and edges; positions, groups and keys are found here. */
import type { IconName } from "../controls/icons.tsx";
import type { State } from "../states/state.ts";

/** A module may add fields of its own, which its `Content` reads. Fields are compared one by one, so they should be plain values. */
export interface GraphNode {
  id: string;
  title: string;
  /** The second line, unless the module has content of its own. */
  subtitle?: string | undefined;
  icon?: IconName | undefined;
  state?: State | undefined;
  /** The module's own word for the state. */
  stateLabel?: string | undefined;
  /** A few letters at the right end of the title. */
  badge?: string | undefined;
  /** What an action would do to it, over the corner of the node. */
  mark?: string | undefined;
  markTone?: "strong" | "soft" | undefined;
  isFaded?: boolean | undefined;
  /** `NODE_HEIGHT` unless its content is taller. */
  height?: number | undefined;
  /** Neighbours that are not in the graph: shown as `+37`. */
  hiddenBefore?: number | undefined;
  hiddenAfter?: number | undefined;
}

export interface GraphEdge {
  from: string;
  to: string;
  isFaded?: boolean | undefined;
}

export type Side = "before" | "after";

export const NODE_WIDTH = 220;
export const NODE_HEIGHT = 56;
/** Every node is an element of the page: more of them and it becomes slow. */
export const DRAWN_MAX = 600;

/** The neighbours of each node. Edges to unknown nodes, to the node itself and repeated ones are left out. */
export interface Links {
  readonly before: ReadonlyMap<string, readonly string[]>;
  readonly after: ReadonlyMap<string, readonly string[]>;
}

export function linksOf(ids: readonly string[], edges: readonly GraphEdge[]): Links {
  const before = new Map<string, string[]>(ids.map((id) => [id, []]));
  const after = new Map<string, string[]>(ids.map((id) => [id, []]));
  for (const { from, to } of uniqueEdges(edges)) {
    const parents = before.get(to);
    const children = after.get(from);
    if (!parents || !children) continue;
    parents.push(from);
    children.push(to);
  }
  return { before, after };
}

/** One edge for each pair of different nodes. */
export function uniqueEdges<Edge extends GraphEdge>(edges: readonly Edge[]): Edge[] {
  const seen = new Map<string, Set<string>>();
  return edges.filter(({ from, to }) => {
    const targets = seen.get(from) ?? new Set();
    seen.set(from, targets);
    if (from === to || targets.has(to)) return false;
    targets.add(to);
    return true;
  });
}
