/** Use cases of tasks: list them and their batches, reset and cancel them. */
import { type Actor, audit } from "../../kernel/auth/audit.ts";
import type { Db, Tx } from "../../kernel/data/db.ts";
import { type DryRun, FOR_REAL, transact } from "../../kernel/data/dry-run.ts";
import type { Wake } from "../../kernel/work/wake.ts";
import { type LineageHints, lineageError } from "../catalogue.ts";
import { CANCELABLE, RESETTABLE, TASK_STATUSES, TASK_TYPES, type TaskStatus, type TaskType } from "./states.ts";
import {
  type AttemptRow,
  type BatchRow,
  cancelTask,
  listBatches,
  listTasks,
  readAttempts,
  readTask,
  resetTask,
  resetTasks,
  type TaskRow,
} from "./store/reads.ts";
import { MODELS_TOPIC } from "./topics.ts";

interface PageOf {
  size: number;
  offset: number;
}

export interface TaskActions {
  list(
    tenantId: string,
    filter: { type?: TaskType; status?: TaskStatus },
    page: PageOf,
  ): Promise<{ items: TaskRow[]; total: number }>;
  batches(tenantId: string, filter: { type?: TaskType }, page: PageOf): Promise<{ items: BatchRow[]; total: number }>;
  get(tenantId: string, taskId: string): Promise<TaskRow & { attempts: AttemptRow[] }>;
  /** Tries it again at once, with all its retries. */
  reset(tenantId: string, taskId: string, actor: Actor, options?: DryRun): Promise<TaskRow>;
  /** The same for all that have a status; answers how many that are. */
  resetAll(tenantId: string, status: (typeof RESETTABLE)[number], actor: Actor): Promise<number>;
  cancel(tenantId: string, taskId: string, actor: Actor, options?: DryRun): Promise<TaskRow>;
}

const ATTEMPTS_SHOWN = 100;
const RESET_BATCH = 1_000;

export function createTaskActions({ db, wake, hints }: { db: Db; wake: Wake; hints: LineageHints }): TaskActions {
  /** One guarded move of one task. */
  async function move(
    ids: { tenantId: string; taskId: string },
    make: (tx: Tx) => Promise<boolean>,
    action: { verb: "reset" | "cancel"; from: readonly TaskStatus[]; actor: Actor; options: DryRun },
  ): Promise<TaskRow> {
    const { tenantId, taskId } = ids;
    const { verb, from, actor } = action;
    return transact(db, action.options, async (tx) => {
      const moved = await make(tx);
      const task = await readTask(tx, tenantId, taskId);
      if (!task) throw lineageError("TASK_NOT_FOUND", ids);
      if (!moved) {
        const hint = `One can ${verb} what is ${from.join(", ")}.`;
        throw lineageError("TASK_WRONG_STATE", { taskId, status: task.status }, { verb, hint });
      }
      await audit(tx, actor, `task.${verb}`, taskId, { tenantId });
      hints.changed(tx, "lineage-task", taskId, { tenantId });
      return task;
    });
  }

  return {
    list: (tenantId, { type, status }, page) =>
      listTasks(db, tenantId, { types: type ? [type] : TASK_TYPES, statuses: status ? [status] : TASK_STATUSES }, page),
    batches: (tenantId, { type }, page) => listBatches(db, tenantId, type ? [type] : TASK_TYPES, page),

    async get(tenantId, taskId) {
      const [task, attempts] = await Promise.all([
        readTask(db, tenantId, taskId),
        readAttempts(db, tenantId, taskId, ATTEMPTS_SHOWN),
      ]);
      if (!task) throw lineageError("TASK_NOT_FOUND", { tenantId, taskId });
      return { ...task, attempts: attempts.toReversed() };
    },

    reset(tenantId, taskId, actor, options = FOR_REAL) {
      const make = (tx: Tx) => {
        tx.afterCommit(() => wake.hint(MODELS_TOPIC));
        return resetTask(tx, tenantId, taskId);
      };
      return move({ tenantId, taskId }, make, { verb: "reset", from: RESETTABLE, actor, options });
    },

    async resetAll(tenantId, status, actor) {
      await audit(db, actor, "task.reset-all", tenantId, { status });
      let reset = 0;
      for (;;) {
        const batch = await resetTasks(db, tenantId, status, RESET_BATCH);
        reset += batch;
        if (batch > 0) {
          wake.hint(MODELS_TOPIC);
          hints.changed(db, "lineage-task", "*", { tenantId });
        }
        if (batch < RESET_BATCH) return reset;
      }
    },

    cancel(tenantId, taskId, actor, options = FOR_REAL) {
      const make = (tx: Tx) => cancelTask(tx, tenantId, taskId);
      return move({ tenantId, taskId }, make, { verb: "cancel", from: CANCELABLE, actor, options });
    },
  };
}
