/**
 * Once a day, creates partitions for coming events and drops old ones. Assertions are kept, because the graph is made of
 * them.
 */

import type { Db } from "../kernel/data/db.ts";
import { DAY_MS } from "../kernel/time/units.ts";
import { createService, type OnRun, type Service, type ServiceLog } from "../kernel/work/service.ts";
import type { LineageSettings } from "./settings.ts";
import { deleteOld, dropMonths, ensureMonths } from "./store/retention.ts";

const DELETE_MAX = 5_000;

export interface RetentionDeps {
  db: Db;
  log: ServiceLog;
  onRun: OnRun;
  settings: Pick<LineageSettings, "keepDays">;
}

export function createRetention({ db, log, onRun, settings: { keepDays } }: RetentionDeps): Service {
  return createService({
    name: "lineage.retention",
    intervalMs: DAY_MS,
    log,
    onRun,
    async runOnce() {
      await ensureMonths(db);
      const dropped = await dropMonths(db, keepDays);
      return { dropped, deleted: await deleteOld(db, keepDays, DELETE_MAX) };
    },
    more: ({ deleted = 0 }) => deleted >= DELETE_MAX,
  });
}
