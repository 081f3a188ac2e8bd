/**
 * A graph as a tree that a terminal can show, from one node on. What is reached on several ways hangs on the shortest and is
 * only named on the others, with a sign for those that lead round in a circle.
 */

export interface Step {
  to: string;
  /** What there is to say of the way there. */
  note: string;
}
/** Where the ways from a node lead. */
export type Steps = ReadonlyMap<string, readonly Step[]>;

export interface TreeLine {
  id: string;
  /** `│  ├─ `: the lines that lead to it. */
  branches: string;
  /** Of all ways from the node above to it. */
  notes: string[];
  /** Nothing where the node is drawn with all that lies behind it. */
  sign: "" | "repeat" | "circle";
}

export function drawTree(start: string, steps: Steps): TreeLine[] {
  const parents = shortestWays(start, steps);
  const circles = circlesFrom(start, steps);
  const lines: TreeLine[] = [{ id: start, branches: "", notes: [], sign: "" }];

  function draw(id: string, indentation: string): void {
    const children = [...notesByChild(steps.get(id) ?? [])];
    for (const [index, [child, notes]] of children.entries()) {
      const isLast = index === children.length - 1;
      const isOwn = parents.get(child) === id;
      const sign = isOwn ? "" : circles.get(child) === circles.get(id) ? "circle" : "repeat";
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

/** By node, the one before it on a shortest way from the start. */
function shortestWays(start: string, steps: Steps): Map<string, string | undefined> {
  const parents = new Map<string, string | undefined>([[start, undefined]]);
  for (const id of parents.keys()) {
    for (const { to } of steps.get(id) ?? []) if (!parents.has(to)) parents.set(to, id); // Handed out later by the loop.
  }
  return parents;
}

/**
 * By node, a name for the circle that it is part of: two nodes have the same if each can be reached from the other (Tarjan's
 * strongly connected components). It calls itself once for each node, of which a graph that is shown has at most 2,000.
 */
function circlesFrom(start: string, steps: Steps): Map<string, string> {
  const ranks = new Map<string, number>();
  const circles = new Map<string, string>();
  const open: string[] = [];

  function visit(id: string): number {
    const rank = ranks.size;
    ranks.set(id, rank);
    open.push(id);
    let lowest = rank;
    for (const { to } of steps.get(id) ?? []) {
      const known = ranks.get(to);
      if (known === undefined) lowest = Math.min(lowest, visit(to));
      else if (!circles.has(to)) lowest = Math.min(lowest, known);
    }
    if (lowest === rank) for (const member of open.splice(open.indexOf(id))) circles.set(member, id);
    return lowest;
  }
  visit(start);
  return circles;
}
