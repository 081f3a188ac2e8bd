/**
 * Child runs: runs that a node starts and waits for. Such a node is parked: it holds no slot and no lease until the child run
 * has ended. The child run is inserted in the transaction that parks the node, so a crash leaves neither without the other.
 * Its end is reported to the node after the commit; if the process dies before that, the timers report it. The next attempt
 * goes on with the child run of the one before, and does only what did not succeed.
 */

import type { Db } from "../../kernel/data/db.ts";
import type { Ids } from "../../kernel/ids.ts";
import { fingerprint } from "../../kernel/json/canonical.ts";
import type { ServiceLog } from "../../kernel/work/service.ts";
import type { ChildStart, Engine, Report } from "../engine/engine.ts";
import type { KnownRun } from "../engine/run-cache.ts";
import { ENDED_RUN, type RunStatus } from "../engine/states.ts";
import type { ChildOutcome } from "../engine/transition.ts";
import { type ChildRow, newestChild } from "../store/children.ts";
import { findChainToRun, isAncestor, type NewRun, readOutcome } from "../store/runs.ts";
import { FinalFailure, type SubRun } from "../types/node-type.ts";
import type { PreparedNode } from "../worker/prepare.ts";
import { childArtifact } from "./child-artifacts.ts";
import type { Runs } from "./runs.ts";

export interface SubRuns {
  /**
   * The report that parks a node for a child run: a new one, or the one of its previous attempt. If that has succeeded, so has
   * the node.
   */
  begin(item: PreparedNode, subRun: SubRun): Promise<Report>;
  /** Reports the end of a child run to its parent node; returns whether that counted. */
  ended(known: KnownRun, status: RunStatus): Promise<boolean>;
}

/** How deep child runs may be nested: a chain that runs itself would never end. */
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
    if (chain.max_active_runs !== null && (await isAncestor(db, item.run_id, chain.chain_id))) {
      throw new FinalFailure(
        `chain \`${of.chain}\` waits for this node, and its maxActiveRuns is ${chain.max_active_runs}: a further run might wait forever`,
      );
    }
    if (chain.waits && opTime === null)
      throw new FinalFailure(`chain \`${of.chain}\` waits for tables and needs an opTime`);
    return { run: { ...run, chain_id: chain.chain_id } };
  }

  /**
   * The child run of the previous attempt, retried if it failed, provided that the request is still the same. If it is
   * STOPPING, the engine blocks the node until it has stopped.
   */
  async function earlierChild(item: PreparedNode, subRun: SubRun): Promise<ChildRow | undefined> {
    if (item.attempt === 1) return undefined;
    const child = await newestChild(db, item.run_id, item.node_id);
    if (!child || child.request !== requestOf(subRun)) return undefined;
    if (child.status === "SUCCESS") return child.is_used ? undefined : child; // Used: the node is to run once more.
    const isToRetry = child.status === "FAILED" || child.status === "STOPPED";
    return isToRetry && !(await runs.retryChild(child.run_id)) ? undefined : child;
  }

  return {
    async begin(item, subRun) {
      const { run_id: runId, node_id: nodeId, fence } = item;
      const earlier = await earlierChild(item, subRun);
      if (earlier?.status === "SUCCESS") {
        const artifact = await childArtifact(db, earlier.run_id, "chain" in subRun.of ? "artifacts" : "items");
        return { runId, event: { kind: "succeeded", nodeId, fence, artifact } };
      }
      if (earlier) return { runId, event: { kind: "parked", nodeId, fence, childRunId: earlier.run_id } };
      const child = await childStart(item, subRun);
      return { runId, event: { kind: "parked", nodeId, fence, childRunId: child.run.run_id }, child };
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
          "the end of a child run was not reported to its parent node and will be tried again",
        );
        return false;
      }
    },
  };
}

async function outcomeOf(db: Db, childRunId: string, trigger: string): Promise<ChildOutcome> {
  const { status, reason } = await readOutcome(db, childRunId);
  if (status !== "SUCCESS") {
    const error = `run ${childRunId} ended with ${status}${reason === null ? "" : `: ${reason}`}`;
    return { status: status === "STOPPED" ? "STOPPED" : "FAILED", error, final: false };
  }
  return { status, artifact: await childArtifact(db, childRunId, trigger === "map" ? "items" : "artifacts") };
}

/** A digest that is equal for equal requests. */
function requestOf({ of, params, opTime }: SubRun): string {
  return fingerprint({ of, params, opTime });
}
