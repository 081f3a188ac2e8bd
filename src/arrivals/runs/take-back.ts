/**
 * Runs that end without a result: their process is gone, stopped, or does not know what became of them. They become ready
 * again, or FAILED after too many lost processes.
 */
import type { Db, Tx } from "../../kernel/data/db.ts";
import type { Wake } from "../../kernel/work/wake.ts";
import type { Events } from "../events.ts";
import { giveBackInstances, type InstanceKey } from "../store/instances.ts";
import { findModels } from "../store/models.ts";
import { endLostTasks } from "../store/tasks.ts";
import { ENDED_TOPIC, READY_TOPIC } from "../topics.ts";
import { reconsider } from "./consider.ts";

export interface TakeBackDeps {
  db: Db;
  wake: Wake;
  events: Events;
  lostLimit: number;
}

export interface TakeBack {
  /** Counts towards the limit. A run that is given back by its own process does not. */
  isLoss: boolean;
  /** Stands in the log of the run. */
  message: string;
}

/** Answers how many were still held under their fence. */
export function takeBack(
  deps: TakeBackDeps,
  held: readonly (InstanceKey & { fence: string })[],
  { isLoss, message }: TakeBack,
): Promise<number> {
  const { db, wake, lostLimit } = deps;
  return db.tx(async (tx) => {
    const returned = await giveBackInstances(tx, held, { lost: isLoss, lostLimit });
    await endLostTasks(tx, returned, message);
    const over = returned.filter(({ state }) => state === "idle");
    if (over.length > 0) await failLost(tx, deps, over);
    // The run is over, but what arrived during it is still owed one.
    await reconsider(
      tx,
      over.filter(({ again }) => again),
      null,
      wake,
    );
    tx.afterCommit(() => {
      if (returned.length > 0) wake.hint(READY_TOPIC);
      if (over.length > 0) wake.hint(ENDED_TOPIC);
    });
    return returned.length;
  });
}

async function failLost(
  tx: Tx,
  { events, lostLimit }: TakeBackDeps,
  over: readonly (InstanceKey & { generation: number })[],
): Promise<void> {
  const message = `processes lost in a row while they ran it: ${lostLimit}`;
  const models = await findModels(tx, [...new Set(over.map(({ model_id }) => model_id))]);
  for (const { model_id: modelId, op_time: opTime, generation } of over) {
    await events.failed(tx, { modelId, opTime, generation, message });
    const model = models.get(modelId);
    if (!model) continue; // Deleted in this moment.
    await events.ended(tx, { model, opTime, generation, failure: message, kpis: model.kpis, computed: [] });
  }
}
