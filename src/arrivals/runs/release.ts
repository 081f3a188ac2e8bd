/**
 * Releases runs that have no result: their process was lost or stopped, or lost track of them. They become ready again, or
 * FAILED after too many lost processes.
 */
import type { Db, Tx } from "../../kernel/data/db.ts";
import type { Wake } from "../../kernel/work/wake.ts";
import type { ArrivalsHints } from "../catalogue.ts";
import type { Events } from "../events.ts";
import { instanceId } from "../hint-ids.ts";
import { type InstanceKey, releaseInstances } from "../store/instances.ts";
import { findModels, holdModels } from "../store/models.ts";
import { endLostTasks } from "../store/tasks.ts";
import { ENDED_TOPIC, READY_TOPIC } from "../topics.ts";
import { reconsider } from "./consider.ts";
import type { NodeWaits } from "./node-waits.ts";

export interface ReleaseDeps {
  db: Db;
  wake: Wake;
  hints: ArrivalsHints;
  events: Events;
  nodeWaits: NodeWaits;
  lostLimit: number;
}

export interface Release {
  /** Whether it counts towards the limit. A run that its own process releases does not. */
  isLoss: boolean;
  /** Of the row in the log of runs. */
  message: string;
}

/** Answers how many were still held under their fence. */
export function releaseRuns(
  deps: ReleaseDeps,
  held: readonly (InstanceKey & { fence: string })[],
  { isLoss, message }: Release,
): Promise<number> {
  const { db, wake, hints, nodeWaits, lostLimit } = deps;
  return db.tx(async (tx) => {
    await holdModels(
      tx,
      held.map(({ model_id }) => model_id),
    );
    const released = await releaseInstances(tx, held, { lost: isLoss, lostLimit });
    const ended = released.filter(({ state }) => state !== "returned"); // Its chain has done the work; that run goes on.
    await endLostTasks(tx, ended, message);
    const failed = released.filter(({ state }) => state === "idle");
    if (failed.length > 0) await emitFailed(tx, deps, failed);
    // The run has failed, but what arrived during it still needs one.
    await reconsider(
      tx,
      failed.filter(({ again }) => again),
      null,
      wake,
    );
    hints.changed(tx, "model", released.map(instanceId));
    tx.afterCommit(() => {
      // Also for those that another process had released before: this transaction locked them for a moment, and a claim skips
      // locked rows.
      if (held.length > 0) wake.hint(READY_TOPIC);
      if (failed.length > 0) wake.hint(ENDED_TOPIC);
      for (const instance of failed) nodeWaits.settleSoon({ instance });
    });
    return released.length;
  });
}

async function emitFailed(
  tx: Tx,
  { events, nodeWaits, lostLimit }: ReleaseDeps,
  failed: readonly (InstanceKey & { generation: number })[],
): Promise<void> {
  const message = `processes lost in a row while they ran it: ${lostLimit}`;
  const models = await findModels(tx, [...new Set(failed.map(({ model_id }) => model_id))]);
  for (const { model_id: modelId, op_time: opTime, generation } of failed) {
    const key = { model_id: modelId, op_time: opTime };
    const isAwaited = await nodeWaits.isAwaited(tx, key, generation);
    await events.failed(tx, { modelId, opTime, generation, message }, { isAwaited });
    const model = models.get(modelId);
    if (!model) continue; // Deleted meanwhile.
    await events.runEnded(tx, { model, opTime, generation, failure: message, kpis: model.kpis, computed: [] });
  }
}
