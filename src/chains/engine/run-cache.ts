/**
 * A cache of what never changes about a run: its facts and its graph. Runs of one version of a chain share a graph. Facts are
 * bounded by their size, graphs by their nodes; evicted entries are read again. Retention deletes runs, in any process: a
 * cached run may no longer exist, so whoever changes or shows a run reads its row first.
 */
import type { Queryable } from "../../kernel/data/db.ts";
import { buildGraph, type Graph } from "../definitions/graph.ts";
import { type RunFacts, readDag, readFacts } from "../store/runs.ts";

export interface KnownRun {
  facts: RunFacts;
  graph: Graph;
}

export interface RunCache {
  /** In the order of `runIds`. Runs that do not exist are left out, unless they were cached before they were deleted. */
  get(db: Queryable, runIds: readonly string[]): Promise<Map<string, KnownRun>>;
  /** Adds runs that were just inserted. */
  add(runs: readonly RunFacts[]): void;
  /** Drops a run that was found deleted. */
  forget(runId: string): void;
}

/** Characters of `params`, plus a fixed size for the rest of each run. */
const FACTS_SIZE_MAX = 32_000_000;
const FACTS_SIZE_MIN = 500;
/** Over all graphs; a node takes about a kilobyte. */
const NODES_MAX = 200_000;

export function createRunCache(tableName?: (given: string) => string): RunCache {
  const facts = createBounded<RunFacts>(FACTS_SIZE_MAX, ({ params }) => FACTS_SIZE_MIN + JSON.stringify(params).length);
  const graphs = createBounded<Graph>(NODES_MAX, ({ nodes }) => nodes.length);

  /** Undefined if the run was deleted. */
  async function readGraph(db: Queryable, run: RunFacts): Promise<Graph | undefined> {
    const dag = await readDag(db, run.run_id);
    if (!dag) return undefined;
    const graph = buildGraph(dag, tableName);
    return graphs.get(graphKey(run)) ?? graphs.add(graphKey(run), graph); // A concurrent call may have added it.
  }

  return {
    async get(db, runIds) {
      const known = new Map<string, RunFacts>();
      const unknown: string[] = [];
      for (const runId of runIds) {
        const run = facts.get(runId);
        if (run) known.set(runId, run);
        else unknown.push(runId);
      }
      for (const run of unknown.length > 0 ? await readFacts(db, unknown) : []) {
        known.set(run.run_id, facts.add(run.run_id, run));
      }
      const found = new Map<string, KnownRun>();
      for (const runId of runIds) {
        const run = known.get(runId);
        if (!run) continue;
        const graph = graphs.get(graphKey(run)) ?? (await readGraph(db, run));
        if (graph) found.set(runId, { facts: run, graph });
        else facts.delete(runId);
      }
      return found;
    },
    add(runs) {
      for (const run of runs) facts.add(run.run_id, run);
    },
    forget: facts.delete,
  };
}

function graphKey({ run_id, chain_id, chain_version }: RunFacts): string {
  return chain_id === null ? run_id : `${chain_id}/${chain_version}`;
}

/** A map that evicts its oldest entries while their total size exceeds `sizeMax`; the newest always stays. */
function createBounded<Value>(sizeMax: number, sizeOf: (value: Value) => number) {
  const entries = new Map<string, { value: Value; size: number }>();
  let size = 0;

  function remove(key: string): void {
    size -= entries.get(key)?.size ?? 0;
    entries.delete(key);
  }

  return {
    get: (key: string) => entries.get(key)?.value,
    add(key: string, value: Value): Value {
      remove(key);
      const entry = { value, size: sizeOf(value) };
      entries.set(key, entry);
      size += entry.size;
      for (const oldest of entries.keys()) {
        if (size <= sizeMax || oldest === key) break;
        remove(oldest);
      }
      return value;
    },
    delete: remove,
  };
}
