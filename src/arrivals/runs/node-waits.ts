/**
 * Nodes of chains that run a model and wait for it. The node is parked: it holds no slot. The end of the run is reported to
 * the node after the commit; if the process dies before that, the timers report it.
 */
import { FinalFailure } from "../../chains/index.ts";
import type { Db, Queryable } from "../../kernel/data/db.ts";
import { FOR_REAL } from "../../kernel/data/dry-run.ts";
import { ApiError } from "../../kernel/errors.ts";
import type { Ids } from "../../kernel/ids.ts";
import type { ServiceLog } from "../../kernel/work/service.ts";
import type { Requests } from "../models/requests.ts";
import type { InstanceKey } from "../store/instances.ts";
import * as store from "../store/node-waits.ts";
import { type TaskRow, tasksOf } from "../store/tasks.ts";
import type { ChainPort, WaitOutcome } from "./chain-port.ts";

export interface NodeWaits {
  /** Requests the run, or waits until it can be requested. The same key has the same wait. Answers the id of the wait. */
  begin(key: string, request: ModelRequest): Promise<string>;
  /** Reports the ends of runs to the nodes that wait for them, and requests runs that can start now. Answers how many. */
  settle(which?: store.WhichWaits): Promise<number>;
  /** Not awaited: if it fails, the timers settle the waits. */
  settleSoon(which: store.WhichWaits): void;
  /** Whether a node waits for this run, and will fail with it. */
  isAwaited(db: Queryable, key: InstanceKey, generation: number): Promise<boolean>;
}

interface ModelRequest extends InstanceKey {
  run_id: string;
  node_id: string;
  force: boolean;
}

const AT_ONCE = 200;
/** How deep models and chains may be nested. */
const NESTED_MAX = 100;

/** Another process has requested the run. */
class AlreadyRequested extends Error {}

export function createNodeWaits(deps: {
  db: Db;
  ids: Ids;
  chains: ChainPort;
  requests: Requests;
  log: ServiceLog;
}): NodeWaits {
  const { db, ids, chains, requests, log } = deps;

  /** Requests the run of a wait that has none yet. A model that runs is requested when that run has ended. */
  async function request(wait: store.NodeWaitRow): Promise<void> {
    const { model_id: modelId, op_time: opTime, force } = wait;
    try {
      await requests.run(modelId, { opTime, force }, null, {
        ...FOR_REAL,
        async also(tx, generation) {
          if (!(await store.setWaitGeneration(tx, wait.wait_id, generation))) throw new AlreadyRequested();
        },
      });
    } catch (error) {
      if (error instanceof AlreadyRequested) return;
      if (!(error instanceof ApiError)) throw error;
      if (error.code !== "MODEL_RUNNING") throw new FinalFailure(error.message);
      // That run may have started before the earlier nodes of this chain ended, so the model runs once more after it.
      if (await waitsForItself(wait)) {
        throw new FinalFailure(`Model \`${modelId}\` waits for this run for ${opTime}, so it cannot run inside it.`);
      }
    }
  }

  /** Those whose node still waits. */
  async function stillWaiting(reader: Queryable, waits: readonly store.NodeWaitRow[]): Promise<store.NodeWaitRow[]> {
    const still = await chains.stillWaiting(reader, waits);
    return waits.filter(({ wait_id }) => still.has(wait_id));
  }

  /** Whether the run under way of the model waits, through chains and other models, for this node. */
  async function waitsForItself({ run_id, model_id, op_time }: store.NodeWaitRow): Promise<boolean> {
    const open = [run_id];
    for (const runId of open.values()) {
      const root = await chains.rootOf(runId);
      const caller = root === undefined ? undefined : await store.instanceWithChainRun(db, root);
      if (!caller) continue;
      if (caller.model_id === model_id && caller.op_time === op_time) return true;
      const above = await stillWaiting(db, await store.waitsForEnd(db, caller, caller.generation));
      open.push(...above.map((wait) => wait.run_id).filter((id) => !open.includes(id)));
      if (open.length > NESTED_MAX) return true;
    }
    return false;
  }

  async function settleOne(wait: store.NodeWaitRow): Promise<boolean> {
    let outcome: WaitOutcome;
    try {
      if (wait.generation === null) {
        // A node that was stopped or timed out meanwhile needs no run.
        if ((await stillWaiting(db, [wait])).length > 0) await request(wait);
        else await store.deleteNodeWait(db, wait.wait_id);
        return false;
      }
      const [task] = await tasksOf(db, [{ ...wait, generation: wait.generation }]);
      outcome = outcomeOf(wait, task);
    } catch (error) {
      if (!(error instanceof FinalFailure)) throw error;
      outcome = { status: "FAILED", error: error.message, final: true };
    }
    const reported = await chains.endWait(wait, outcome);
    if (reported !== "early") await store.deleteNodeWait(db, wait.wait_id);
    return reported === "counted";
  }

  async function settle(which?: store.WhichWaits): Promise<number> {
    const due = await store.dueWaits(db, AT_ONCE, which);
    let settled = 0;
    for (const wait of due) if (await settleOne(wait)) settled += 1;
    return settled;
  }

  return {
    settle,

    async begin(key, { run_id, node_id, model_id, op_time, force }) {
      const fresh = { wait_id: ids.uuid(), key, run_id, node_id, model_id, op_time, force };
      const wait = await store.insertNodeWait(db, fresh);
      try {
        if (wait.generation === null) await request(wait);
      } catch (error) {
        if (error instanceof FinalFailure) await store.deleteNodeWait(db, wait.wait_id);
        throw error;
      }
      return wait.wait_id;
    },

    settleSoon(which) {
      settle(which).catch((err: unknown) =>
        log.warn(
          { err, ...which },
          "the end of a model's run was not reported to the nodes that wait for it; the timers will",
        ),
      );
    },

    async isAwaited(reader, key, generation) {
      return (await stillWaiting(reader, await store.waitsForRun(reader, key, generation))).length > 0;
    },
  };
}

function outcomeOf({ model_id, op_time }: store.NodeWaitRow, task: TaskRow | undefined): WaitOutcome {
  if (task?.status === "SUCCESS") {
    const { id, compute_count, storage_count } = task;
    return {
      status: "SUCCESS",
      artifact: { taskId: id, computeCount: compute_count, storageCount: storage_count },
    };
  }
  const error = `Model \`${model_id}\` failed for ${op_time}: ${task?.message ?? "its run no longer exists"}`;
  return { status: "FAILED", error, final: false };
}
