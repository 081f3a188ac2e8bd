/**
 * The worker that executes tasks. A claim takes tasks of all partitions in turn, inserts their runs in its transaction, and each
 * task walks through its slice on its own.
 */

import type { Db, Tx } from "../../kernel/data/db.ts";
import { GATES_TOPIC, type Gates } from "../../kernel/gate/gates.ts";
import { messageOf } from "../../kernel/text/message-of.ts";
import { createLeaseWorker, type LeaseWorker, type ReleaseReason } from "../../kernel/work/lease-worker.ts";
import { LeaseLost } from "../../kernel/work/run-control.ts";
import type { OnRun, ServiceLog } from "../../kernel/work/service.ts";
import type { Session } from "../../kernel/work/session.ts";
import type { Wake } from "../../kernel/work/wake.ts";
import type { HarvestSettings } from "../settings.ts";
import { lockRoots } from "../store/plans/parts.ts";
import { failSlicesOf } from "../store/plans/slices.ts";
import {
  type ClaimedTask,
  endRunsOf,
  nextTaskDueMs,
  plansOfTasks,
  readSnapshots,
  startRuns,
  taskContexts,
  taskLease,
} from "../store/queue/tasks.ts";
import { TASKS_TOPIC } from "../topics.ts";
import { createShare } from "./background.ts";
import { createCompiledSources } from "./compiled.ts";
import { type FinishDeps, type Finished, finishSlice } from "./finish.ts";
import { createDeclareGates } from "./gates.ts";
import { afterError } from "./retry-later.ts";
import { walkSlice } from "./slice-walk.ts";
import type { PreparedTask } from "./task.ts";
import { createWalk, type WalkDeps } from "./walk.ts";

export interface WorkerDeps extends WalkDeps, FinishDeps {
  db: Db;
  wake: Wake;
  session: Session;
  gates: Gates;
  log: ServiceLog;
  onRun: OnRun;
  settings: HarvestSettings;
}

const CLAIM_MAX = 100;

