/** Deletes runs that ended more than `keepDays` ago, a few at a time. */
import type { Db } from "../../kernel/data/db.ts";
import { HOUR_MS } from "../../kernel/time/units.ts";
import { createService, type OnRun, type Service, type ServiceLog } from "../../kernel/work/service.ts";
import type { ChainsHints } from "../catalogue.ts";
import type { ChainsSettings } from "../settings.ts";
import { deleteOldRuns } from "../store/retention.ts";

/** A run may have ten thousand nodes with many log lines each. */
const RUNS_AT_ONCE = 20;

export interface RetentionDeps {
  db: Db;
  hints: ChainsHints;
  log: ServiceLog;
  onRun: OnRun;
  settings: ChainsSettings;
}

export function createRetention({ db, hints, log, onRun, settings }: RetentionDeps): Service {
  return createService({
    name: "chains.retention",
    intervalMs: HOUR_MS,
    log,
    onRun,
    async runOnce() {
      const deleted = await deleteOldRuns(db, settings.keepDays, RUNS_AT_ONCE);
      if (deleted > 0) hints.changed(db, "run", "*");
      return { deleted };
    },
    // The child runs of the deleted ones come next.
    more: ({ deleted = 0 }) => deleted > 0,
  });
}
