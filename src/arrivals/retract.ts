/**
 * Takes an arrival back: the table counts as missing for that opTime until it arrives again. Models that wait, or are ready because
 * of it, are judged again; values that were computed from it stay, and `why` tells of them.
 */
import { type Actor, audit } from "../kernel/auth/audit.ts";
import type { Db } from "../kernel/data/db.ts";
import { type DryRun, transact } from "../kernel/data/dry-run.ts";
import { instancesOf } from "./announce.ts";
import { type ArrivalsHints, arrivalsError } from "./catalogue.ts";
import { arrivalId, instanceId } from "./hint-ids.ts";
import { consider } from "./runs/consider.ts";
import { keyOf } from "./runs/decide.ts";
import { knownModels } from "./runs/needs.ts";
import { isUnderWay } from "./runs/states.ts";
import { retractArrival } from "./store/arrivals.ts";
import { dropNewInstances, lockInstances } from "./store/instances.ts";
import { dependentsOf } from "./store/models.ts";

export interface RetractedArrival {
  /** Models that were judged again for an opTime. */
  judgedAgain: { modelId: string; opTime: string }[];
  /** Models whose last success has used the arrival. */
  usedBy: { modelId: string; opTime: string }[];
}

export function retract(
  { db, hints }: { db: Db; hints: ArrivalsHints },
  { table, opTime }: { table: string; opTime: string },
  actor: Actor,
  options: DryRun,
): Promise<RetractedArrival> {
  return transact(db, options, async (tx) => {
    if (!(await retractArrival(tx, table, opTime, `key ${actor.caller.name}`))) {
      throw arrivalsError("ARRIVAL_NOT_FOUND", { table, opTime });
    }
    // Also those that do not exist yet: an arrival of another table may be making one ready that has read this one before it was
    // taken back.
    const keys = instancesOf(await dependentsOf(tx, [table]), opTime);
    const instances = await lockInstances(tx, keys);
    const concerned = instances.filter(({ state }) => state !== "idle" && !isUnderWay(state));
    const models = await knownModels(
      tx,
      concerned.map(({ model_id }) => model_id),
    );
    // Before they are judged: an update gives a row the mark of this transaction, too.
    await dropNewInstances(tx, keys);
    await consider(tx, concerned, models, { trigger: null, judgesReady: true });
    await audit(tx, actor, "arrival.retract", `${table}/${opTime}`);
    hints.changed(tx, "arrival", arrivalId({ table, opTime }));
    hints.changed(tx, "model", concerned.map(instanceId));
    const used = instances.filter(({ consumed }) => consumed?.[keyOf({ table, opTime })] !== undefined);
    const shown = ({ model_id, op_time }: { model_id: string; op_time: string }) => ({
      modelId: model_id,
      opTime: op_time,
    });
    return { judgedAgain: concerned.map(shown), usedBy: used.map(shown) };
  });
}
