/** Runs that a person requests: for one opTime, or for a range. */
import { type Actor, audit } from "../../kernel/auth/audit.ts";
import type { Db, Tx } from "../../kernel/data/db.ts";
import { type DryRun, FOR_REAL, transact } from "../../kernel/data/dry-run.ts";
import { invalid } from "../../kernel/errors.ts";
import { listed } from "../../kernel/text/sentences.ts";
import { grainOf, OP_TIMES_MAX, opTimesBetween } from "../../kernel/time/op-time.ts";
import type { Wake } from "../../kernel/work/wake.ts";
import { arrivalsError } from "../catalogue.ts";
import { decide, keyOf } from "../runs/decide.ts";
import { type KnownModel, knownModels, readNeeds } from "../runs/needs.ts";
import { MODEL_STATES } from "../runs/states.ts";
import { arrivedOpTimes } from "../store/arrivals.ts";
import { forceInstances, type InstanceKey, lockInstances } from "../store/instances.ts";
import { READY_TOPIC } from "../topics.ts";

export interface Requests {
  /** Runs a model for an opTime even if nothing new has arrived. Answers the generation of the run. */
  run(
    modelId: string,
    request: { opTime: string; force: boolean },
    actor: Actor | null,
    options?: RunOptions,
  ): Promise<{ generation: number }>;
  backfill(modelId: string, request: BackfillRequest, actor: Actor): Promise<BackfillItem[]>;
}

export interface RunOptions extends DryRun {
  /** A further write in the transaction that requests the run. */
  also?: (tx: Tx, generation: number) => Promise<void>;
}

export interface BackfillRequest extends DryRun {
  from: string;
  to: string;
}
export interface BackfillItem {
  opTime: string;
  /** If false, `missing` names the tables. */
  runs: boolean;
  missing: string[];
}

const MISSING_SHOWN = 5;

export function createRequests({ db, wake }: { db: Db; wake: Wake }): Requests {
  async function published(modelId: string): Promise<KnownModel> {
    const model = (await knownModels(db, [modelId])).get(modelId);
    if (!model) throw arrivalsError("MODEL_NOT_FOUND", { modelId });
    if (model.state !== MODEL_STATES.published) throw arrivalsError("MODEL_NOT_PUBLISHED", { modelId });
    return model;
  }

  /** The missing tables of each instance. */
  async function missingOf(keys: readonly InstanceKey[], model: KnownModel): Promise<Map<InstanceKey, string[]>> {
    const { needs, arrived } = await readNeeds(db, keys, new Map([[model.model_id, model]]));
    return new Map(
      keys.map((key) => {
        const facts = { needs: needs.get(key) ?? [], arrived, consumed: null, rerun: model.rerun };
        const verdict = decide({ ...facts, nowMs: Number.POSITIVE_INFINITY });
        return [key, verdict.kind === "waiting" ? verdict.missing.map(keyOf) : []];
      }),
    );
  }

  function refuseOtherGrain({ grain, model_id: modelId }: KnownModel, opTime: string): void {
    if (grain === null || grainOf(opTime) === grain) return;
    const reason = `The opTimes of model \`${modelId}\` are ${grain}s, which \`${opTime}\` is not`;
    throw invalid(reason);
  }

  return {
    async run(modelId, { opTime, force }, actor, { also, ...options } = FOR_REAL) {
      const model = await published(modelId);
      refuseOtherGrain(model, opTime);
      const key = { model_id: modelId, op_time: opTime };
      const missing = (await missingOf([key], model)).get(key) ?? [];
      if (missing.length > 0 && !force) {
        throw arrivalsError("TABLES_MISSING", { modelId, opTime, missing: listed(missing, MISSING_SHOWN) });
      }
      return transact(db, options, async (tx) => {
        const [instance] = await lockInstances(tx, [key]);
        const [forced] = await forceInstances(tx, [key], "run");
        if (!instance) throw arrivalsError("MODEL_NOT_FOUND", { modelId }); // Deleted since it was read.
        if (!forced) throw arrivalsError("MODEL_RUNNING", { modelId, opTime, generation: instance.generation });
        if (actor) await audit(tx, actor, "model.run", modelId, { opTime, force });
        await also?.(tx, forced.generation + 1);
        tx.afterCommit(() => wake.hint(READY_TOPIC));
        return { generation: forced.generation + 1 };
      });
    },

    async backfill(modelId, { from, to, dryRun }, actor) {
      const model = await published(modelId);
      const opTimes = model.grain
        ? opTimesBetween(from, to, model.grain)
        : await arrivedOpTimes(db, from, to, OP_TIMES_MAX);
      const keys = opTimes.map((opTime) => ({ model_id: modelId, op_time: opTime }));
      const missing = await missingOf(keys, model);
      const complete = keys.filter((key) => missing.get(key)?.length === 0);
      if (!dryRun && complete.length > 0) {
        await db.tx(async (tx) => {
          await lockInstances(tx, complete);
          await forceInstances(tx, complete, "backfill");
          await audit(tx, actor, "model.backfill", modelId, { from, to, opTimes: complete.length });
          tx.afterCommit(() => wake.hint(READY_TOPIC));
        });
      }
      return keys.map((key) => {
        const missingTables = missing.get(key) ?? [];
        return {
          opTime: key.op_time,
          runs: missingTables.length === 0,
          missing: missingTables.slice(0, MISSING_SHOWN),
        };
      });
    },
  };
}
