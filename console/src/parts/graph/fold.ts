/**
 * Groups nodes until a large graph is small enough to draw. Three kinds of groups: twins (same parents and children, such as the
 * items of a map), paths (nodes in a row), and regions that have finished or not started. Every node is in exactly one group;
 * every edge is inside a group or between two. An acyclic graph stays acyclic.
 */
import type { State } from "../states/state.ts";
import { type GraphEdge, type Links, linksOf } from "./model.ts";

export interface FoldNode {
  id: string;
  state?: State | undefined;
}
export interface Folded {
  /** The nodes in each drawn node. An ungrouped node has its own id. */
  groups: ReadonlyMap<string, readonly string[]>;
  edges: readonly GraphEdge[];
}

interface Draft extends Folded {
  states: ReadonlyMap<string, State | "mixed">;
}
/** For each node that joins a group: the first node of that group. */
type Pass = (draft: Draft, links: Links, canJoin: (id: string) => boolean) => Map<string, string>;

const ROUNDS = 3;
const GROUP_PREFIX = "group:";
/** Users look for these states, so they are grouped last. */
const LOUD: ReadonlySet<string> = new Set<State | "mixed">(["failed", "running", "mixed"]);

/** Nodes in `apart` are never grouped. Groups as few nodes as needed to reach `max`; the result may still be larger. */
export function fold(
  nodes: readonly FoldNode[],
  edges: readonly GraphEdge[],
  { max, apart = new Set() }: { max: number; apart?: ReadonlySet<string> },
): Folded {
  let draft: Draft = {
    groups: new Map(nodes.map(({ id }) => [id, [id]])),
    states: new Map(nodes.map(({ id, state }) => [id, state ?? "waiting"])),
    edges,
  };
  const isApart = (id: string) => apart.has(id);
  const isLoud = (id: string) => LOUD.has(draft.states.get(id) ?? "");
  for (const withLoud of [false, true]) {
    for (let round = 0; round < ROUNDS; round += 1) {
      const before = draft.groups.size;
      for (const pass of [twins, runs, regions]) {
        if (draft.groups.size <= max) return draft;
        const links = linksOf([...draft.groups.keys()], draft.edges);
        draft = joined(
          draft,
          pass(draft, links, (id) => !isApart(id) && (withLoud || !isLoud(id))),
        );
      }
      if (draft.groups.size === before) break;
    }
  }
  return draft;
}

const twins: Pass = ({ groups, states }, { before, after }, canJoin) => {
  const target = new Map<string, string>();
  const first = new Map<string, string>();
  for (const id of groups.keys()) {
    if (!canJoin(id)) continue;
    const key = JSON.stringify([states.get(id), before.get(id)?.toSorted(), after.get(id)?.toSorted()]);
    if (!first.has(key)) first.set(key, id);
    target.set(id, first.get(key) ?? id);
  }
  return target;
};

const runs: Pass = ({ groups }, { before, after }, canJoin) => {
  const target = new Map<string, string>();
  const next = (id: string) => {
    const [child, other] = after.get(id) ?? [];
    const isRow = child !== undefined && other === undefined && before.get(child)?.length === 1;
    return isRow && canJoin(child) ? child : undefined;
  };
  const isInside = new Set([...groups.keys()].filter(canJoin).flatMap((id) => next(id) ?? []));
  for (const first of groups.keys()) {
    if (isInside.has(first) || !canJoin(first)) continue;
    for (let id: string | undefined = first; id !== undefined && !target.has(id); id = next(id)) target.set(id, first);
  }
  return target;
};

/**
 * Succeeded nodes whose ancestors have all succeeded, and waiting nodes whose descendants all wait. No path leaves such a region
 * and re-enters it, so it can be one node.
 */
const regions: Pass = ({ groups, states }, links, canJoin) => {
  const target = new Map<string, string>();
  const ids = [...groups.keys()];
  const isEnded = (id: string) => canJoin(id) && states.get(id) === "success";
  const isNotBegun = (id: string) => canJoin(id) && ["waiting", "skipped", "stopped"].includes(states.get(id) ?? "");
  for (const closed of [closedUnder(ids, isEnded, links.after), closedUnder(ids, isNotBegun, links.before)]) {
    for (const start of ids) {
      if (!closed.has(start) || target.has(start)) continue;
      const open = [start];
      for (let id = open.pop(); id !== undefined; id = open.pop()) {
        if (target.has(id) || !closed.has(id)) continue;
        target.set(id, start);
        open.push(...(links.before.get(id) ?? []), ...(links.after.get(id) ?? []));
      }
    }
  }
  return target;
};

/** The nodes that pass the test, without those that are reached over `along` from one that does not. */
function closedUnder(ids: readonly string[], test: (id: string) => boolean, along: Links["after"]): Set<string> {
  const closed = new Set(ids.filter(test));
  const open = ids.filter((id) => !closed.has(id));
  for (let id = open.pop(); id !== undefined; id = open.pop())
    for (const next of along.get(id) ?? []) if (closed.delete(next)) open.push(next);
  return closed;
}

function joined({ groups, states, edges }: Draft, target: ReadonlyMap<string, string>): Draft {
  const members = new Map<string, string[]>();
  for (const id of groups.keys()) {
    const name = target.get(id) ?? id;
    const list = members.get(name);
    if (list) list.push(id);
    else members.set(name, [id]);
  }
  const owner = new Map<string, string>();
  const nextGroups = new Map<string, readonly string[]>();
  const nextStates = new Map<string, State | "mixed">();
  for (const parts of members.values()) {
    const [first = ""] = parts;
    const nodes = parts.flatMap((part) => groups.get(part) ?? []);
    const id = nodes.length === 1 || first.startsWith(GROUP_PREFIX) ? first : `${GROUP_PREFIX}${first}`;
    nextGroups.set(id, nodes);
    const found = new Set(parts.map((part) => states.get(part) ?? "mixed"));
    nextStates.set(id, found.size === 1 ? ([...found][0] as State) : "mixed");
    for (const part of parts) owner.set(part, id);
  }
  const nextEdges = new Map<string, GraphEdge>();
  for (const edge of edges) {
    const from = owner.get(edge.from);
    const to = owner.get(edge.to);
    if (from !== undefined && to !== undefined && from !== to) nextEdges.set(`${from}\n${to}`, { ...edge, from, to });
  }
  return { groups: nextGroups, states: nextStates, edges: [...nextEdges.values()] };
}

/** The nodes at most `depth` edges from `focus`, nearest first. */
export function around(
  links: Links,
  focus: string,
  { depth, max }: { depth: number; max: number },
): ReadonlySet<string> {
  const found = new Set([focus]);
  for (const along of [links.before, links.after]) {
    const seen = new Set([focus]);
    let edge: readonly string[] = [focus];
    // Half of the room for each direction.
    const most = found.size + max / 2;
    for (let step = 0; step < depth && edge.length > 0; step += 1) {
      const next: string[] = [];
      for (const id of edge.flatMap((one) => along.get(one) ?? [])) {
        if (seen.has(id) || found.size >= most) continue;
        seen.add(id);
        found.add(id);
        next.push(id);
      }
      edge = next;
    }
  }
  return found;
}
