/**
 * Schedules: a cron of a source that makes a plan each time. Exactly one process fires a schedule. Of the times that were missed
 * while no process ran, only the latest makes a plan: it takes all that is new since the watermark anyway.
 */
import { type Actor, audit } from "../../kernel/auth/audit.ts";
import { type Db, isUnavailable, type Tx } from "../../kernel/data/db.ts";
import { ApiError } from "../../kernel/errors.ts";
import type { Clock } from "../../kernel/time/clock.ts";
import { nextFire, planFires } from "../../kernel/time/cron.ts";
import type { ServiceLog } from "../../kernel/work/service.ts";
import type { Wake } from "../../kernel/work/wake.ts";
import { type HarvestHints, harvestError } from "../catalogue.ts";
import * as store from "../store/plans/schedules.ts";
import { PLANS_TOPIC } from "../topics.ts";
import type { Planner } from "./planner.ts";
import type { PlanRequest, Trigger } from "./request.ts";

export interface Schedules {
  list(filter: store.ScheduleFilter): Promise<store.ListedSchedule[]>;
  setPaused(scheduleId: number, paused: boolean, actor: Actor): Promise<store.ScheduleRow>;
  /** Fires those that are due. Answers how many made a plan. */
  fire(): Promise<number>;
}

const AT_ONCE = 200;
/** A source has at most 100 schedules. */
const SCHEDULES_MAX = 1_000;
/** The delay of a schedule that failed to fire, for example because this Node does not know its time zone. */
const POSTPONED_SECONDS = 3_600;

export interface SchedulesDeps {
  db: Db;
  wake: Wake;
  hints: HarvestHints;
  clock: Clock;
  planner: Pick<Planner, "resolve" | "planIn" | "refuseIn">;
  log: ServiceLog;
}

export function createSchedules({ db, wake, hints, clock, planner, log }: SchedulesDeps): Schedules {
  return {
    list: (filter) => store.listSchedules(db, filter, SCHEDULES_MAX),

    setPaused: (scheduleId, paused, actor) =>
      db.tx(async (tx) => {
        const row = await store.lockSchedule(tx, scheduleId);
        if (!row) throw harvestError("HARVEST_SCHEDULE_NOT_FOUND", { id: scheduleId });
        if ((row.paused_at !== null) === paused) return row;
        // Times during the pause do not count as missed.
        const nextMs = nextFire(row.cron, row.time_zone, clock.now());
        const nextAt = paused ? row.next_at : nextMs === undefined ? null : new Date(nextMs);
        const changed = await store.setPaused(tx, scheduleId, paused, nextAt);
        const details = { source: row.provenance_code, name: row.schedule_name };
        await audit(
          tx,
          actor,
          paused ? "harvest_schedule.pause" : "harvest_schedule.resume",
          String(scheduleId),
          details,
        );
        tx.afterCommit(() => wake.hint(PLANS_TOPIC));
        hints.changed(tx, "source", row.provenance_code);
        return changed ?? row;
      }),

    async fire() {
      let planned = 0;
      for (const scheduleId of await store.dueSchedules(db, AT_ONCE)) planned += await fireOne(scheduleId);
      return planned;
    },
  };

  /** One transaction each, so that one that fails does not hold up the others. */
  async function fireOne(scheduleId: number): Promise<number> {
    try {
      return await db.tx(async (tx) => {
        const row = await store.lockDue(tx, scheduleId);
        return row && (await fireIn(tx, row)) ? 1 : 0;
      });
    } catch (error) {
      if (isUnavailable(error)) throw error;
      log.error({ err: error, scheduleId, seconds: POSTPONED_SECONDS }, "a schedule failed to fire and is postponed");
      await store.postponeSchedule(db, scheduleId, POSTPONED_SECONDS);
      return 0;
    }
  }

  async function fireIn(tx: Tx, row: store.DueSchedule): Promise<boolean> {
    const { cron, time_zone: timeZone, next_at, now_ms: nowMs } = row;
    const due = { cron, timeZone, policy: "last", dueMs: next_at.getTime(), nowMs, catchUpMax: 1 } as const;
    const { fires, nextMs } = planFires(due);
    await store.setNextFire(tx, row.schedule_id, nextMs === undefined ? null : new Date(nextMs));
    hints.changed(tx, "source", row.provenance_code);
    const firedMs = fires.at(-1);
    return firedMs !== undefined && plan(tx, row, new Date(firedMs));
  }

  async function plan(tx: Tx, row: store.DueSchedule, firedAt: Date): Promise<boolean> {
    const request: PlanRequest = {
      source: row.provenance_code,
      endpoint: row.endpoint_name,
      operation: row.operation_code,
      params: row.params,
      priority: row.priority ?? undefined,
    };
    const by = `schedule ${row.schedule_name}`;
    const trigger: Trigger = { type: "SCHEDULE", scheduleId: String(row.schedule_id), firedAt, by };
    try {
      const resolved = await planner.resolve(request);
      return "plan" in (await planner.planIn(tx, resolved, trigger));
    } catch (error) {
      // The request came from the definition, so what is wrong with it stays wrong until somebody changes that.
      if (!(error instanceof ApiError) || error.status >= 500) throw error;
      const { schedule_id: scheduleId, provenance_code: source } = row;
      log.warn({ scheduleId, source, reason: error.message }, "a schedule made no plan");
      await planner.refuseIn(tx, request, trigger, error);
      return false;
    }
  }
}
