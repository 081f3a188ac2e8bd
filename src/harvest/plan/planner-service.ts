/** The planner's loop: fires schedules that are due, and slices the rest of plans that waited for room in the queue. */
import type { Db } from "../../kernel/data/db.ts";
import { createService, type OnRun, type Service, type ServiceLog } from "../../kernel/work/service.ts";
import { LOST_HINT_MS, type Wake } from "../../kernel/work/wake.ts";
import { nextScheduleMs } from "../store/plans/schedules.ts";
import { PLANS_TOPIC } from "../topics.ts";
import type { Planner } from "./planner.ts";
import type { Schedules } from "./schedules.ts";

/** How often the queues of plans that wait for room are looked at. */
const ROOM_INTERVAL_MS = 2_000;

export interface PlannerServiceDeps {
  db: Db;
  wake: Wake;
  planner: Pick<Planner, "continuePlans">;
  schedules: Pick<Schedules, "fire">;
  log: ServiceLog;
  onRun: OnRun;
}

export function createPlannerService({ db, wake, planner, schedules, log, onRun }: PlannerServiceDeps): Service {
  let nextDueMs: number | undefined;
  let unlisten: (() => void) | undefined;
  const service = createService({
    name: "harvest planner",
    intervalMs: LOST_HINT_MS,
    log,
    onRun,
    async runOnce() {
      const planned = await schedules.fire();
      const { sliced, waiting } = await planner.continuePlans();
      const scheduleMs = await nextScheduleMs(db);
      nextDueMs = waiting > 0 ? Math.min(ROOM_INTERVAL_MS, scheduleMs ?? ROOM_INTERVAL_MS) : scheduleMs;
      return { planned, sliced, waiting };
    },
    // What was sliced last was as much as one transaction takes.
    more: ({ sliced = 0, waiting = 0 }) => sliced > 0 && waiting > 0,
    nextDueMs: () => nextDueMs,
  });
  return {
    ...service,
    start() {
      unlisten = wake.on(PLANS_TOPIC, service.wake);
      service.start();
    },
    async stop() {
      unlisten?.();
      await service.stop();
    },
  };
}
