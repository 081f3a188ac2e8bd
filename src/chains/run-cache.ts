/**
 * What never changes about a run, kept in memory: its facts and its graph. Runs of one version of a chain share a graph.
 * Both caches are bounded; what falls out is read again.
 */
import type { Queryable } from "../kernel/db.ts";
import { buildGraph, type Graph } from "./graph.ts";
import { type RunFacts, readDag, readFacts } from "./store/runs.ts";

export interface KnownRun {
  facts: RunFacts;
  graph: Graph;
}

export interface RunCache {
  /** Runs that do not exist are missing from the answer. */
  get(db: Queryable, runIds: readonly string[]): Promise<Map<string, KnownRun>>;
}

const RUNS_MAX = 20_000;
/** Over all graphs; a node takes about a kilobyte. */
const NODES_MAX = 200_000;

export function createRunCache(): RunCache {
  const runs = new Map<string, KnownRun>();
  const graphs = new Map<string, Graph>();
  let nodes = 0;

  function remember(key: string, graph: Graph): Graph {
    graphs.set(key, graph);
    nodes += graph.nodes.length;
    for (const [oldest, old] of graphs) {
      if (nodes <= NODES_MAX || oldest === key) break;
      graphs.delete(oldest);
      nodes -= old.nodes.length;
    }
    return graph;
  }

  async function graphOf(db: Queryable, facts: RunFacts): Promise<Graph> {
    const key = facts.chain_id === null ? facts.run_id : `${facts.chain_id}/${facts.chain_version}`;
    const known = graphs.get(key);
    if (known) return known;
    const graph = buildGraph(await readDag(db, facts.run_id));
    return graphs.get(key) ?? remember(key, graph); // Another may have been quicker.
  }

  return {
    async get(db, runIds) {
      const found = new Map<string, KnownRun>();
      const unknown = runIds.filter((runId) => !runs.has(runId));
      for (const facts of unknown.length > 0 ? await readFacts(db, unknown) : []) {
        runs.set(facts.run_id, { facts, graph: await graphOf(db, facts) });
      }
      for (const runId of runIds) {
        const run = runs.get(runId);
        if (run) found.set(runId, run);
      }
      for (const oldest of runs.keys()) {
        if (runs.size <= RUNS_MAX) break;
        runs.delete(oldest);
      }
      return found;
    },
  };
}
