/**
 * The worker for tasks. It wakes when tasks are queued, when the next is due, and when a claim of a lost process expires, so an idle
 * process polls every two minutes only. Batches run independently: a model that hangs delays no other tenant.
 */

import type { Db } from "../../kernel/data/db.ts";
import type { Ids } from "../../kernel/ids.ts";
import { createLeaseWorker, type LeaseWorker } from "../../kernel/work/lease-worker.ts";
import type { RunControl } from "../../kernel/work/run-control.ts";
import type { OnRun, ServiceLog } from "../../kernel/work/service.ts";
import type { Wake } from "../../kernel/work/wake.ts";
import type { LineageHints, LineageMetrics } from "../catalogue.ts";
import { type Batch, claimBatch, releaseBatch, runBatch } from "./batch.ts";
import { choose, laneKey } from "./fairness.ts";
import type { Providers } from "./providers/providers.ts";
import type { TasksSettings } from "./settings.ts";
import type { Changed } from "./settle.ts";
import { type Lane, nextExpiryMs, reclaimTasks, type WaitingLane, waitingLanes } from "./store/tasks.ts";
import { MODELS_TOPIC, TASKS_TOPIC } from "./topics.ts";

export interface WorkerDeps {
  db: Db;
  wake: Wake;
  hints: LineageHints;
  metrics: LineageMetrics;
  log: ServiceLog;
  onRun: OnRun;
  ids: Ids;
  settings: TasksSettings;
  providers: Providers;
  changed: Changed;
}

const RECLAIM_MAX = 500;
/** How many lanes one look sees; the next goes on from there. */
const LANES_MAX = 1_000;
/** How long a process that shuts down waits for models before it gives back what it asked them. */
const DRAIN_SECONDS = 3;
const FIRST_TENANT = "-1";

export function createWorker(deps: WorkerDeps): LeaseWorker<Batch> {
  const { db, wake, hints, settings, metrics } = deps;
  const inFlight = new Set<Batch>();
  /** Lanes whose model fails, and until when they are left alone, by performance.now(). */
  const pausedUntilMs = new Map<string, number>();
  let dueAtMs = Number.POSITIVE_INFINITY;
  let lastTenant = FIRST_TENANT;
  let lookFrom = FIRST_TENANT;
  let reclaimed = 0;

  async function claim(limit: number): Promise<Batch[]> {
    dueAtMs = Number.POSITIVE_INFINITY;
    reclaimed = await reclaim();
    const busy = [...inFlight].map(({ lane }) => lane);
    const lanes = choose(await dueLanes(), { free: limit, perTenant: settings.perTenant, busy, lastTenant });
    const batches: Batch[] = [];
    for (const lane of lanes) {
      try {
        const batch = await claimBatch(deps, lane);
        if (batch) batches.push(batch);
      } catch (error) {
        if (batches.length === 0) throw error;
        deps.log.warn({ err: error, tenantId: lane.tenant_id }, "tasks of a tenant could not be claimed");
        dueIn(0);
        break; // What was claimed before it is run.
      }
      lastTenant = lane.tenant_id;
    }
    return batches;
  }

  function dueIn(ms: number): void {
    dueAtMs = Math.min(dueAtMs, performance.now() + ms);
  }

  async function reclaim(): Promise<number> {
    const expiryMs = await nextExpiryMs(db);
    if (expiryMs > 0) {
      dueIn(expiryMs);
      return 0;
    }
    const lost = await reclaimTasks(db, RECLAIM_MAX);
    for (const { id, tenant_id: tenantId, task_type } of lost) {
      metrics.count("millrace_lineage_tasks_total", { type: task_type, outcome: "lost" });
      hints.changed(db, "lineage-task", id, { tenantId });
    }
    dueIn(0); // There may be more, and of those that are left the first has its time.
    return lost.length;
  }

  /** The lanes that have something to do now and are not paused. */
  async function dueLanes(): Promise<Lane[]> {
    const from = lookFrom;
    const lanes = await waitingLanes(db, from, LANES_MAX);
    const last = lanes[LANES_MAX - 1]; // The last tenant may have more lanes than were seen, so the next look sees it again.
    lookFrom = last ? String(BigInt(last.tenant_id) - 1n) : FIRST_TENANT;
    if (lookFrom !== from) dueIn(0); // Not all lanes were seen.
    const now = performance.now();
    return lanes.filter((lane) => isDue(lane, now));
  }

  function isDue(lane: WaitingLane, now: number): boolean {
    const waitMs = Math.max(lane.due_in_ms, (pausedUntilMs.get(laneKey(lane)) ?? 0) - now);
    if (waitMs > 0) dueIn(waitMs);
    return waitMs <= 0;
  }

  async function run(batch: Batch, { signal }: RunControl): Promise<void> {
    const key = laneKey(batch.lane);
    inFlight.add(batch);
    try {
      const { holdMs } = await runBatch(deps, batch, signal);
      if (holdMs > 0) pausedUntilMs.set(key, performance.now() + holdMs);
      else pausedUntilMs.delete(key);
    } finally {
      inFlight.delete(batch);
    }
  }

  const worker = createLeaseWorker<Batch, Batch, void, Batch>({
    name: "lineage.tasks",
    wake,
    log: deps.log,
    onRun: deps.onRun,
    slots: settings.batches,
    drainSeconds: DRAIN_SECONDS,
    queues: [
      {
        name: "lineage.tasks",
        topics: [TASKS_TOPIC],
        claim,
        counts: (batches) => ({ claimed: batches.reduce((sum, { tasks }) => sum + tasks.length, 0), reclaimed }),
        nextDueMs: () => dueAtMs - performance.now(),
        claimsAfterEnd: true, // A tenant may have another batch under way.
      },
    ],
    prepare: async (batches) => batches,
    run,
    release: (batches) => Promise.all(batches.map((batch) => releaseBatch(deps, batch))),
    fields: ({ fence }) => ({ batchNo: fence }),
  });
  metrics.gauge("millrace_lineage_batches_in_flight", () => [{ labels: {}, value: worker.inFlight() }]);
  // A person who chose a model or reset tasks has corrected the cause, or wants to see whether it is.
  const unlisten = wake.on(MODELS_TOPIC, () => {
    pausedUntilMs.clear();
    worker.wake();
  });
  return {
    ...worker,
    async stop() {
      unlisten();
      await worker.stop();
    },
  };
}
