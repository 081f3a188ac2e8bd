/** Once a day: makes room for the events to come and lets go of the oldest. What events have told stays: the graph rests on it. */
import type { Db } from "../kernel/data/db.ts";
import { createService, type OnRun, type Service, type ServiceLog } from "../kernel/work/service.ts";
import type { LineageSettings } from "./settings.ts";
import { dropMonths, ensureMonths, forgetOld } from "./store/retention.ts";

const DAY_MS = 24 * 60 * 60 * 1_000;
const FORGET_AT_ONCE = 5_000;

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
      return { dropped, forgotten: await forgetOld(db, keepDays, FORGET_AT_ONCE) };
    },
    more: ({ forgotten = 0 }) => forgotten >= FORGET_AT_ONCE,
  });
}
