/** Deletes old deliveries that have ended. */
import { createRetention as createBatchRetention, type RetentionDeps } from "../../kernel/work/retention.ts";
import type { Service } from "../../kernel/work/service.ts";
import type { WebhooksHints } from "../catalogue.ts";
import type { WebhooksSettings } from "../settings.ts";
import { deleteOldDeliveries } from "../store/deliveries.ts";

export function createRetention(deps: RetentionDeps & { hints: WebhooksHints; settings: WebhooksSettings }): Service {
  const { db, log, onRun, hints, settings } = deps;
  return createBatchRetention({
    name: "webhooks.retention",
    db,
    log,
    onRun,
    async deleteBatch(tx, limit) {
      const deleted = await deleteOldDeliveries(tx, settings.keepDays, limit);
      if (deleted > 0) hints.changed(tx, "delivery", "*");
      return { looked: deleted, deleted };
    },
  });
}
