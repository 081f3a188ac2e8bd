/**
 * Works on tasks. Whoever queues some wakes it; what is due later it knows, and what a lost process had claimed it takes back
 * when that claim runs out. So an idle process asks the database every two minutes. Batches go their own ways from their
 * claims on: one model that hangs delays no other tenant.
 */
import { setMaxListeners } from "node:events";
import { setTimeout as sleepFor } from "node:timers/promises";
import type { Db } from "../../kernel/data/db.ts";
import type { Ids } from "../../kernel/ids.ts";
import type { Metrics } from "../../kernel/telemetry/metrics.ts";
import { createService, type OnRun, type Service, type ServiceLog } from "../../kernel/work/service.ts";
import { LOST_HINT_MS, type Wake } from "../../kernel/work/wake.ts";
import { type Lane, nextExpiryMs, reclaimTasks, type WaitingLane, waitingLanes } from "../store/tasks.ts";
import { type Batch, claimBatch, runBatch } from "./batch.ts";
import { choose, laneKey } from "./fairness.ts";
import type { Providers } from "./providers.ts";
import type { TasksSettings } from "./settings.ts";
import type { Changed } from "./settle.ts";
import { MODELS_TOPIC, TASKS_TOPIC } from "./topics.ts";

export interface WorkerDeps {
  db: Db;
  wake: Wake;
  metrics: Metrics;
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
const DRAIN_MS = 3_000;
const FIRST_TENANT = "-1";

export function createWorker(deps: WorkerDeps): Service {
  const { db, wake, settings, metrics, log, onRun } = deps;
  const inFlight = new Map<Batch, Promise<void>>();
  /** Lanes whose model fails, and until when they are left alone, by performance.now(). */
  const held = new Map<string, number>();
  const stopping = new AbortController();
  setMaxListeners(0, stopping.signal); // Every request under way listens; Node would take that for a leak.
  let dueAtMs = Number.POSITIVE_INFINITY;
  let lastTenant = FIRST_TENANT;
  let lookFrom = FIRST_TENANT;

  const service = createService({
    name: "lineage.tasks",
    intervalMs: LOST_HINT_MS,
    log,
    onRun,
    async runOnce() {
      const free = settings.batches - inFlight.size;
      dueAtMs = Number.POSITIVE_INFINITY;
      if (free <= 0) return { claimed: 0, reclaimed: 0 }; // The next slot that is free asks again.
      const reclaimed = await reclaim();
      const due = await look();
      const lanes = choose(due, { free, perTenant: settings.perTenant, busy: busyLanes(), lastTenant });
      let claimed = 0;
      for (const lane of lanes) {
        const batch = await claimBatch(deps, lane);
        lastTenant = lane.tenant_id;
        if (!batch) continue;
        claimed += batch.tasks.length;
        begin(batch);
      }
      return { claimed, reclaimed };
    },
    nextDueMs: () => dueAtMs - performance.now(),
  });

  const busyLanes = (): Lane[] => [...inFlight.keys()].map(({ lane }) => lane);

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
    for (const { task_type } of lost)
      metrics.count("millrace_lineage_tasks_total", { type: task_type, outcome: "lost" });
    dueIn(0); // There may be more, and of those that are left the first has its time.
    return lost.length;
  }

  /** The lanes that have something to do now and are not held. */
  async function look(): Promise<Lane[]> {
    const from = lookFrom;
    const lanes = await waitingLanes(db, from, LANES_MAX);
    const last = lanes[LANES_MAX - 1]; // The last tenant may have more lanes than were seen, so the next look sees it again.
    lookFrom = last ? String(BigInt(last.tenant_id) - 1n) : FIRST_TENANT;
    if (lookFrom !== from) dueIn(0); // Not all lanes were seen.
    const now = performance.now();
    return lanes.filter((lane) => isFree(lane, now));
  }

  function isFree(lane: WaitingLane, now: number): boolean {
    const waitMs = Math.max(lane.due_in_ms, (held.get(laneKey(lane)) ?? 0) - now);
    if (waitMs > 0) dueIn(waitMs);
    return waitMs <= 0;
  }

  function begin(batch: Batch): void {
    const key = laneKey(batch.lane);
    const done = runBatch(deps, batch, stopping.signal)
      .then(
        ({ holdMs }) => void (holdMs > 0 ? held.set(key, performance.now() + holdMs) : held.delete(key)),
        (err: unknown) =>
          log.error(
            { err, batchNo: batch.batchNo },
            "a batch of tasks broke off; its tasks are tried again when its claim has run out",
          ),
      )
      .finally(() => {
        inFlight.delete(batch);
        service.wake();
      });
    inFlight.set(batch, done);
  }

  /** Waits for what is under way; what has not ended in time is given back. */
  async function drain(): Promise<void> {
    const enough = new AbortController();
    const time = sleepFor(DRAIN_MS, undefined, { signal: enough.signal }).catch(() => undefined);
    const all = Promise.all(inFlight.values());
    await Promise.race([all, time]);
    enough.abort();
    stopping.abort(new Error("this process is shutting down"));
    await all;
  }

  metrics.gauge("millrace_lineage_batches_in_flight", () => [{ labels: {}, value: inFlight.size }]);
  const unlisten = [
    wake.on(TASKS_TOPIC, service.wake),
    // Whoever chose a model or reset tasks has put right what was wrong, or wants to know.
    wake.on(MODELS_TOPIC, () => {
      held.clear();
      service.wake();
    }),
  ];
  return {
    ...service,
    async stop() {
      for (const end of unlisten) end();
      await service.stop();
      await drain();
    },
  };
}
