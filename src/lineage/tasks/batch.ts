/**
 * Runs one batch from its claim to its end. The claim is short and is extended while the model is asked, so that a lost process's
 * tasks are reclaimed soon, however long a model takes.
 */
import { PROCESS_NAME } from "../../kernel/work/session.ts";
import { ProviderError } from "./providers/provider.ts";
import { HOLD_MS, resultOf } from "./retries.ts";
import { ClaimLost, settle } from "./settle.ts";
import { readModel } from "./store/models.ts";
import { assetsAtWork, type TaskResult } from "./store/results.ts";
import { type ClaimedTask, claimTasks, extendClaims, type Lane } from "./store/tasks.ts";
import { type Outcome, work } from "./work.ts";
import type { WorkerDeps } from "./worker.ts";

export interface Batch {
  lane: Lane;
  batchNo: string;
  /** The token of its claims, which is its number. */
  fence: string;
  tasks: readonly ClaimedTask[];
}

/** What the worker makes of it: how long to leave the lane alone, 0 for not at all. */
export interface BatchEnd {
  holdMs: number;
}

/** Nothing if nothing was due any more. */
export async function claimBatch(deps: WorkerDeps, lane: Lane): Promise<Batch | undefined> {
  const { db, settings, ids, metrics } = deps;
  const batchNo = ids.uuid();
  const tasks = await claimTasks(db, {
    lane,
    batchNo,
    limit: settings.batchSize,
    seconds: settings.claimSeconds,
    workerId: PROCESS_NAME,
  });
  if (tasks.length === 0) return undefined;
  hintOf(deps, lane, tasks);
  const retried = tasks.filter(({ retry_count }) => retry_count > 0).length;
  metrics.count("millrace_lineage_tasks_total", { type: lane.task_type, outcome: "claimed" }, tasks.length);
  metrics.count("millrace_lineage_tasks_total", { type: lane.task_type, outcome: "retried" }, retried);
  return { lane, batchNo, fence: batchNo, tasks };
}

/** Throws if the signal cut it short, or if its results could not be written: then the claim expires. */
export async function runBatch(deps: WorkerDeps, batch: Batch, signal: AbortSignal): Promise<BatchEnd> {
  const { db, settings, metrics } = deps;
  const { lane, batchNo, tasks } = batch;
  const started = performance.now();
  const taskIds = tasks.map(({ id }) => id);
  const beat = setInterval(
    () => {
      extendClaims(db, taskIds, batchNo, settings.claimSeconds).catch((err: unknown) =>
        deps.log.warn({ err, batchNo }, "the claims of a batch could not be extended"),
      );
    },
    (settings.claimSeconds * 1_000) / 3,
  );
  try {
    const tenantId = lane.tenant_id;
    const [row, assets] = await Promise.all([
      readModel(db, tenantId),
      assetsAtWork(
        db,
        tenantId,
        tasks.map(({ resource_id }) => resource_id),
      ),
    ]);
    const model = row?.model ?? null;
    const readAt = assets[0]?.read_at ?? "-infinity";
    const settled = { tenantId, batchNo, model, readAt };
    const worked = await work(deps.providers, { lane, tasks, model, assets }, signal);
    const outcomes = tasks.map((task) => worked.outcomes.get(task.id) ?? "outdated");
    const results = tasks.map((task, index) => resultOf(task, outcomes[index] ?? "outdated", batchNo));
    await settle(db, deps.changed, { ...settled, worked, results });
    hintOf(deps, lane, results);
    report(deps, lane, results);
    const failed = outcomes.some((outcome) => outcome instanceof ProviderError);
    const seconds = (performance.now() - started) / 1_000;
    const labels = { type: lane.task_type, outcome: failed ? "failed" : "succeeded" };
    metrics.observe("millrace_lineage_batch_seconds", labels, seconds);
    return { holdMs: holdMsOf(outcomes) };
  } catch (error) {
    if (!(error instanceof ClaimLost)) throw error;
    deps.log.warn(
      { batchNo, tenantId: lane.tenant_id },
      "a batch of tasks was lost to another process; its results were dropped",
    );
    return { holdMs: 0 };
  } finally {
    clearInterval(beat);
  }
}

/** Gives the tasks of a batch back unchanged. */
export async function releaseBatch(deps: WorkerDeps, { lane, batchNo, tasks }: Batch): Promise<void> {
  const results = tasks.map((task) => resultOf(task, "released", batchNo));
  const worked = { embeddings: [], summaries: [] };
  const none = { tenantId: lane.tenant_id, batchNo, model: null, readAt: "-infinity" };
  await settle(deps.db, deps.changed, { ...none, worked, results }).catch((error: unknown) => {
    if (!(error instanceof ClaimLost)) throw error;
  });
  hintOf(deps, lane, results);
}

/** Only if the model failed for all that it was asked: then it would for the next batch as well. */
function holdMsOf(outcomes: readonly Outcome[]): number {
  const errors = outcomes.filter((outcome) => outcome instanceof ProviderError);
  if (errors.length === 0 || outcomes.includes("done")) return 0;
  return Math.max(...errors.map(({ retryAfterMs }) => retryAfterMs)) || HOLD_MS;
}

function hintOf({ db, hints }: WorkerDeps, { tenant_id: tenantId }: Lane, tasks: readonly { id: string }[]): void {
  hints.changed(
    db,
    "lineage-task",
    tasks.map(({ id }) => id),
    { tenantId },
  );
}

function report({ metrics, log }: WorkerDeps, lane: Lane, results: readonly TaskResult[]): void {
  for (const { status, outdated } of results) {
    const outcome = outdated ? "outdated" : status.toLowerCase();
    metrics.count("millrace_lineage_tasks_total", { type: lane.task_type, outcome });
  }
  const failed = results.filter(({ attempt_status }) => attempt_status === "FAILED");
  const [first] = failed;
  if (!first) return;
  const { tenant_id: tenantId, task_type: type, model_fingerprint: model } = lane;
  const dead = results.filter(({ status }) => status === "DEAD").length;
  log.warn(
    { tenantId, type, model, failed: failed.length, dead, error: first.error, errorType: first.error_type },
    "a model failed for tasks of a tenant",
  );
}
