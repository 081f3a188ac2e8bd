/** Deletes runs that ended more than `keepDays` ago, a few at a time. */
import type { Db } from "../../kernel/data/db.ts";
import { createService, type OnRun, type Service, type ServiceLog } from "../../kernel/work/service.ts";
import type { ChainsSettings } from "../settings.ts";
import { deleteOldRuns } from "../store/retention.ts";

const INTERVAL_MS = 3_600_000;
/** A run may have ten thousand nodes with many log lines each. */
const RUNS_AT_ONCE = 20;

export function createRetention(deps: { db: Db; log: ServiceLog; onRun: OnRun; settings: ChainsSettings }): Service {
  const { db, log, onRun, settings } = deps;
  return createService({
    name: "chains.retention",
    intervalMs: INTERVAL_MS,
    log,
    onRun,
    runOnce: async () => ({ deleted: await deleteOldRuns(db, settings.keepDays, RUNS_AT_ONCE) }),
    // The child runs of the deleted ones come next.
    more: ({ deleted = 0 }) => deleted > 0,
  });
}
