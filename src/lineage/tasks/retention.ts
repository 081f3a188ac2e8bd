/** Deletes succeeded tasks and batches after some time, in batches, so that history stays bounded. */
import type { Db } from "../../kernel/data/db.ts";
import { HOUR_MS } from "../../kernel/time/units.ts";
import { createService, type OnRun, type Service, type ServiceLog } from "../../kernel/work/service.ts";
import type { TasksSettings } from "./settings.ts";
import { deleteOldTasks } from "./store/retention.ts";

const BATCH_MAX = 1_000;

export function createRetention(deps: { db: Db; log: ServiceLog; onRun: OnRun; settings: TasksSettings }): Service {
  const { db, log, onRun, settings } = deps;
  return createService({
    name: "lineage.tasks.retention",
    intervalMs: HOUR_MS,
    log,
    onRun,
    runOnce: () => deleteOldTasks(db, settings.keepDays, BATCH_MAX),
    more: ({ tasks = 0, batches = 0 }) => Math.max(tasks, batches) === BATCH_MAX,
  });
}
