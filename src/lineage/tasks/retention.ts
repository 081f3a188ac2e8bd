/** Forgets tasks that have succeeded, and batches, after some time, a batch at a time: history stays bounded. */
import type { Db } from "../../kernel/data/db.ts";
import { createService, type OnRun, type Service, type ServiceLog } from "../../kernel/work/service.ts";
import { forgetTasks } from "../store/task-retention.ts";
import type { TasksSettings } from "./settings.ts";

const INTERVAL_MS = 3_600_000;
const BATCH_MAX = 1_000;

export function createRetention(deps: { db: Db; log: ServiceLog; onRun: OnRun; settings: TasksSettings }): Service {
  const { db, log, onRun, settings } = deps;
  return createService({
    name: "lineage.tasks.retention",
    intervalMs: INTERVAL_MS,
    log,
    onRun,
    runOnce: () => forgetTasks(db, settings.keepDays, BATCH_MAX),
    more: ({ tasks = 0, batches = 0 }) => Math.max(tasks, batches) === BATCH_MAX,
  });
}
