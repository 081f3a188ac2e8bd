/** Which nodes of a graph are drawn: all, folded groups, or the surroundings of one node. */
import { around, type Folded, type FoldNode, fold } from "./fold.ts";
import { DRAWN_MAX, type GraphEdge, linksOf, uniqueEdges } from "./model.ts";

export interface Plan extends Folded {
  kind: "all" | "folded" | "focused";
  /** Neighbours that are left out, of drawn nodes that have such. */
  hidden: ReadonlyMap<string, { before: number; after: number }>;
}

export interface Wish {
  /** The node in the middle of a graph that is too large to be drawn. */
  focus: string | undefined;
  depth: number;
  /** Nodes of groups that a person has unfolded. */
  unfolded: ReadonlySet<string>;
}

const NOTHING_HIDDEN: Plan["hidden"] = new Map();

export function planOf(nodes: readonly FoldNode[], edges: readonly GraphEdge[], wish: Wish, max = DRAWN_MAX): Plan {
  const ids = nodes.map(({ id }) => id);
  if (nodes.length <= max) {
    const known = new Set(ids);
    const drawn = uniqueEdges(edges).filter(({ from, to }) => known.has(from) && known.has(to));
    return { kind: "all", groups: alone(ids), edges: drawn, hidden: NOTHING_HIDDEN };
  }
  // The node that a person looks at stands by itself.
  const apart = new Set(wish.focus === undefined ? wish.unfolded : [...wish.unfolded, wish.focus]);
  const folded = fold(nodes, edges, { max, apart });
  if (folded.groups.size <= max) return { kind: "folded", ...folded, hidden: NOTHING_HIDDEN };
  const links = linksOf(ids, edges);
  const focus = wish.focus !== undefined && links.before.has(wish.focus) ? wish.focus : (ids[0] ?? "");
  const drawn = around(links, focus, { depth: wish.depth, max });
  const left = (list: readonly string[] | undefined) => (list ?? []).filter((id) => !drawn.has(id)).length;
  return {
    kind: "focused",
    groups: alone(drawn),
    edges: uniqueEdges(edges).filter(({ from, to }) => drawn.has(from) && drawn.has(to)),
    hidden: new Map(
      [...drawn].map((id) => [id, { before: left(links.before.get(id)), after: left(links.after.get(id)) }]),
    ),
  };
}

function alone(ids: Iterable<string>): Map<string, readonly string[]> {
  return new Map(Array.from(ids, (id) => [id, [id]]));
}