export function createWorker(deps: WorkerDeps): LeaseWorker<ClaimedTask> {
  const { db, settings, metrics } = deps;
  const compiled = createCompiledSources((fingerprints) => readSnapshots(db, fingerprints));
  const declareGates = createDeclareGates(deps);
  const share = createShare(settings.slots);

  async function prepare(claimed: readonly ClaimedTask[]): Promise<PreparedTask[]> {
    const contexts = await taskContexts(
      db,
      claimed.map(({ task_id }) => task_id),
    );
    deps.hints.changed(db, "plan", new Set(contexts.map(({ plan_id }) => plan_id)));
    const sources = await compiled(contexts.map(({ spec_fingerprint }) => spec_fingerprint));
    const byTask = new Map(contexts.map((context) => [context.task_id, context]));
    const unusable: { task: ClaimedTask; reason: string }[] = [];
    const prepared = claimed.flatMap((task): PreparedTask[] => {
      const { task_id, fence } = task;
      const context = byTask.get(task_id);
      const source = context && sources.get(context.spec_fingerprint);
      if (!context || !source) return [];
      if (!("unusable" in source)) return [{ task_id, fence, context, source }];
      unusable.push({ task, reason: `the snapshot of its plan cannot be used: ${source.unusable}` });
      return [];
    });
    await failUnusable(unusable);
    for (const { task } of unusable) share.ended(task.fence);
    return prepared;
  }

  /** An error, such as a full disk or a lost database, does not end the slice: its task goes on later. */
  async function execute(task: PreparedTask, signal: AbortSignal): Promise<Finished | undefined> {
    // A page that is being fetched when the walk fails is of no use. Not by `AbortSignal.any`, whose signals Node 20 may collect
    // before they abort.
    const over = new AbortController();
    const onAbort = () => over.abort(signal.reason);
    signal.addEventListener("abort", onAbort, { once: true });
    const walk = createWalk(deps, task, over.signal);
    try {
      signal.throwIfAborted();
      await declareGates(task);
      return { walk, end: await walkSlice(deps, walk) };
    } catch (error) {
      if (error instanceof LeaseLost) return undefined; // Cancelled, or another process has it.
      signal.throwIfAborted();
      deps.log.warn({ err: error, taskId: task.task_id }, "a harvest task failed and is tried again later");
      return { walk, end: afterError(walk, messageOf(error), deps.random) };
    } finally {
      signal.removeEventListener("abort", onAbort);
      over.abort();
      share.ended(task.fence);
    }
  }

  /** A snapshot that this version cannot compile fails its own slice and no other. */
  async function failUnusable(tasks: readonly { task: ClaimedTask; reason: string }[]): Promise<void> {
    for (const { task, reason } of tasks) {
      await db.tx(async (tx) => {
        const ended = await taskLease.finish(tx, "failed", [{ ...task, error: reason }]);
        if (ended.length > 0) await failSlices(tx, [task.task_id], reason);
      });
    }
  }

  async function release(items: readonly { task_id: string; fence: string }[], reason: ReleaseReason): Promise<void> {
    for (const { fence } of items) share.ended(fence);
    await db.tx(async (tx) => {
      const released = await taskLease.release(tx, items);
      const ids = released.map(({ task_id }) => task_id);
      if (ids.length === 0) return;
      await endRunsOf(tx, ids, reason === "shutdown" ? "the process was stopped" : "it was not begun");
      deps.hints.changed(tx, "plan", await plansOfTasks(tx, ids));
    });
  }

  async function reclaim(limit: number): Promise<number> {
    return db.tx(async (tx) => {
      const rows = await taskLease.reclaim(tx, { limit, lostLimit: settings.lostLimit });
      await takenBack(tx, rows);
      return rows.length;
    });
  }

  /** Most are queued again, which pages show. The slices of tasks that lost too many processes end with them. */
  async function takenBack(tx: Tx, rows: readonly { task_id: string; state: string }[]) {
    if (rows.length === 0) return;
    const ids = rows.map(({ task_id }) => task_id);
    deps.hints.changed(tx, "plan", await plansOfTasks(tx, ids));
    const dead = rows.filter(({ state }) => state === "FAILED").map(({ task_id }) => task_id);
    if (dead.length === 0) return;
    const reason = `its task lost ${settings.lostLimit} workers in a row`;
    await failSlices(tx, dead, reason);
  }

  async function failSlices(tx: Tx, taskIds: readonly string[], reason: string): Promise<void> {
    const { plans, roots, changed } = await failSlicesOf(tx, taskIds, reason);
    await lockRoots(tx, roots);
    await deps.landing.wantEnded(tx, changed);
    await deps.settle(tx, plans);
  }

  const worker = createLeaseWorker<ClaimedTask, PreparedTask, Finished | undefined, { task_id: string; fence: string }>(
    {
      name: "harvest",
      session: deps.session,
      wake: deps.wake,
      log: deps.log,
      onRun: deps.onRun,
      slots: settings.slots,
      drainSeconds: settings.drainSeconds,
      queues: [
        {
          name: "harvest.execute",
          topics: [TASKS_TOPIC, GATES_TOPIC],
          claimMax: CLAIM_MAX,
          claim: (limit, holder) =>
            share.claim(limit, (some, only) =>
              taskLease.claim(db, { limit: some, holder, ...(only ? { only } : {}) }, startRuns),
            ),
          dueMs: () => nextTaskDueMs(db),
          claimsAfterEnd: true, // Its partition has a free place again.
        },
      ],
      prepare,
      run: (task, { signal }) => execute(task, signal),
      settle: async ([finished]) => {
        if (finished) await finishSlice(deps, finished);
      },
      settleMax: 1,
      held: (holder) => taskLease.heldBy(db, holder),
      fields: ({ task_id }) => ({ taskId: task_id }),
      release,
      lose: (items) =>
        db.tx(async (tx) => {
          const rows = await taskLease.lose(tx, items, settings.lostLimit);
          await takenBack(tx, rows);
        }),
      reclaim,
    },
  );
  metrics.gauge("patra_ingest_executor_concurrency", () => [{ labels: {}, value: worker.inFlight() }]);
  return worker;
}
