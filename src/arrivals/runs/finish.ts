/**
 * Ends a run in one transaction under its fence: values, indicators computed from them, the log, the events for
 * subscribers, the produced table, and the decision whether to run again. An attempt that failed and is tried again ends only
 * its row in the log. If the lease was lost, nothing is written.
 */
import type { Db, Queryable, Tx } from "../../kernel/data/db.ts";
import { storableText } from "../../kernel/data/storable.ts";
import { retryDelayMs } from "../../kernel/work/retry.ts";
import { policyOf } from "../../kernel/work/retry-fields.ts";
import { LeaseLost } from "../../kernel/work/run-control.ts";
import type { Wake } from "../../kernel/work/wake.ts";
import { type Announced, announce } from "../announce.ts";
import type { ArrivalsHints } from "../catalogue.ts";
import type { Events } from "../events.ts";
import { arrivalId, instanceId } from "../hint-ids.ts";
import { recompute } from "../kpis/computed.ts";
import { type ClaimedInstance, endInstance } from "../store/instances.ts";
import { replaceModelValues, type ValueWrite } from "../store/kpis.ts";
import { dependentsOf, holdModels, lockModelKpis, type ModelRow } from "../store/models.ts";
import { retryLater } from "../store/retries.ts";
import { endTask } from "../store/tasks.ts";
import { ENDED_TOPIC, READY_TOPIC, TIMER_TOPIC } from "../topics.ts";
import { type Considered, consider } from "./consider.ts";
import type { Consumed } from "./decide.ts";
import { knownModels } from "./needs.ts";
import type { NodeWaits } from "./node-waits.ts";
import { MODEL_STATES } from "./states.ts";

/** A claimed instance with what its run needs. */
export interface Run extends ClaimedInstance {
  taskId: string;
  consumed: Consumed;
  parkedSeconds: number;
  timedOut: boolean;
  model: ModelRow;
}

export type Outcome = Ended | { status: "PARKED" /** Null starts one. */; chainRunId: string | null };
export type Ended =
  | { status: "SUCCESS"; values: ValueWrite[]; computeCount: number; warnings: readonly string[] }
  | { status: "FAILED"; message: string /** No other attempt can end differently. */; isFinal: boolean };

export interface FinishDeps {
  db: Db;
  wake: Wake;
  hints: ArrivalsHints;
  events: Events;
  nodeWaits: NodeWaits;
  /** For the jitter of retries. */
  random?: () => number;
  /** Called after the commit when the run has produced a table. */
  onArrived: (arrivals: readonly { table: string; opTime: string }[]) => void;
}

const MESSAGE_LENGTH_MAX = 2_000;

/** False if the lease was lost: then nothing has changed. */
export async function finish(deps: FinishDeps, run: Run, outcome: Ended): Promise<boolean> {
  const { db, wake, hints, nodeWaits } = deps;
  try {
    await db.tx(async (tx) => {
      await holdConcerned(tx, run.model);
      const { produced, again } = await (outcome.status === "SUCCESS"
        ? succeed(tx, deps, run, outcome)
        : fail(tx, deps, run, outcome));
      const considered = [...again, ...(produced?.considered ?? [])];
      hints.changed(tx, "model", [run, ...considered].map(instanceId));
      const verdicts = new Set(considered.map(({ verdict }) => verdict.kind));
      tx.afterCommit(() => {
        if (verdicts.has("ready")) wake.hint(READY_TOPIC);
        if (verdicts.has("quiet") || outcome.status === "FAILED") wake.hint(TIMER_TOPIC);
        if (produced && run.model.produces) deps.onArrived([{ table: run.model.produces, opTime: run.op_time }]);
        wake.hint(ENDED_TOPIC);
        nodeWaits.settleSoon({ instance: run });
      });
    });
    return true;
  } catch (error) {
    if (!(error instanceof LeaseLost)) throw error;
    wake.hint(READY_TOPIC); // A claim may have skipped the instance while it was locked here.
    return false;
  }
}

/** The run's model, and those that depend on the table that it produces. */
async function holdConcerned(tx: Queryable, { model_id, produces }: ModelRow): Promise<void> {
  const dependents = produces === null ? [] : await dependentsOf(tx, [produces]);
  await holdModels(tx, [model_id, ...dependents.map((one) => one.model_id)]);
}

