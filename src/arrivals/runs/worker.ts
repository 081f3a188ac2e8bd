/**
 * The worker that runs models: claims ready instances up to its slots and records how each run ended, or parks it. The claim reads the
 * arrivals that the run will use under the lock of the instance, so anything that arrives later counts as new.
 */

import type { Db, Queryable } from "../../kernel/data/db.ts";
import { ApiError } from "../../kernel/errors.ts";
import { createLeaseWorker, type LeaseWorker } from "../../kernel/work/lease-worker.ts";
import { LeaseLost, type RunControl } from "../../kernel/work/run-control.ts";
import type { OnRun, ServiceLog } from "../../kernel/work/service.ts";
import type { Session } from "../../kernel/work/session.ts";
import type { ArrivalsMetrics } from "../catalogue.ts";
import { instanceId } from "../hint-ids.ts";
import type { ArrivalsSettings } from "../settings.ts";
import {
  type ClaimedInstance,
  claimInstances,
  hasReadyInstances,
  type InstanceKey,
  instanceLease,
} from "../store/instances.ts";
import { findModels } from "../store/models.ts";
import { beginTasks, tasksUnderWay } from "../store/tasks.ts";
import { HELD_TOPIC, READY_TOPIC } from "../topics.ts";
import { type Consumed, consumedNow } from "./decide.ts";
import { type ExecuteDeps, execute } from "./execute.ts";
import { type FinishDeps, finish, type Outcome, type Run } from "./finish.ts";
import { knownModels, readNeeds } from "./needs.ts";
import type { Parking } from "./parking.ts";
import { releaseRuns } from "./release.ts";

export interface WorkerDeps extends ExecuteDeps, FinishDeps {
  parking: Parking;
  session: Session;
  settings: ArrivalsSettings;
  metrics: ArrivalsMetrics;
  log: ServiceLog;
  onRun: OnRun;
  /** The name of this process in the log of runs. */
  name: string;
}

/** The row of a run in the log, and the arrivals that it uses. */
interface Task {
  taskId: string;
  consumed: Consumed;
  /** How long it was parked with its chain before this claim. */
  parkedSeconds: number;
  /** Its chain was stopped because it took too long. */
  timedOut: boolean;
}
type ClaimedRun = ClaimedInstance & Task;
type Held = InstanceKey & { fence: string };
interface EndedRun {
  run: Run;
  outcome: Outcome;
  seconds: number;
}

const DRAIN_SECONDS = 5;

