/** The loop that gives the work of silent workers back to the queues. */
import { createService, type Service, type ServiceOptions } from "../kernel/service.ts";
import { RECLAIM_BATCH_MAX, type Tracking } from "./tracking.ts";

const RECLAIM_INTERVAL_MS = 10_000;

export function createReclaimer(tracking: Tracking, options: Pick<ServiceOptions, "log" | "onRun">): Service {
  return createService({
    ...options,
    name: "tracking.reclaim",
    intervalMs: RECLAIM_INTERVAL_MS,
    runOnce: () => tracking.reclaim(),
    more: ({ reclaimed = 0, failed = 0 }) => reclaimed + failed >= RECLAIM_BATCH_MAX,
  });
}
