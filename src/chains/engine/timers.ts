/**
 * Everything that happens because time passes: admission, release of delayed nodes, schedules, time-outs of runs and of child
 * runs, nodes that outlast the grace period, and the reclaim of expired leases. One statement reads what is due; the service
 * then sleeps until the next due time or a hint.
 */
import type { Db } from "../../kernel/data/db.ts";
import { type Counts, createService, type OnRun, type Service, type ServiceLog } from "../../kernel/work/service.ts";
import type { Session } from "../../kernel/work/session.ts";
import type { Wake } from "../../kernel/work/wake.ts";
import type { Runs } from "../runs/runs.ts";
import type { SubRuns } from "../runs/sub-runs.ts";
import type { Schedules } from "../schedules/schedules.ts";
import type { ChainsSettings } from "../settings.ts";
import { lostNodes } from "../store/live.ts";
import { stoppedWaits } from "../store/node-waits.ts";
import { readStatus } from "../store/runs.ts";
import { deleteOldStartKeys } from "../store/starts.ts";
import * as store from "../store/timers.ts";
import { READY_IN_POOL_TOPIC, READY_TOPIC, TIMER_TOPIC } from "../topics.ts";
import type { Engine } from "./engine.ts";
import type { RunCache } from "./run-cache.ts";
import { endRunIfDone, onRunEvent } from "./transition.ts";

const INTERVAL_MS = 20_000;
const AT_ONCE = 200;
const DELETE_KEYS_INTERVAL_MS = 3_600_000;
const CATCH_UP_INTERVAL_MS = 20_000;
const KEYS_AT_ONCE = 2_000;

export interface TimersDeps {
  db: Db;
  wake: Wake;
  session: Pick<Session, "onExpiry">;
  engine: Engine;
  runs: Runs;
  runCache: RunCache;
  schedules: Schedules;
  subRuns: SubRuns;
  /** Reports arrivals that no process reported to the nodes that wait for them. */
  catchUpWithArrivals: () => Promise<number>;
  settings: ChainsSettings;
  log: ServiceLog;
  onRun: OnRun;
}

