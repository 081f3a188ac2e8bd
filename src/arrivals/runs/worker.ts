/**
 * The part of a process that runs models: claims what is ready up to its slots, and writes down how each run ended. The claim
 * itself reads what the run will use, under the lock of the instance: whatever arrives after that is news to it.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { type Db, isUnavailable, type Queryable } from "../../kernel/data/db.ts";
import type { Metrics } from "../../kernel/telemetry/metrics.ts";
import { withRetry } from "../../kernel/work/retry.ts";
import { createService, type OnRun, type ServiceLog } from "../../kernel/work/service.ts";
import { OUTLAST_SESSION, type Session } from "../../kernel/work/session.ts";
import { LOST_HINT_MS, type Wake } from "../../kernel/work/wake.ts";
import type { ArrivalsSettings } from "../settings.ts";
import {
  type ClaimedInstance,
  claimInstances,
  giveBackInstances,
  heldInstances,
  type InstanceKey,
} from "../store/instances.ts";
import { findModels } from "../store/models.ts";
import { beginTasks, endLostTasks } from "../store/tasks.ts";
import { READY_TOPIC } from "../topics.ts";
import { type ExecuteDeps, execute } from "./execute.ts";
import { type FinishDeps, finish, type Run } from "./finish.ts";
import { type Consumed, vectorOf } from "./judge.ts";
import { knownModels, readNeeds } from "./needs.ts";

export interface WorkerDeps extends ExecuteDeps, FinishDeps {
  db: Db;
  wake: Wake;
  session: Session;
  settings: ArrivalsSettings;
  metrics: Metrics;
  log: ServiceLog;
  onRun: OnRun;
  /** This process, for people. */
  name: string;
}

export interface Worker {
  start(): void;
  /** Takes no more, waits a little for what runs, and gives back the rest. */
  stop(): Promise<void>;
}

interface Running {
  run: ClaimedInstance;
  control: AbortController;
}

/** After a claim that failed, a process looks whether it holds what it does not run: only the answer may have been lost. */
const WATCH_INTERVAL_MS = 10_000;
const UNSURE_MS = 60_000;
const DRAIN_MS = 5_000;

