/**
 * Adds the partitions of coming months in time, because one cannot be added once the default partition has rows of its month.
 * Deletes ids that have expired.
 */
import type { Db } from "../kernel/data/db.ts";
import type { Clock } from "../kernel/time/clock.ts";
import { createService, type OnRun, type Service, type ServiceLog } from "../kernel/work/service.ts";
import { deleteExpiredIds } from "./store/records/id-items.ts";
import { addMonths } from "./store/records/months.ts";

const INTERVAL_MS = 6 * 3_600_000;
/** A server that is stopped for half a year still finds its partitions. */
const MONTHS_AHEAD = 7;
const EXPIRED_AT_ONCE = 10_000;

export function createMonths({
  db,
  clock,
  log,
  onRun,
}: {
  db: Db;
  clock: Clock;
  log: ServiceLog;
  onRun: OnRun;
}): Service {
  return createService({
    name: "harvest months",
    intervalMs: INTERVAL_MS,
    log,
    onRun,
    async runOnce() {
      const added = await addMonths(db, new Date(clock.now()).toISOString().slice(0, 10), MONTHS_AHEAD);
      return { added, expired: await deleteExpiredIds(db, EXPIRED_AT_ONCE) };
    },
    more: ({ expired = 0 }) => expired === EXPIRED_AT_ONCE,
  });
}
