/**
 * A graph as a tree for a terminal, starting from one node. A node with several paths is drawn on the shortest one and only named
 * on the others, with a symbol if it is part of a cycle.
 */

export interface Step {
  to: string;
  /** A note about the edge. */
  note: string;
}
/** The edges from each node. */
export type Steps = ReadonlyMap<string, readonly Step[]>;

export interface TreeLine {
  id: string;
  /** `│  ├─ ` */
  branches: string;
  /** The notes of all edges from the node above. */
  notes: string[];
  /** Empty if the node is drawn with its children. */
  sign: "" | "repeat" | "cycle";
}

export function drawTree(start: string, steps: Steps): TreeLine[] {
  const parents = shortestWays(start, steps);
  const components = componentsFrom(start, steps);
  const lines: TreeLine[] = [{ id: start, branches: "", notes: [], sign: "" }];

  function draw(id: string, indentation: string): void {
    const children = [...notesByChild(steps.get(id) ?? [])];
    for (const [index, [child, notes]] of children.entries()) {
      const isLast = index === children.length - 1;
      const isOwn = parents.get(child) === id;
      const sign = isOwn ? "" : components.get(child) === components.get(id) ? "cycle" : "repeat";
      lines.push({ id: child, branches: `${indentation}${isLast ? "└─ " : "├─ "}`, notes, sign });
      if (isOwn) draw(child, `${indentation}${isLast ? "   " : "│  "}`);
    }
  }
  draw(start, "");
  return lines;
}

function notesByChild(steps: readonly Step[]): Map<string, string[]> {
  const children = new Map<string, string[]>();
  for (const { to, note } of steps) {
    const notes = children.get(to) ?? [];
    children.set(to, notes);
    if (note !== "" && !notes.includes(note)) notes.push(note);
  }
  return children;
}

/** The predecessor of each node on a shortest path from the start. */
function shortestWays(start: string, steps: Steps): Map<string, string | undefined> {
  const parents = new Map<string, string | undefined>([[start, undefined]]);
  for (const id of parents.keys()) {
    for (const { to } of steps.get(id) ?? []) if (!parents.has(to)) parents.set(to, id); // The loop visits it later.
  }
  return parents;
}

/**
 * The strongly connected component of each node, by Tarjan's algorithm: nodes of a cycle have the same. Recursive, since a graph
 * has at most 2,000 nodes here.
 */
function componentsFrom(start: string, steps: Steps): Map<string, string> {
  const ranks = new Map<string, number>();
  const components = new Map<string, string>();
  const open: string[] = [];

  function visit(id: string): number {
    const rank = ranks.size;
    ranks.set(id, rank);
    open.push(id);
    let lowest = rank;
    for (const { to } of steps.get(id) ?? []) {
      const known = ranks.get(to);
      if (known === undefined) lowest = Math.min(lowest, visit(to));
      else if (!components.has(to)) lowest = Math.min(lowest, known);
    }
    if (lowest === rank) for (const member of open.splice(open.indexOf(id))) components.set(member, id);
    return lowest;
  }
  visit(start);
  return components;
}
