/**
 * Finds out whether things wait for each other in a circle (the nodes of a chain, computed KPIs), and which: a person who is
 * told the way round can cut it.
 */

/** Who waits for whom: the ids of the parents by the id of the node, in the order of the definition. */
type ParentIds = ReadonlyMap<string, Iterable<string>>;

const SHOWN_MAX = 20;

/** The ids of one cycle, each before the one that waits for it, from the one that stands first in the definition. */
export function findCycle(nodes: ParentIds): string[] | undefined {
  const left = withUnmetParents(nodes);
  const [start] = left.keys();
  if (start === undefined) return undefined;
  // Everything that is left has a parent that is left, so the way back from child to parent must bite its own tail.
  const trail = new Set<string>();
  let id = start;
  while (!trail.has(id)) {
    trail.add(id);
    [id = ""] = left.get(id) ?? [];
  }
  const followed = [...trail];
  const cycle = followed.slice(followed.indexOf(id)).toReversed();
  const inCycle = new Set(cycle);
  const first = cycle.indexOf([...left.keys()].find((candidate) => inCycle.has(candidate)) ?? id);
  return [...cycle.slice(first), ...cycle.slice(0, first)];
}

/** `a -> b -> a`, where each comes before the next; of a long one the two ends. */
export function drawCycle(cycle: readonly string[]): string {
  const [first = ""] = cycle;
  const half = SHOWN_MAX / 2;
  const shown =
    cycle.length <= SHOWN_MAX
      ? cycle
      : [...cycle.slice(0, half), `(${cycle.length - SHOWN_MAX} more)`, ...cycle.slice(-half)];
  return [...shown, first].join(" -> ");
}

/** What remains when everything without unmet parents is taken away, again and again: nodes in a cycle or behind one. */
function withUnmetParents(nodes: ParentIds): Map<string, Set<string>> {
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
  const free = [...left].filter(([, parents]) => parents.size === 0).map(([id]) => id);
  for (const id of free) {
    left.delete(id);
    for (const child of children.get(id) ?? []) {
      const parents = left.get(child);
      if (parents?.delete(id) && parents.size === 0) free.push(child); // The loop reaches what is added while it runs.
    }
  }
  return left;
}
