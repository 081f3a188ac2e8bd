/** Deletes old deliveries that have ended, in batches, so that history stays bounded. */
import type { Db } from "../kernel/data/db.ts";
import { createService, type OnRun, type Service, type ServiceLog } from "../kernel/work/service.ts";
import type { WebhooksSettings } from "./settings.ts";
import { deleteOldDeliveries } from "./store/deliveries.ts";

const INTERVAL_MS = 3_600_000;
const BATCH_MAX = 1_000;

export function createRetention(deps: { db: Db; log: ServiceLog; onRun: OnRun; settings: WebhooksSettings }): Service {
  const { db, log, onRun, settings } = deps;
  return createService({
    name: "webhooks.retention",
    intervalMs: INTERVAL_MS,
    log,
    onRun,
    runOnce: async () => ({ deleted: await deleteOldDeliveries(db, settings.keepDays, BATCH_MAX) }),
    more: ({ deleted = 0 }) => deleted === BATCH_MAX,
  });
}