export function createWorker(deps: WorkerDeps): Worker {
  const { db, wake, session, settings, metrics, log, onRun } = deps;
  const running = new Map<string, Running>(); // By fence, which no two runs share.
  const ending = new Set<Promise<void>>();
  let unlisten = () => {};
  let stopping = false;
  let strays = new Set<string>();
  let unsureUntilMs = 0;

  const claimer = createService({
    name: "arrivals.claim",
    intervalMs: LOST_HINT_MS,
    log,
    onRun,
    runOnce: claim,
    more: ({ claimed = 0 }) => claimed > 0 && running.size < settings.slots,
  });
  const watcher = createService({
    name: "arrivals.watch",
    intervalMs: WATCH_INTERVAL_MS,
    log,
    onRun,
    runOnce: giveBackStrays,
  });

  async function claim(): Promise<{ claimed: number }> {
    const limit = settings.slots - running.size;
    if (stopping || limit <= 0) return { claimed: 0 };
    const request = { limit, session: session.id(), worker: deps.name };
    const runs = await claimRuns(db, request).catch((error: unknown) => {
      beUnsure();
      throw error;
    });
    for (const run of runs) {
      const done = carryOut(run);
      ending.add(done);
      void done.finally(() => ending.delete(done));
    }
    return { claimed: runs.length };
  }

  async function carryOut(run: Run): Promise<void> {
    const current = { run, control: new AbortController() };
    running.set(run.fence, current);
    const startedAt = performance.now();
    try {
      const outcome = await execute(deps, run, current.control.signal);
      const counted = await withRetry(() => finish(deps, run, outcome), {
        policy: OUTLAST_SESSION,
        retryOn: isUnavailable,
      });
      const seconds = (performance.now() - startedAt) / 1000;
      metrics.observe("millrace_arrivals_run_seconds", { outcome: counted ? outcome.status : "taken away" }, seconds);
      const { model_id: modelId, op_time: opTime } = run;
      if (!counted) log.warn({ modelId, opTime }, "a model's run ended too late and was dropped");
    } catch (err) {
      beUnsure();
      if (!stopping) log.error({ err, modelId: run.model_id, opTime: run.op_time }, "a model's run could not be ended");
    } finally {
      running.delete(run.fence);
      claimer.wake();
    }
  }

  async function giveBack(held: readonly (InstanceKey & { fence: string })[], message: string): Promise<void> {
    await db.tx(async (tx) => {
      const returned = await giveBackInstances(tx, held, { lost: false, lostLimit: settings.lostLimit });
      await endLostTasks(tx, returned, message);
    });
    wake.hint(READY_TOPIC);
  }

  function beUnsure(): void {
    unsureUntilMs = performance.now() + UNSURE_MS;
    watcher.wake();
  }

  async function giveBackStrays(): Promise<{ given_back: number }> {
    if (performance.now() >= unsureUntilMs) return { given_back: 0 };
    const held = await heldInstances(db, session.id());
    const idle = held.filter(({ fence }) => !running.has(fence));
    const long = idle.filter(({ fence }) => strays.has(fence));
    strays = new Set(idle.map(({ fence }) => fence));
    if (long.length > 0) await giveBack(long, "its process lost it");
    return { given_back: long.length };
  }

  metrics.gauge("millrace_arrivals_runs_in_flight", () => [{ labels: {}, value: running.size }]);
  return {
    start() {
      unlisten = wake.on(READY_TOPIC, claimer.wake);
      claimer.start();
      watcher.start();
    },
    async stop() {
      stopping = true;
      unlisten();
      await claimer.stop();
      await Promise.race([
        Promise.allSettled(ending),
        sleep(ending.size > 0 ? DRAIN_MS : 0, undefined, { ref: false }),
      ]);
      const left = [...running.values()];
      for (const { control } of left) control.abort(new Error("this process is shutting down"));
      await Promise.allSettled(ending);
      if (left.length > 0)
        await giveBack(
          left.map(({ run }) => run),
          "its process was shut down",
        );
      await watcher.stop();
    },
  };
}

/** Takes what is ready, with everything that its run needs. */
export async function claimRuns(
  db: Db,
  { limit, session, worker }: { limit: number; session: string; worker: string },
): Promise<Run[]> {
  const tasks = new Map<string, { taskId: string; consumed: Consumed }>();
  const claimed = await claimInstances(db, { limit, session }, async (tx, instances) => {
    tasks.clear(); // The transaction may be repeated.
    for (const [fence, task] of await beginRuns(tx, instances, worker)) tasks.set(fence, task);
  });
  if (claimed.length === 0) return [];
  const models = await findModels(
    db,
    claimed.map(({ model_id }) => model_id),
  );
  return claimed.flatMap((instance) => {
    const task = tasks.get(instance.fence);
    const model = models.get(instance.model_id);
    return task && model ? [{ ...instance, ...task, model }] : []; // Deleted in this moment, and its instances with it.
  });
}

/** In the transaction of the claim: a row in the log for each, with what it uses. By fence. */
async function beginRuns(tx: Queryable, claimed: readonly ClaimedInstance[], worker: string) {
  const models = await knownModels(
    tx,
    claimed.map(({ model_id }) => model_id),
  );
  const { needs, arrived } = await readNeeds(tx, claimed, models);
  const fresh = claimed.map((instance) => ({
    ...instance,
    consumed: vectorOf(needs.get(instance) ?? [], arrived),
  }));
  const rows = await beginTasks(tx, fresh, worker);
  return fresh.map(({ model_id, op_time, fence, consumed }): [string, { taskId: string; consumed: Consumed }] => {
    const row = rows.find((task) => task.model_id === model_id && task.op_time === op_time);
    if (!row) throw new Error(`the run of ${model_id} for ${op_time} has no row in the log`);
    return [fence, { taskId: row.id, consumed }];
  });
}
