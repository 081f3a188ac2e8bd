/** Finds a cycle in a graph of dependencies (the nodes of a chain, computed KPIs), so that an error message can show it. */

/** The parents of each node, in the order of the definition. */
type ParentIds = ReadonlyMap<string, Iterable<string>>;

const SHOWN_MAX = 20;

/** The ids of one cycle, parents before children, starting with the node that comes first in the definition. */
export function findCycle(nodes: ParentIds): string[] | undefined {
  const left = withoutRoots(nodes);
  const [start] = left.keys();
  if (start === undefined) return undefined;
  // Every remaining node has a remaining parent, so following parents must reach a node twice.
  const visited = new Set<string>();
  let id = start;
  while (!visited.has(id)) {
    visited.add(id);
    [id = ""] = left.get(id) ?? [];
  }
  const path = [...visited];
  const cycle = path.slice(path.indexOf(id)).toReversed();
  const inCycle = new Set(cycle);
  const first = cycle.indexOf([...left.keys()].find((candidate) => inCycle.has(candidate)) ?? id);
  return [...cycle.slice(first), ...cycle.slice(0, first)];
}

/** `a -> b -> a`, parents first; a long cycle is shortened in the middle. */
export function drawCycle(cycle: readonly string[]): string {
  const [first = ""] = cycle;
  const half = SHOWN_MAX / 2;
  const shown =
    cycle.length <= SHOWN_MAX
      ? cycle
      : [...cycle.slice(0, half), `(${cycle.length - SHOWN_MAX} more)`, ...cycle.slice(-half)];
  return [...shown, first].join(" -> ");
}

/** What remains after repeatedly removing nodes without parents: the nodes in a cycle, and their descendants. */
function withoutRoots(nodes: ParentIds): Map<string, Set<string>> {
  const left = new Map<string, Set<string>>();
  const children = new Map<string, string[]>();
  for (const [id, parents] of nodes) {
    const known = new Set([...parents].filter((parent) => nodes.has(parent)));
    left.set(id, known);
    for (const parent of known) {
      const siblings = children.get(parent);
      if (siblings) siblings.push(id);
      else children.set(parent, [id]);
    }
  }
  const roots = [...left].filter(([, parents]) => parents.size === 0).map(([id]) => id);
  for (const id of roots) {
    left.delete(id);
    for (const child of children.get(id) ?? []) {
      const parents = left.get(child);
      if (parents?.delete(id) && parents.size === 0) roots.push(child); // The loop also visits added items.
    }
  }
  return left;
}
