/** Reads for pages that ask how long things took: the timeline of a run, its comparison with another, the grid of a chain. */
import type { Db } from "../../kernel/data/db.ts";
import { chainsError } from "../catalogue.ts";
import type { Definitions } from "../definitions/definitions.ts";
import type { Graph } from "../definitions/graph.ts";
import type { RunCache } from "../engine/run-cache.ts";
import type { ComparedNode, GridNode } from "../replies.ts";
import * as store from "../store/timing.ts";
import { compare } from "./comparison.ts";
import { type RunTimes, timesOf } from "./times.ts";

export interface Timing {
  timeline(runId: string): Promise<Timeline>;
  /** Without `withRunId`, with the last successful run before it. */
  compare(runId: string, withRunId: string | null): Promise<Comparison>;
  /** States of a page of nodes in runs of a chain: the last ones, or those up to the run `until`. */
  grid(chainId: string, asked: GridAsked): Promise<Grid>;
}

export interface Timeline {
  attempts: store.EarlierAttemptRow[];
  isTruncated: boolean;
  criticalPath: readonly string[];
}

export interface Comparison {
  run: store.TimedRunRow;
  /** Undefined: there is no earlier successful run. */
  other: store.TimedRunRow | undefined;
  /** Earlier runs of the chain that have ended, newest first. */
  earlier: store.TimedRunRow[];
  nodes: ComparedNode[];
}

export interface GridAsked {
  until: string | null;
  runs: number;
  from: number;
  size: number;
}

export interface Grid {
  /** Newest first. */
  runs: store.TimedRunRow[];
  /** In topological order; those that only older runs have come last. */
  nodes: GridNode[];
  /** Of all nodes. */
  total: number;
}

const ATTEMPTS_MAX = 10_000;
/** How far back a successful run is looked for. */
const EARLIER_RUNS_MAX = 200;
const EARLIER_RUNS_SHOWN = 25;

export function createTiming(deps: { db: Db; runCache: RunCache; definitions: Pick<Definitions, "get"> }): Timing {
  const { db, runCache } = deps;

  async function runOf(runId: string): Promise<store.TimedRunRow> {
    const run = await store.readTimedRun(db, runId);
    if (!run) throw chainsError("RUN_NOT_FOUND", { runId });
    return run;
  }

  async function timed(run: store.TimedRunRow): Promise<{ graph: Graph; times: RunTimes }> {
    const [known, rows] = await Promise.all([runCache.get(db, [run.run_id]), store.readNodeTimes(db, run.run_id)]);
    const graph = known.get(run.run_id)?.graph;
    if (!graph) throw chainsError("RUN_NOT_FOUND", { runId: run.run_id }); // It was deleted meanwhile.
    return { graph, times: timesOf(graph, rows, run.started_at) };
  }

  return {
    async timeline(runId) {
      const run = await runOf(runId);
      const [{ times }, attempts] = await Promise.all([
        timed(run),
        store.readEarlierAttempts(db, runId, ATTEMPTS_MAX + 1),
      ]);
      return {
        attempts: attempts.slice(0, ATTEMPTS_MAX),
        isTruncated: attempts.length > ATTEMPTS_MAX,
        criticalPath: times.criticalPath,
      };
    },

    async compare(runId, withRunId) {
      const run = await runOf(runId);
      const { chain_id } = run;
      const runs =
        chain_id === null ? [] : await store.readLastRuns(db, chain_id, { until: runId, limit: EARLIER_RUNS_MAX + 1 });
      const earlier = runs.filter(({ run_id, started_at, ended_at }) => run_id !== runId && started_at && ended_at);
      const other = withRunId === null ? earlier.find(({ status }) => status === "SUCCESS") : await runOf(withRunId);
      const nodes = other ? compare(await timed(run), await timed(other)) : [];
      return { run, other, earlier: earlier.slice(0, EARLIER_RUNS_SHOWN), nodes };
    },

    async grid(chainId, { until, runs: limit, from, size }) {
      const runs = await store.readLastRuns(db, chainId, { until, limit });
      if (runs.length === 0) await deps.definitions.get(chainId); // It fails if there is no such chain.
      const all = nodesOf(await graphsOf(runs));
      const page = all.slice(from, from + size);
      const rows = await store.readNodeStates(
        db,
        runs.map(({ run_id }) => run_id),
        page.map(({ id }) => id),
      );
      const states = new Map(rows.map(({ run_id, node_id, status }) => [`${run_id} ${node_id}`, status]));
      const nodes = page.map(({ id, type }) => ({
        nodeId: id,
        type,
        statuses: runs.map(({ run_id }) => states.get(`${run_id} ${id}`) ?? null),
      }));
      return { runs, nodes, total: all.length };
    },
  };

  /** One for each version, the newest first. */
  async function graphsOf(runs: readonly store.TimedRunRow[]): Promise<Graph[]> {
    const ofVersion = new Map<number | null, string>();
    for (const { run_id, chain_version } of runs)
      if (!ofVersion.has(chain_version)) ofVersion.set(chain_version, run_id);
    return [...(await runCache.get(db, [...ofVersion.values()])).values()].map(({ graph }) => graph);
  }
}

function nodesOf(graphs: readonly Graph[]): { id: string; type: string }[] {
  const types = new Map<string, string>();
  for (const { nodes } of graphs) for (const { id, def } of nodes) if (!types.has(id)) types.set(id, def.type);
  return [...types].map(([id, type]) => ({ id, type }));
}
