/** The service that reclaims shards with expired leases. */
import { createService, type Service, type ServiceOptions } from "../kernel/work/service.ts";
import { RECLAIM_BATCH_MAX, type Tracking } from "./tracking.ts";

/** Bounds the delay for leases that were claimed after the last run; for the others `nextExpiryMs` is known. */
const RECLAIM_INTERVAL_MS = 20_000;
/** An expired lease may stay locked by another process that reclaims it; without a pause the loop would spin. */
const PAUSE_MS = 1_000;

export function createReclaimer(tracking: Tracking, options: Pick<ServiceOptions, "log" | "onRun">): Service {
  return createService({
    ...options,
    name: "tracking.reclaim",
    intervalMs: RECLAIM_INTERVAL_MS,
    runOnce: () => tracking.reclaim(),
    nextDueMs: () => Math.max(PAUSE_MS, tracking.nextExpiryMs()),
    more: ({ reclaimed = 0, failed = 0 }) => reclaimed + failed >= RECLAIM_BATCH_MAX,
  });
}