export function createWorker(deps: WorkerDeps): LeaseWorker<ClaimedRun> {
  const { db, settings, metrics, log } = deps;
  const releaseDeps = { ...deps, lostLimit: settings.lostLimit };

  async function run(item: Run, control: RunControl): Promise<EndedRun> {
    const startedAt = performance.now();
    const seconds = () => item.parkedSeconds + (performance.now() - startedAt) / 1000;
    try {
      const outcome = await execute(deps, item, control.signal);
      return { run: item, outcome, seconds: seconds() };
    } catch (error) {
      if (control.reason instanceof LeaseLost) observe("taken away", seconds());
      throw error;
    }
  }

  function observe(outcome: string, seconds: number): void {
    metrics.observe("millrace_arrivals_run_seconds", { outcome }, seconds);
  }

  async function record({ run: ended, outcome, seconds }: EndedRun): Promise<void> {
    if (outcome.status === "PARKED") return park(ended, outcome.chainRunId, seconds);
    const counted = await finish(deps, ended, outcome);
    observe(counted ? outcome.status : "taken away", seconds);
    const { model_id: modelId, op_time: opTime } = ended;
    if (!counted) log.warn({ modelId, opTime }, "a model's run ended after its lease was lost; its result is dropped");
  }

  async function park(parked: Run, chainRunId: string | null, seconds: number): Promise<void> {
    try {
      await deps.parking.park(parked, chainRunId);
    } catch (error) {
      if (error instanceof LeaseLost) return observe("taken away", seconds);
      if (!(error instanceof ApiError)) throw error;
      await record({ run: parked, outcome: { status: "FAILED", message: error.message, isFinal: false }, seconds });
    }
  }

  const worker = createLeaseWorker<ClaimedRun, Run, EndedRun, Held>({
    name: "arrivals",
    session: deps.session,
    wake: deps.wake,
    log,
    onRun: deps.onRun,
    slots: settings.slots,
    drainSeconds: DRAIN_SECONDS,
    queues: [
      {
        name: "arrivals.claim",
        topics: [READY_TOPIC],
        async claim(limit, session) {
          const claimed = await claimRuns(db, { limit, session, worker: deps.name });
          deps.hints.changed(db, "model", claimed.map(instanceId));
          return claimed;
        },
        isReady: () => hasReadyInstances(db),
      },
    ],
    prepare: (claimed) => withModels(db, claimed),
    run,
    settleMax: 1, // One run may store a million rows, and another must not wait for it.
    settle: async ([ended]) => ended && record(ended),
    held: (session) => instanceLease.heldBy(db, session),
    release(items, reason) {
      const message = reason === "shutdown" ? "its process was shut down" : "its process lost track of it";
      return releaseRuns(releaseDeps, items, { isLoss: false, message });
    },
    lose: (items) => releaseRuns(releaseDeps, items, { isLoss: true, message: "its end could not be recorded" }),
    async reclaim(limit) {
      const expired = await instanceLease.expired(db, limit);
      if (expired.length === 0) return 0;
      return releaseRuns(releaseDeps, expired, { isLoss: true, message: "the process that ran it was lost" });
    },
    fields: ({ model_id: modelId, op_time: opTime }) => ({ modelId, opTime }),
  });
  metrics.gauge("millrace_arrivals_runs_in_flight", () => [{ labels: {}, value: worker.inFlight() }]);
  let unlisten = () => {};
  return {
    ...worker,
    start() {
      unlisten = deps.wake.on(HELD_TOPIC, worker.checker.wake);
      worker.start();
    },
    async stop() {
      unlisten();
      await worker.stop();
    },
  };
}

/** Claims ready instances, each with its row in the log of runs. */
export async function claimRuns(
  db: Db,
  { limit, session, worker }: { limit: number; session: string; worker: string },
): Promise<ClaimedRun[]> {
  const tasks = new Map<string, Task>();
  const claimed = await claimInstances(db, { limit, session }, async (tx, instances) => {
    tasks.clear(); // The transaction may be repeated.
    for (const [fence, task] of await beginRuns(tx, instances, worker)) tasks.set(fence, task);
  });
  return claimed.map((instance) => ({ ...instance, ...(tasks.get(instance.fence) as Task) }));
}

/** Adds the models. Leaves out runs whose model has just been deleted, and their instances with it. */
export async function withModels(db: Db, claimed: readonly ClaimedRun[]): Promise<Run[]> {
  const models = await findModels(
    db,
    claimed.map(({ model_id }) => model_id),
  );
  return claimed.flatMap((run) => {
    const model = models.get(run.model_id);
    return model ? [{ ...run, model }] : [];
  });
}

/**
 * Inserts a log row for each in the transaction of the claim, with the arrivals that it uses; a run whose chain has done the
 * work has its row. By fence.
 */
async function beginRuns(tx: Queryable, claimed: readonly ClaimedInstance[], worker: string) {
  const models = await knownModels(
    tx,
    claimed.map(({ model_id }) => model_id),
  );
  const ready = claimed.filter(({ chain_run_id }) => chain_run_id === null);
  const returned = claimed.filter(({ chain_run_id }) => chain_run_id !== null);
  const { needs, arrived } = await readNeeds(tx, ready, models);
  const fresh = ready.map((instance) => ({
    ...instance,
    consumed: consumedNow(needs.get(instance) ?? [], arrived),
  }));
  const begun = await beginTasks(tx, fresh, worker);
  const tasks = [
    ...begun.map((row) => ({ ...row, parkedSeconds: 0, timedOut: false })),
    ...(returned.length > 0 ? await tasksUnderWay(tx, returned) : []),
  ];
  return claimed.map(({ model_id, op_time, fence }): [string, Task] => {
    const row = tasks.find((task) => task.model_id === model_id && task.op_time === op_time);
    if (!row) throw new Error(`the run of ${model_id} for ${op_time} has no row in the log`);
    const { id: taskId, consumed, parkedSeconds, timedOut } = row;
    return [fence, { taskId, consumed, parkedSeconds, timedOut }];
  });
}