interface Followed {
  produced: Announced | undefined;
  again: Considered[];
}

async function succeed(
  tx: Tx,
  { events, hints }: FinishDeps,
  run: Run,
  { values, computeCount, warnings }: Ended & { status: "SUCCESS" },
): Promise<Followed> {
  const { model, op_time: opTime, taskId, generation } = run;
  const source = { opTime, taskId, generation, modelId: model.model_id };
  // Read now: an indicator may have moved to another model since the run started.
  const kpis = await lockModelKpis(tx, model.model_id);
  const own = new Set(kpis);
  const stored = values.filter(({ kpi_id }) => own.has(kpi_id));
  // The instance is locked last, so that announcements do not wait while a million rows are written.
  await replaceModelValues(tx, stored, source);
  const computed = await recompute(tx, kpis, source);
  const produced = model.produces
    ? (
        await announce(
          tx,
          [{ table: model.produces, opTime, idempotencyKey: null, by: `model ${model.model_id}` }],
          [run],
        )
      )[0]
    : undefined;
  const again = await end(tx, run, run.consumed);
  await endTask(tx, {
    id: taskId,
    status: "SUCCESS",
    message: null,
    computeCount,
    storageCount: stored.length,
    warnings: warnings.map((warning) => storableText(warning, MESSAGE_LENGTH_MAX)),
  });
  const affectedKpiIds = [...kpis, ...computed];
  hints.changed(tx, "kpi", affectedKpiIds);
  if (model.produces && produced?.isNew) hints.changed(tx, "arrival", arrivalId({ table: model.produces, opTime }));
  if (affectedKpiIds.length > 0) {
    const { rerun, caused_by: causedBy } = run;
    await events.updated(tx, { modelId: model.model_id, opTime, affectedKpiIds, generation, rerun, causedBy });
  }
  await events.runEnded(tx, { model, opTime, generation, failure: null, kpis, computed });
  return { produced, again };
}

async function fail(
  tx: Tx,
  { events, nodeWaits, random = Math.random }: FinishDeps,
  run: Run,
  { message: reason, isFinal }: Ended & { status: "FAILED" },
): Promise<Followed> {
  const { model, model_id: modelId, op_time: opTime, generation, attempt, taskId } = run;
  const message = storableText(reason, MESSAGE_LENGTH_MAX);
  const delayMs = isFinal ? undefined : retryDelayMs(policyOf(model.retry), attempt, random);
  const again = delayMs === undefined ? await end(tx, run, null) : await tryAgain(tx, run, delayMs);
  await endTask(tx, { id: taskId, status: "FAILED", message, computeCount: null, storageCount: null, warnings: [] });
  if (delayMs !== undefined) {
    events.retried(tx, { modelId, opTime, generation, message, attempt, delayMs });
    return { produced: undefined, again };
  }
  const isAwaited = await nodeWaits.isAwaited(tx, run, generation);
  await events.failed(tx, { modelId, opTime, generation, message }, { isAwaited });
  await events.runEnded(tx, { model, opTime, generation, failure: message, kpis: model.kpis, computed: [] });
  return { produced: undefined, again };
}

/** Releases the instance, and considers it again if something arrived during the run. */
async function end(tx: Queryable, run: Run, consumed: Consumed | null): Promise<Considered[]> {
  const { model_id, op_time, fence } = run;
  return considerAgain(tx, run, await endInstance(tx, { model_id, op_time, fence, consumed }));
}

/** Releases the instance until the next attempt, which is due at once if something arrived during this one. */
async function tryAgain(tx: Queryable, run: Run, delayMs: number): Promise<Considered[]> {
  return considerAgain(tx, run, await retryLater(tx, run, delayMs));
}

async function considerAgain(
  tx: Queryable,
  { model_id, op_time }: Run,
  released: { again: boolean } | undefined,
): Promise<Considered[]> {
  if (!released) throw new LeaseLost();
  if (!released.again) return [];
  const models = await knownModels(tx, [model_id]);
  if (models.get(model_id)?.state !== MODEL_STATES.published) return [];
  return consider(tx, [{ model_id, op_time }], models, { trigger: null });
}
