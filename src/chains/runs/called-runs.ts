/**
 * The port for a module whose work waits for runs, and whose runs nodes wait for. A run is started in the transaction of the
 * caller; the caller is told in the transaction that ends the run, so neither end of the wait can be lost.
 */
import type { Db, Queryable, Tx } from "../../kernel/data/db.ts";
import type { Ids } from "../../kernel/ids.ts";
import type { Wake } from "../../kernel/work/wake.ts";
import { type ChainsHints, chainsError } from "../catalogue.ts";
import type { CallerListener } from "../engine/ended.ts";
import type { Engine } from "../engine/engine.ts";
import { CALLED_TRIGGER } from "../engine/notify.ts";
import type { RunCache } from "../engine/run-cache.ts";
import { ENDED_RUN, type RunStatus } from "../engine/states.ts";
import type { ChildOutcome } from "../engine/transition.ts";
import { artifactBytes, readArtifacts } from "../store/children.ts";
import { type NodeWait, openNodes, rootOf, stillWaiting } from "../store/node-waits.ts";
import { findChainToRun, insertChainRuns, readOutcome, readStatus, runsUnderWay } from "../store/runs.ts";
import { TIMER_TOPIC } from "../topics.ts";
import type { Reference } from "../types/node-type.ts";
import type { Runs } from "./runs.ts";

export interface CalledRuns {
  /** The chains that can be called. */
  chains: Reference;
  /** Starts a run of the chain with this name. */
  start(tx: Tx, chain: string, request: CallRequest): Promise<string>;
  /** How the run ended; undefined while it is under way. */
  outcome(runId: string, artifactBytesMax: number): Promise<CallEnd | undefined>;
  /** Those of the runs that have not ended. */
  underWay(runIds: readonly string[]): Promise<Set<string>>;
  /** Stops it in the name of Millrace. `also` writes in that transaction, unless it is being stopped already or has ended. */
  stop(runId: string, reason: string, also?: (tx: Queryable) => Promise<void>): Promise<void>;
  /** The run that this run and its ancestors were started for. */
  rootOf(runId: string): Promise<string | undefined>;
  /** Sets the listener that is called in the transaction that ends called runs, or continues ended ones. */
  onChange(listener: CallerListener): void;
  /** Ends a node that is parked for this. `early`: it is not parked yet. `gone`: it no longer waits. */
  endWait(wait: NodeWait, outcome: ChildOutcome): Promise<"counted" | "early" | "gone">;
  /** Those whose node waits, or may be about to. */
  stillWaiting(db: Queryable, waits: readonly NodeWait[]): Promise<Set<string>>;
  /** Those whose node has not ended, in a run that is not being stopped: a later attempt of it may wait again. */
  openNodes(db: Queryable, waits: readonly NodeWait[]): Promise<Set<string>>;
}

export interface CallRequest {
  opTime: string;
  params: Record<string, unknown>;
  startedBy: string;
  /** 0 if it is left out. */
  priority?: number;
}

export interface CallEnd {
  status: RunStatus;
  reason: string | null;
  /** Of a run that has succeeded, the artifacts of the nodes without children. Null if they exceed the limit together. */
  artifacts: unknown[] | null;
  artifactBytes: number;
}

export interface CalledRunsDeps {
  db: Db;
  wake: Wake;
  hints: ChainsHints;
  ids: Ids;
  runs: Runs;
  engine: Engine;
  runCache: RunCache;
  chainNamed: Reference;
  onChange: CalledRuns["onChange"];
}

export function createCalledRuns(deps: CalledRunsDeps): CalledRuns {
  const { db, wake, hints, ids, runs, engine, runCache } = deps;
  return {
    chains: deps.chainNamed,

    async start(tx, chain, { opTime, params, startedBy, priority = 0 }) {
      const found = await findChainToRun(tx, chain);
      if (!found) throw chainsError("CHAIN_NOT_FOUND", { chainId: `named \`${chain}\`` });
      if (!found.enabled) throw chainsError("CHAIN_DISABLED", { chainId: found.chain_id, name: chain });
      const run = {
        run_id: ids.uuid(),
        chain_id: found.chain_id,
        job_id: null,
        params,
        op_time: opTime,
        priority,
        trigger: CALLED_TRIGGER,
        triggered_by: startedBy,
        parent_run_id: null,
        parent_node_id: null,
        depth: 0,
        request: null,
      };
      const made = await insertChainRuns(tx, [run]);
      if (made.length === 0) throw chainsError("CHAIN_DISABLED", { chainId: found.chain_id, name: chain });
      tx.afterCommit(() => wake.hint(TIMER_TOPIC));
      hints.changed(tx, "run", run.run_id);
      return run.run_id;
    },

    async outcome(runId, artifactBytesMax) {
      const status = await readStatus(db, runId);
      const none = { artifacts: [], artifactBytes: 0 };
      if (status === undefined) return { status: "STOPPED", reason: "it no longer exists", ...none };
      if (!ENDED_RUN.has(status)) return undefined;
      const { reason } = await readOutcome(db, runId);
      if (status !== "SUCCESS") return { status, reason, ...none };
      const graph = (await runCache.get(db, [runId])).get(runId)?.graph;
      const last = graph?.nodes.filter(({ children }) => children.length === 0).map(({ id }) => id) ?? [];
      const bytes = await artifactBytes(db, runId, last, artifactBytesMax);
      if (bytes > artifactBytesMax) return { status, reason, artifacts: null, artifactBytes: bytes };
      const artifacts = (await readArtifacts(db, runId, last)).map(({ artifact }) => artifact);
      return { status, reason, artifacts, artifactBytes: bytes };
    },

    underWay: (runIds) => runsUnderWay(db, runIds),
    stop: runs.stopChild,
    rootOf: (runId) => rootOf(db, runId),
    onChange: deps.onChange,

    async endWait(wait, outcome) {
      const { run_id: runId, node_id: nodeId, wait_id: childRunId } = wait;
      const counted = await engine.report({ runId, event: { kind: "child ended", nodeId, childRunId, outcome } });
      if (counted) return "counted";
      return (await stillWaiting(db, [wait])).size > 0 ? "early" : "gone";
    },

    stillWaiting,
    openNodes,
  };
}
