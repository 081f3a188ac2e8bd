/** The loop that gives the work of silent workers back to the queues. */
import { createService, type Service, type ServiceOptions } from "../kernel/work/service.ts";
import { RECLAIM_BATCH_MAX, type Tracking } from "./tracking.ts";

/** For leases shorter than this that began after the last look; of the others it knows when they end. */
const RECLAIM_INTERVAL_MS = 20_000;
/** Expired leases that stay, because another process is taking them back, must not turn the loop into a spin. */
const LOOK_AGAIN_MS = 1_000;

export function createReclaimer(tracking: Tracking, options: Pick<ServiceOptions, "log" | "onRun">): Service {
  return createService({
    ...options,
    name: "tracking.reclaim",
    intervalMs: RECLAIM_INTERVAL_MS,
    runOnce: () => tracking.reclaim(),
    nextDueMs: () => Math.max(LOOK_AGAIN_MS, tracking.nextExpiryMs()),
    more: ({ reclaimed = 0, failed = 0 }) => reclaimed + failed >= RECLAIM_BATCH_MAX,
  });
}
