/** Two runs beside each other, node by node: which one made the run slower, and by what. */
import type { Graph } from "../definitions/graph.ts";
import type { Cause, ComparedNode, NodeTimes } from "../replies.ts";
import type { RunTimes } from "./times.ts";

interface ComparedRun {
  graph: Graph;
  times: RunTimes;
}

/** A difference below this is noise. */
const NOTICED_MS = 50;

/** Nodes that cost most first: those on the critical path by their difference, then those beside it, then what became faster. */
export function compare(now: ComparedRun, before: ComparedRun): ComparedNode[] {
  const critical = new Set(now.times.criticalPath);
  const ids = new Set([...now.graph.byId.keys(), ...before.graph.byId.keys()]);
  const nodes = [...ids].map((nodeId): ComparedNode => {
    const node = now.graph.byId.get(nodeId) ?? before.graph.byId.get(nodeId);
    const times = { now: now.times.nodes.get(nodeId) ?? null, before: before.times.nodes.get(nodeId) ?? null };
    return {
      nodeId,
      type: node?.def.type ?? "",
      pool: node?.def.pool ?? null,
      waitsFor: node?.waitsFor ?? [],
      critical: critical.has(nodeId),
      ...times,
      differenceMs: totalOf(times.now) - totalOf(times.before),
      cause: causeOf(times.now, times.before),
    };
  });
  const costOf = (node: ComparedNode) => (node.critical ? node.differenceMs : 0);
  return nodes.sort((one, other) => costOf(other) - costOf(one) || other.differenceMs - one.differenceMs);
}

function totalOf(times: NodeTimes | null): number {
  return times === null ? 0 : times.waitedMs + times.ranMs + times.pausedMs;
}

function causeOf(now: NodeTimes | null, before: NodeTimes | null): Cause {
  if (now === null) return "removed";
  if (before === null) return "added";
  if (now.attempts === 0 && before.attempts === 0) return "same";
  if (before.attempts === 0) return "not_run_before";
  if (now.attempts === 0 && now.waitedMs === 0) return "not_run_now";
  const difference = totalOf(now) - totalOf(before);
  if (Math.abs(difference) < NOTICED_MS) return "same";
  const sign = Math.sign(difference);
  const waited = sign * (now.waitedMs - before.waitedMs);
  const ran = sign * (now.ranMs - before.ranMs);
  const paused = sign * (now.pausedMs - before.pausedMs);
  if (now.attempts > before.attempts && difference > 0 && ran + paused >= waited) return "retried";
  if (waited >= ran && waited >= paused) return "waited";
  return ran >= paused ? "ran" : "paused";
}