export function createTimers(deps: TimersDeps): Service {
  const { db, wake, engine, runs, runCache, schedules, subRuns, settings } = deps;
  let nextDueMs: number | undefined;
  let deleteKeysAtMs = 0;
  let catchUpAtMs = 0;

  async function runOnce(): Promise<Counts> {
    const due = await store.readDueWork(db);
    const isDue = (inMs: number | null) => inMs !== null && inMs <= 0;
    if (due.ready) wake.hint(READY_TOPIC);
    if (due.ready_in_pool) wake.hint(READY_IN_POOL_TOPIC);
    const steps: [what: string, wanted: boolean, step: () => Promise<number>][] = [
      ["reclaimed", due.lost, reclaim],
      ["fired", isDue(due.next_fire_ms), async () => (await schedules.fire(AT_ONCE)).fired],
      ["admitted", due.pending || isDue(due.next_fire_ms), () => engine.admit(AT_ONCE)],
      ["released", isDue(due.next_due_ms), releaseDelayed],
      // Before the time-outs: a child run that has ended is no longer late.
      ["children_reported", due.ended_children, reportEndedChildren],
      ["children_timed_out", isDue(due.next_due_ms), timeOutChildren],
      ["timed_out", isDue(due.next_deadline_ms), stopOverdueRuns],
      ["children_stopped", due.orphaned_children, stopOrphanedChildren],
      ["waits_stopped", due.stopped_waits, stopWaits],
      ["given_up", isDue(due.next_grace_ms), stopAfterGrace],
      ["arrivals_caught_up", due.waits && performance.now() >= catchUpAtMs, catchUp],
      ["start_keys_deleted", performance.now() >= deleteKeysAtMs, deleteStartKeys],
    ];
    const counts: Record<string, number> = {};
    const failures: unknown[] = [];
    for (const [what, wanted, step] of steps) {
      // A step that fails must not hold up the others, which include the reclaim.
      counts[what] = wanted ? await step().catch((error: unknown) => failures.push(error) * 0) : 0;
    }
    if (failures.length > 0) throw failures[0];
    const times = [due.next_due_ms, due.next_deadline_ms, due.next_grace_ms, due.next_fire_ms];
    const inMs = times.filter((ms) => ms !== null);
    nextDueMs = inMs.length > 0 ? Math.min(...inMs) : undefined;
    return counts;
  }

  async function releaseDelayed(): Promise<number> {
    const released = await store.releaseDelayed(db, AT_ONCE);
    if (released.some(({ pool }) => pool === null)) wake.hint(READY_TOPIC);
    if (released.some(({ pool }) => pool !== null)) wake.hint(READY_IN_POOL_TOPIC);
    return released.length;
  }

  async function stopOverdueRuns(): Promise<number> {
    const overdue = await store.overdueRuns(db, AT_ONCE);
    for (const { run_id, timeout_ms: timeoutMs } of overdue) {
      await engine.change(run_id, (book) => {
        if (book.status !== "RUNNING") return { answer: false, dry: true };
        onRunEvent(book, { kind: "timed out", graceMs: settings.stopGraceSeconds * 1000, timeoutMs });
        endRunIfDone(book);
        return { answer: true };
      });
    }
    return overdue.length;
  }

  async function timeOutChildren(): Promise<number> {
    const overdue = await store.overdueChildren(db, AT_ONCE);
    const counted = await Promise.all(
      overdue.map(({ run_id: runId, node_id: nodeId, child_run_id: childRunId }) =>
        engine.report({ runId, event: { kind: "child timed out", nodeId, childRunId } }),
      ),
    );
    return counted.filter(Boolean).length;
  }

  async function stopAfterGrace(): Promise<number> {
    const late = await store.runsOutOfGrace(db, AT_ONCE);
    for (const runId of late) {
      await engine.change(runId, (book) => {
        if (book.status !== "STOPPING") return { answer: false, dry: true };
        onRunEvent(book, { kind: "grace expired" });
        return { answer: true };
      });
    }
    return late.length;
  }

  async function reclaim(): Promise<number> {
    const lost = await lostNodes(db, AT_ONCE);
    const { lostLimit } = settings;
    const counted = await Promise.all(
      lost.map(({ run_id: runId, node_id: nodeId, fence }) =>
        engine.report({ runId, event: { kind: "lost", nodeId, fence, lostLimit } }),
      ),
    );
    return counted.filter(Boolean).length;
  }

  async function reportEndedChildren(): Promise<number> {
    const children = await store.endedChildren(db, AT_ONCE);
    let reported = 0;
    for (const child of (await runCache.get(db, children)).values()) {
      const status = await readStatus(db, child.facts.run_id);
      if (status && (await subRuns.ended(child, status))) reported += 1;
    }
    return reported;
  }

  async function stopOrphanedChildren(): Promise<number> {
    const children = await store.orphanedChildren(db, AT_ONCE);
    for (const runId of children) await runs.stopOrphan(runId);
    return children.length;
  }

  async function stopWaits(): Promise<number> {
    const waits = await stoppedWaits(db, AT_ONCE);
    const outcome = { status: "STOPPED", error: "stopped", final: true } as const;
    const counted = await Promise.all(
      waits.map(({ run_id: runId, node_id: nodeId, wait_id: childRunId }) =>
        engine.report({ runId, event: { kind: "child ended", nodeId, childRunId, outcome } }),
      ),
    );
    return counted.filter(Boolean).length;
  }

  function catchUp(): Promise<number> {
    catchUpAtMs = performance.now() + CATCH_UP_INTERVAL_MS;
    return deps.catchUpWithArrivals();
  }

  async function deleteStartKeys(): Promise<number> {
    const deleted = await deleteOldStartKeys(db, KEYS_AT_ONCE);
    if (deleted < KEYS_AT_ONCE) deleteKeysAtMs = performance.now() + DELETE_KEYS_INTERVAL_MS;
    return deleted;
  }

  const service = createService({
    name: "chains.timers",
    intervalMs: INTERVAL_MS,
    log: deps.log,
    onRun: deps.onRun,
    runOnce,
    // A step may make something else due after the read: an admitted run has a deadline.
    more: (counts) => Object.values(counts).some((count) => count > 0),
    nextDueMs: () => nextDueMs,
  });
  let unlisten: (() => void) | undefined;
  return {
    ...service,
    start() {
      unlisten = wake.on(TIMER_TOPIC, service.wake);
      deps.session.onExpiry(service.wake);
      service.start();
    },
    async stop() {
      unlisten?.();
      await service.stop();
    },
  };
}
