/** How long the nodes of a run waited and ran, and which of them the time of the run depended on. */
import type { Graph, GraphNode } from "../definitions/graph.ts";
import type { NodeTimes } from "../replies.ts";
import type { NodeTimesRow } from "../store/timing.ts";

interface Timed {
  times: NodeTimes;
  /** Its end so far; undefined if its parents have not ended. */
  endMs: number | undefined;
  startMs: number | undefined;
  /** The parent that it waited for last. */
  after: GraphNode | undefined;
}

export interface RunTimes {
  nodes: ReadonlyMap<string, NodeTimes>;
  /** The nodes whose times add up to that of the run, in order: each began when the one before it had ended. */
  criticalPath: readonly string[];
}

/** `startedAt` is that of the run. */
export function timesOf(graph: Graph, rows: readonly NodeTimesRow[], startedAt: Date | null): RunTimes {
  const byId = new Map(rows.map((row) => [row.node_id, row]));
  const timed = new Map<string, Timed>();
  for (const node of graph.nodes) {
    const row = byId.get(node.id);
    if (row) timed.set(node.id, timedOf(node, row, byId, startedAt?.getTime()));
  }
  return {
    nodes: new Map([...timed].map(([id, { times }]) => [id, times])),
    criticalPath: criticalPathOf(timed),
  };
}

function timedOf(
  node: GraphNode,
  row: NodeTimesRow,
  byId: ReadonlyMap<string, NodeTimesRow>,
  runStartMs: number | undefined,
): Timed {
  const { status, attempts, ran_ms: ranMs, read_at } = row;
  const { readyMs, after } = readiness(node, byId, runStartMs);
  const startMs = row.started_at?.getTime();
  const nowMs = read_at.getTime();
  const endMs = row.ended_at?.getTime() ?? (startMs !== undefined || readyMs !== undefined ? nowMs : undefined);
  const isSkipped = status === "SKIPPED" && startMs === undefined;
  const waitedMs = readyMs === undefined || isSkipped ? 0 : Math.max(0, (startMs ?? endMs ?? readyMs) - readyMs);
  const pausedMs = startMs === undefined || endMs === undefined ? 0 : Math.max(0, endMs - startMs - ranMs);
  return { times: { status, waitedMs, ranMs, pausedMs, attempts }, startMs, endMs, after };
}

/** When the parents allowed it, and which of them was the last. */
function readiness(
  { parents, runWhen }: GraphNode,
  byId: ReadonlyMap<string, NodeTimesRow>,
  runStartMs: number | undefined,
): { readyMs: number | undefined; after: GraphNode | undefined } {
  const ended = parents.flatMap((parent) => {
    const row = byId.get(parent.id);
    return row?.ended_at ? [{ parent, status: row.status, endMs: row.ended_at.getTime() }] : [];
  });
  const failed = runWhen === "one_failed" ? ended.filter(({ status }) => status === "FAILED") : [];
  if (failed.length > 0) {
    const first = failed.reduce((one, other) => (other.endMs < one.endMs ? other : one));
    return { readyMs: first.endMs, after: first.parent };
  }
  if (ended.length < parents.length) return { readyMs: undefined, after: undefined };
  const last = ended.reduce<(typeof ended)[number] | undefined>(
    (one, other) => (one === undefined || other.endMs > one.endMs ? other : one),
    undefined,
  );
  return { readyMs: last?.endMs ?? runStartMs, after: last?.parent };
}

/** Backwards from the node that ended last. While the run goes on, from the one that has been at work for longest. */
function criticalPathOf(timed: ReadonlyMap<string, Timed>): string[] {
  const wasAtWork = ({ times }: Timed) => times.attempts > 0 || times.waitedMs > 0;
  let last: [id: string, node: Timed] | undefined;
  for (const entry of timed) {
    const [, node] = entry;
    if (wasAtWork(node) && (last === undefined || isLater(node, last[1]))) last = entry;
  }
  const path: string[] = [];
  for (let at = last; at; ) {
    const [id, node] = at;
    if (wasAtWork(node)) path.push(id);
    const before: string | undefined = node.after?.id;
    const parent: Timed | undefined = before === undefined ? undefined : timed.get(before);
    at = before !== undefined && parent ? [before, parent] : undefined;
  }
  return path.toReversed();
}

function isLater(one: Timed, other: Timed): boolean {
  const [end, otherEnd] = [one.endMs ?? 0, other.endMs ?? 0];
  return end === otherEnd ? (one.startMs ?? Infinity) < (other.startMs ?? Infinity) : end > otherEnd;
}
