/**
 * Nodes that wait for a run of their own. Such a node is parked: it holds no slot and no lease, and goes on when that run
 * has ended. The run is made in the transaction that parks the node, so a crash leaves neither without the other; that it
 * ended is told after the commit, and looked for again by the timers in case nobody lived to tell.
 */

import type { Db } from "../../kernel/data/db.ts";
import type { Ids } from "../../kernel/ids.ts";
import { fingerprint } from "../../kernel/json/canonical.ts";
import type { ServiceLog } from "../../kernel/work/service.ts";
import type { ChildStart, Engine, Report } from "../engine/engine.ts";
import type { KnownRun } from "../engine/run-cache.ts";
import { ENDED_RUN, type RunStatus } from "../engine/states.ts";
import type { ChildOutcome } from "../engine/transition.ts";
import { findChainToRun, isAbove, type NewRun, newestChild, readOutcome } from "../store/runs.ts";
import { FinalFailure, type SubRun } from "../types/node-type.ts";
import { ARTIFACT_BYTES_MAX } from "../worker/execute.ts";
import type { PreparedNode } from "../worker/prepare.ts";
import type { Runs } from "./runs.ts";

export interface SubRuns {
  /** What to report for a node that wants to wait for a run: it is made, or an earlier one of the node goes on. */
  begin(item: PreparedNode, subRun: SubRun): Promise<Report>;
  /** Tells the node that waits for it, if one does; answers whether that counted. */
  ended(known: KnownRun, status: RunStatus): Promise<boolean>;
}

/** How deep runs may start runs: a chain that runs itself would go on for ever. */
const DEPTH_MAX = 10;

export function createSubRuns(deps: { db: Db; engine: Engine; runs: Runs; ids: Ids; log: ServiceLog }): SubRuns {
  const { db, engine, runs, ids, log } = deps;

  async function childStart(item: PreparedNode, { of, params, opTime }: SubRun): Promise<ChildStart> {
    const { facts } = item.run;
    if (facts.depth >= DEPTH_MAX) throw new FinalFailure(`runs are nested more than ${DEPTH_MAX} deep`);
    const run: NewRun = {
      run_id: ids.uuid(),
      request: requestOf({ of, params, opTime }),
      chain_id: null,
      job_id: null,
      params,
      op_time: opTime,
      priority: facts.priority,
      trigger: "chain" in of ? "chain" : "map",
      triggered_by: `run ${item.run_id}, node ${item.node_id}`,
      parent_run_id: item.run_id,
      parent_node_id: item.node_id,
      depth: facts.depth + 1,
    };
    if ("dag" in of) return { run, own: { dag: of.dag, name: `items of ${item.node_id}` } };
    const chain = await findChainToRun(db, of.chain);
    if (!chain) throw new FinalFailure(`there is no chain named \`${of.chain}\``);
    if (!chain.enabled) throw new FinalFailure(`chain \`${of.chain}\` is disabled`);
    if (chain.max_active_runs !== null && (await isAbove(db, item.run_id, chain.chain_id))) {
      throw new FinalFailure(
        `chain \`${of.chain}\` waits for this node, and it allows only ${chain.max_active_runs} active runs: this one might wait for ever`,
      );
    }
    if (chain.waits && opTime === null)
      throw new FinalFailure(`chain \`${of.chain}\` waits for tables and needs an opTime`);
    return { run: { ...run, chain_id: chain.chain_id } };
  }

  /** The run of the attempt before, brought back to life if it can be and if it is still what is asked for. */
  async function earlierChild(item: PreparedNode, subRun: SubRun): Promise<string | undefined> {
    if (item.attempt === 1) return undefined;
    const child = await newestChild(db, item.run_id, item.node_id);
    if (!child || child.status === "SUCCESS" || child.request !== requestOf(subRun)) return undefined;
    if (child.status === "STOPPING") throw new Error(`run ${child.run_id} of the attempt before is still stopping`);
    if (child.status === "FAILED" || child.status === "STOPPED") {
      return (await runs.retryChild(child.run_id)) ? child.run_id : undefined;
    }
    return child.run_id; // It still runs: whoever waited for it was lost.
  }

  return {
    async begin(item, subRun) {
      const { run_id: runId, node_id: nodeId, fence } = item;
      const earlier = await earlierChild(item, subRun);
      const child = earlier === undefined ? await childStart(item, subRun) : undefined;
      const childRunId = earlier ?? child?.run.run_id ?? "";
      return { runId, event: { kind: "parked", nodeId, fence, childRunId }, ...(child ? { child } : {}) };
    },

    async ended({ facts }, status) {
      const { parent_run_id: runId, parent_node_id: nodeId, run_id: childRunId, trigger } = facts;
      if (runId === null || nodeId === null || !ENDED_RUN.has(status)) return false;
      try {
        const outcome = await outcomeOf(db, childRunId, trigger);
        return await engine.report({ runId, event: { kind: "child ended", nodeId, childRunId, outcome } });
      } catch (err) {
        log.warn(
          { err, runId, nodeId, childRunId },
          "a waiting node could not be told that its run ended; it will be tried again",
        );
        return false;
      }
    },
  };
}

async function outcomeOf(db: Db, childRunId: string, trigger: string): Promise<ChildOutcome> {
  const { status, reason, nodes } = await readOutcome(db, childRunId);
  if (status !== "SUCCESS") {
    const error = `run ${childRunId} ended with ${status}${reason === null ? "" : `: ${reason}`}`;
    return { status: status === "STOPPED" ? "STOPPED" : "FAILED", error, final: false };
  }
  const brought = nodes.filter(({ artifact }) => artifact !== null);
  const artifact =
    trigger === "map"
      ? { runId: childRunId, items: nodes.map((node) => node.artifact) }
      : { runId: childRunId, artifacts: Object.fromEntries(brought.map((node) => [node.node_id, node.artifact])) };
  const bytes = Buffer.byteLength(JSON.stringify(artifact));
  if (bytes <= ARTIFACT_BYTES_MAX) return { status, artifact };
  const error = `run ${childRunId} succeeded, but its artifacts have ${bytes} bytes together, more than the ${ARTIFACT_BYTES_MAX} that are kept`;
  return { status: "FAILED", error, final: true };
}

/** The same for two attempts that ask for the same. */
function requestOf({ of, params, opTime }: SubRun): string {
  return fingerprint({ of, params, opTime });
}
