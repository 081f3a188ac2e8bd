/**
 * What happens because time passes: runs are admitted, delayed nodes ripen, schedules fire, runs that take too long are
 * stopped, nodes that do not stop are given up, and the work of silent processes is taken back. One look tells whether there
 * is anything to do; between looks it sleeps until the next thing is due, or somebody hints.
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
import { readStatus } from "../store/runs.ts";
import { forgetStartKeys } from "../store/starts.ts";
import * as store from "../store/timers.ts";
import { READY_IN_POOL_TOPIC, READY_TOPIC, TIMER_TOPIC } from "../topics.ts";
import type { Engine } from "./engine.ts";
import type { RunCache } from "./run-cache.ts";
import { onRunEvent } from "./transition.ts";

const INTERVAL_MS = 20_000;
const AT_ONCE = 200;
const FORGET_INTERVAL_MS = 3_600_000;
const CATCH_UP_INTERVAL_MS = 20_000;
const FORGET_AT_ONCE = 2_000;

export interface TimersDeps {
  db: Db;
  wake: Wake;
  session: Pick<Session, "onExpiry">;
  engine: Engine;
  runs: Runs;
  known: RunCache;
  schedules: Schedules;
  subRuns: SubRuns;
  /** Lets the nodes go on whose tables are here, if nobody told them. */
  catchUpWithArrivals: () => Promise<number>;
  settings: ChainsSettings;
  log: ServiceLog;
  onRun: OnRun;
}

export function createTimers(deps: TimersDeps): Service {
  const { db, wake, engine, runs, known, schedules, subRuns, settings } = deps;
  let nextDueMs: number | undefined;
  let forgetAtMs = 0;
  let catchUpAtMs = 0;

  async function runOnce(): Promise<Counts> {
    const seen = await store.look(db);
    const due = (inMs: number | null) => inMs !== null && inMs <= 0;
    if (seen.ready) wake.hint(READY_TOPIC);
    if (seen.ready_in_pool) wake.hint(READY_IN_POOL_TOPIC);
    const steps: [what: string, wanted: boolean, step: () => Promise<number>][] = [
      ["reclaimed", seen.lost, reclaim],
      ["fired", due(seen.next_fire_ms), async () => (await schedules.fire(AT_ONCE)).fired],
      ["admitted", seen.pending || due(seen.next_fire_ms), () => engine.admit(AT_ONCE)],
      ["ripened", due(seen.next_due_ms), ripen],
      ["children_timed_out", due(seen.next_due_ms), timeOutChildren],
      ["timed_out", due(seen.next_deadline_ms), timeOut],
      ["children_stopped", seen.forsaken_children, stopChildren],
      ["given_up", due(seen.next_grace_ms), giveUp],
      ["children_told", seen.ended_children, tellOfChildren],
      ["arrivals_caught_up", seen.waits && performance.now() >= catchUpAtMs, catchUp],
      ["forgotten", performance.now() >= forgetAtMs, forget],
    ];
    const counts: Record<string, number> = {};
    const failures: unknown[] = [];
    for (const [what, wanted, step] of steps) {
      // One that fails must not keep the others from their turn: among them is the reclaim of lost work.
      counts[what] = wanted ? await step().catch((error: unknown) => failures.push(error) * 0) : 0;
    }
    if (failures.length > 0) throw failures[0];
    const times = [seen.next_due_ms, seen.next_deadline_ms, seen.next_grace_ms, seen.next_fire_ms];
    const inMs = times.filter((ms) => ms !== null);
    nextDueMs = inMs.length > 0 ? Math.min(...inMs) : undefined;
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

  async function timeOutChildren(): Promise<number> {
    const overdue = await store.overdueChildren(db, AT_ONCE);
    const counted = await Promise.all(
      overdue.map(({ run_id: runId, node_id: nodeId, child_run_id: childRunId }) =>
        engine.report({ runId, event: { kind: "child took too long", nodeId, childRunId } }),
      ),
    );
    return counted.filter(Boolean).length;
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
    let told = 0;
    for (const child of (await known.get(db, children)).values()) {
      const status = await readStatus(db, child.facts.run_id);
      if (status && (await subRuns.ended(child, status))) told += 1;
    }
    return told;
  }

  async function stopChildren(): Promise<number> {
    const children = await store.forsakenChildren(db, AT_ONCE);
    for (const runId of children) await runs.stopChild(runId, "nothing waits for it any more");
    return children.length;
  }

  function catchUp(): Promise<number> {
    catchUpAtMs = performance.now() + CATCH_UP_INTERVAL_MS;
    return deps.catchUpWithArrivals();
  }

  async function forget(): Promise<number> {
    const forgotten = await forgetStartKeys(db, FORGET_AT_ONCE);
    if (forgotten < FORGET_AT_ONCE) forgetAtMs = performance.now() + FORGET_INTERVAL_MS;
    return forgotten;
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
      deps.session.onExpiry(service.wake);
      service.start();
    },
    async stop() {
      unlisten?.();
      await service.stop();
    },
  };
}
