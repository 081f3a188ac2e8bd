/** Runs that a person requests: for one opTime, or for a range. */

import { type Actor, audit } from "../../kernel/auth/audit.ts";
import type { Db, Tx } from "../../kernel/data/db.ts";
import { type DryRun, FOR_REAL, transact } from "../../kernel/data/dry-run.ts";
import { invalid } from "../../kernel/errors.ts";
import { listed } from "../../kernel/text/sentences.ts";
import { grainOf, meantOpTime, OP_TIMES_MAX, opTimesBetween } from "../../kernel/time/op-time.ts";
import type { Wake } from "../../kernel/work/wake.ts";
import { type ArrivalsHints, arrivalsError } from "../catalogue.ts";
import { instanceId } from "../hint-ids.ts";
import type { ChainPort } from "../runs/chain-port.ts";
import { decide, keyOf } from "../runs/decide.ts";
import { type KnownModel, knownModels, readNeeds } from "../runs/needs.ts";
import { MODEL_STATES } from "../runs/states.ts";
import { arrivedOpTimes } from "../store/arrivals.ts";
import {
  failedInstances,
  forceInstances,
  type InstanceKey,
  lockInstances,
  lockStoppable,
  type StoppableInstance,
  stopInstances,
} from "../store/instances.ts";
import { existingModels } from "../store/models.ts";
import { setTimedOut } from "../store/parked.ts";
import { endLostTasks } from "../store/tasks.ts";
import { ENDED_TOPIC, HELD_TOPIC, READY_TOPIC } from "../topics.ts";
import { unknownModel } from "../unknown-names.ts";

export interface Requests {
  /** Runs a model for an opTime even if nothing new has arrived. Answers the generation of the run. */
  run(
    modelId: string,
    request: { opTime: string; force: boolean },
    actor: Actor | null,
    options?: RunOptions,
  ): Promise<{ generation: number }>;
  backfill(modelId: string, request: BackfillRequest, actor: Actor): Promise<BackfillItem[]>;
  /** Runs it again for an opTime, or for all, whose newest run has failed; answers the opTimes. */
  retry(modelId: string, request: { opTime?: string }, actor: Actor, options?: DryRun): Promise<string[]>;
  /** Stops what runs or is about to, for an opTime or for all; answers what was. Nothing is stored of it. */
  stop(
    modelId: string,
    request: { opTime?: string; reason?: string },
    actor: Actor,
    options?: DryRun,
  ): Promise<{ opTime: string; was: StoppableInstance["state"] }[]>;
}

export interface RunOptions extends DryRun {
  /** A further write in the transaction that requests the run. */
  also?: (tx: Tx, generation: number) => Promise<void>;
}

/** A range, or exactly these opTimes. */
export interface BackfillRequest extends DryRun {
  from?: string;
  to?: string;
  opTimes?: readonly string[];
}
export interface BackfillItem {
  opTime: string;
  /** If false, `missing` names the tables. */
  runs: boolean;
  missing: string[];
}

const MISSING_SHOWN = 5;

/** Of one retry or stop; a further call does the rest. */
const AT_ONCE_MAX = 10_000;

export interface RequestsDeps {
  db: Db;
  wake: Wake;
  hints: ArrivalsHints;
  chains: Pick<ChainPort, "stop">;
  /** Called after the commit for each that was stopped. */
  onStopped(instance: InstanceKey): void;
}

export function createRequests({ db, wake, hints, chains, onStopped }: RequestsDeps): Requests {
  async function published(modelId: string): Promise<KnownModel> {
    const model = (await knownModels(db, [modelId])).get(modelId);
    if (!model) throw await unknownModel(db, modelId);
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
    throw invalid(`${reason}${meantOpTime(opTime, grain)}`);
  }

  async function opTimesOf(model: KnownModel, which: Omit<BackfillRequest, "dryRun">): Promise<readonly string[]> {
    const { from, to, opTimes } = which;
    if (opTimes && from === undefined && to === undefined) {
      for (const opTime of opTimes) refuseOtherGrain(model, opTime);
      return opTimes;
    }
    if (opTimes || from === undefined || to === undefined) {
      const reason = "A backfill needs either `from` and `to`, or `opTimes`";
      throw invalid(reason);
    }
    return model.grain ? opTimesBetween(from, to, model.grain) : arrivedOpTimes(db, from, to, OP_TIMES_MAX);
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
        hints.changed(tx, "model", instanceId(key));
        return { generation: forced.generation + 1 };
      });
    },

    async retry(modelId, { opTime }, actor, options = FOR_REAL) {
      const model = await published(modelId);
      if (opTime !== undefined) refuseOtherGrain(model, opTime);
      const failed = await failedInstances(db, modelId, opTime ?? null, AT_ONCE_MAX);
      if (failed.length === 0 && opTime !== undefined) throw arrivalsError("MODEL_NOT_FAILED", { modelId, opTime });
      await transact(db, options, async (tx) => {
        await lockInstances(tx, failed);
        await forceInstances(tx, failed, "retry");
        await audit(tx, actor, "model.retry", modelId, { opTime: opTime ?? null, opTimes: failed.length });
        tx.afterCommit(() => wake.hint(READY_TOPIC));
        hints.changed(tx, "model", failed.map(instanceId));
      });
      return failed.map(({ op_time }) => op_time);
    },

    async stop(modelId, { opTime, reason }, actor, options = FOR_REAL) {
      if ((await existingModels(db, [modelId])).length === 0) throw await unknownModel(db, modelId);
      const message = `stopped by ${actor.caller.name}${reason === undefined ? "" : `: ${reason}`}`;
      const stopped = await transact(db, options, async (tx) => {
        const found = await lockStoppable(tx, modelId, opTime ?? null, AT_ONCE_MAX);
        const own = found.filter(({ state }) => state !== "parked"); // A parked one ends with the run of its chain.
        await stopInstances(tx, own);
        // A model whose chain is being stopped by its time-out is not tried again either.
        await setTimedOut(
          tx,
          found.flatMap(({ chain_run_id: runId }) => runId ?? []),
          false,
        );
        await endLostTasks(tx, own, message);
        const details = { opTime: opTime ?? null, opTimes: found.length, ...(reason === undefined ? {} : { reason }) };
        await audit(tx, actor, "model.stop", modelId, details);
        hints.changed(tx, "model", found.map(instanceId));
        tx.afterCommit(() => {
          wake.hint(HELD_TOPIC);
          wake.hint(ENDED_TOPIC);
          for (const instance of own) onStopped(instance);
        });
        return found;
      });
      if (!options.dryRun) {
        for (const { chain_run_id: runId } of stopped) if (runId !== null) await chains.stop(runId, message);
      }
      return stopped.map(({ op_time, state }) => ({ opTime: op_time, was: state }));
    },

    async backfill(modelId, { dryRun, ...which }, actor) {
      const model = await published(modelId);
      const opTimes = await opTimesOf(model, which);
      const keys = opTimes.map((opTime) => ({ model_id: modelId, op_time: opTime }));
      const missing = await missingOf(keys, model);
      const complete = keys.filter((key) => missing.get(key)?.length === 0);
      if (!dryRun && complete.length > 0) {
        await db.tx(async (tx) => {
          await lockInstances(tx, complete);
          await forceInstances(tx, complete, "backfill");
          const [from, to] = [opTimes[0], opTimes.at(-1)];
          await audit(tx, actor, "model.backfill", modelId, { from, to, opTimes: complete.length });
          tx.afterCommit(() => wake.hint(READY_TOPIC));
          hints.changed(tx, "model", complete.map(instanceId));
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
