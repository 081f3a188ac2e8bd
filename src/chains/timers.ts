/**
 * What happens because time passes: runs are admitted, delayed nodes ripen, schedules fire, runs that take too long are
 * stopped, nodes that do not stop are given up, and the work of silent processes is taken back. One look every ten seconds
 * tells whether there is anything to do; between looks it sleeps until the next thing is due.
 */
import type { Db } from "../kernel/db.ts";
import { createService, type OnRun, type Service, type ServiceLog } from "../kernel/service.ts";
import type { Wake } from "../kernel/wake.ts";
import { type Engine, READY_IN_POOL_TOPIC, READY_TOPIC, TIMER_TOPIC } from "./engine.ts";
import type { RunCache } from "./run-cache.ts";
import type { Runs } from "./runs.ts";
import type { Schedules } from "./schedules.ts";
import type { ChainsSettings } from "./settings.ts";
import { lostNodes } from "./store/live.ts";
import { readStatus } from "./store/runs.ts";
import { forgetStartKeys } from "./store/starts.ts";
import * as store from "./store/timers.ts";
import type { SubRuns } from "./sub-runs.ts";
import { onRunEvent } from "./transition.ts";

const INTERVAL_MS = 10_000;
const AT_ONCE = 200;
const FORGET_INTERVAL_MS = 3_600_000;

export interface TimersDeps {
  db: Db;
  wake: Wake;
  engine: Engine;
  runs: Runs;
  known: RunCache;
  schedules: Schedules;
  subRuns: SubRuns;
  settings: ChainsSettings;
  log: ServiceLog;
  onRun: OnRun;
}

export function createTimers(deps: TimersDeps): Service {
  const { db, wake, engine, runs, known, schedules, subRuns, settings } = deps;
  let nextDueMs: number | undefined;
  let forgottenAt = 0;

  async function runOnce() {
    const seen = await store.look(db);
    const due = (inMs: number | null) => inMs !== null && inMs <= 0;
    if (seen.ready) wake.hint(READY_TOPIC);
    if (seen.ready_in_pool) wake.hint(READY_IN_POOL_TOPIC);
    const fired = due(seen.next_fire_ms) ? await schedules.fire(AT_ONCE) : { due: 0, fired: 0 };
    const counts = {
      fired: fired.fired,
      admitted: seen.pending || fired.fired > 0 ? await engine.admit(AT_ONCE) : 0,
      ripened: due(seen.next_delayed_ms) ? await ripen() : 0,
      timed_out: due(seen.next_deadline_ms) ? await timeOut() : 0,
      // Before their parents are given up: of those that nobody waits for any more it would not know.
      children_stopped: seen.next_grace_ms === null ? 0 : await stopChildren(),
      given_up: due(seen.next_grace_ms) ? await giveUp() : 0,
      reclaimed: seen.lost ? await reclaim() : 0,
      children_told: seen.ended_children ? await tellOfChildren() : 0,
      forgotten: await forget(),
    };
    const next = [seen.next_delayed_ms, seen.next_deadline_ms, seen.next_grace_ms, seen.next_fire_ms];
    const times = next.filter((ms) => ms !== null);
    nextDueMs = times.length > 0 ? Math.min(...times) : undefined;
    return counts;
  }

  async function ripen(): Promise<number> {
    const ripe = await store.ripen(db, AT_ONCE);
    if (ripe.some(({ pool }) => pool === null)) wake.hint(READY_TOPIC);
    if (ripe.some(({ pool }) => pool !== null)) wake.hint(READY_IN_POOL_TOPIC);
    return ripe.length;
  }

  async function timeOut(): Promise<number> {
    const overdue = await store.overdueRuns(db, AT_ONCE);
    for (const { run_id, timeout_ms: timeoutMs } of overdue) {
      await engine.change(run_id, (book) => {
        if (book.status !== "RUNNING") return { answer: false, dry: true };
        onRunEvent(book, { kind: "time is up", graceMs: settings.stopGraceSeconds * 1000, timeoutMs });
        onRunEvent(book, { kind: "settle" });
        return { answer: true };
      });
    }
    return overdue.length;
  }

  async function giveUp(): Promise<number> {
    const late = await store.runsOutOfGrace(db, AT_ONCE);
    for (const runId of late) {
      await engine.change(runId, (book) => {
        if (book.status !== "STOPPING") return { answer: false, dry: true };
        onRunEvent(book, { kind: "grace is over" });
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

  async function tellOfChildren(): Promise<number> {
    const children = await store.endedChildren(db, AT_ONCE);
    for (const child of (await known.get(db, children)).values()) {
      const status = await readStatus(db, child.facts.run_id);
      if (status) await subRuns.ended(child, status);
    }
    return children.length;
  }

  async function stopChildren(): Promise<number> {
    const children = await store.childrenToStop(db, AT_ONCE);
    for (const runId of children) await runs.stopChild(runId, "the run that waits for it was stopped");
    return children.length;
  }

  async function forget(): Promise<number> {
    if (performance.now() - forgottenAt < FORGET_INTERVAL_MS) return 0;
    forgottenAt = performance.now();
    return forgetStartKeys(db, AT_ONCE * 10);
  }

  const service = createService({
    name: "chains.timers",
    intervalMs: INTERVAL_MS,
    log: deps.log,
    onRun: deps.onRun,
    runOnce,
    // What was done may make something else due that the look could not know of: an admitted run has a deadline.
    more: (counts) => Object.values(counts).some((count) => count > 0),
    nextDueMs: () => nextDueMs,
  });
  let unlisten: (() => void) | undefined;
  return {
    ...service,
    start() {
      unlisten = wake.on(TIMER_TOPIC, service.wake);
      service.start();
    },
    async stop() {
      unlisten?.();
      await service.stop();
    },
  };
}
