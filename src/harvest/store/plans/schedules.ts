/** SQL of schedules: those that are due, their next fires, and the pauses. The registry writes the rest. */
import type { Db, Queryable } from "../../../kernel/data/db.ts";
import { filtered } from "../../../kernel/data/filtered.ts";
import { statement } from "../../../kernel/data/statement.ts";
import type { ParamValues } from "../../definition/definition.ts";
import type { Operation } from "../../spec/snapshot.ts";
import type { PlanState } from "../../states.ts";
import { isPaused } from "../queue/pauses.ts";

export interface ScheduleRow {
  schedule_id: number;
  provenance_code: string;
  schedule_name: string;
  endpoint_name: string;
  operation_code: Operation;
  cron: string;
  time_zone: string;
  params: ParamValues;
  priority: number | null;
  next_at: Date | null;
  paused_at: Date | null;
}

const COLUMNS = `s.schedule_id, s.provenance_code, s.schedule_name, s.endpoint_name, s.operation_code, s.cron, s.time_zone,
          s.params, s.priority, s.next_at, s.paused_at`;

export interface ListedSchedule extends ScheduleRow {
  /** Why it does not fire although it is not paused itself: its source, endpoint or operation is. */
  held: string | null;
  /** What its last fire led to. */
  last_at: Date | null;
  last_remarks: object | null;
  /** Of the plan that it made. */
  last_status: PlanState | null;
}
export interface ScheduleFilter {
  source: string | undefined;
}

const list = filtered<ScheduleFilter, ListedSchedule>({
  name: "harvest.schedule.list",
  conditions: { source: (parameter) => `s.provenance_code = ${parameter}` },
  text: (where, parameter) => `select ${COLUMNS},
       case when s.paused_at is null then harvest.pause_reason(s.provenance_code, s.endpoint_name, s.operation_code) end as held,
       last.created_at as last_at, last.record_remarks as last_remarks,
       p.status_code as last_status
     from harvest.ing_schedule s
     left join lateral (
       select * from harvest.ing_schedule_instance i
       where i.scheduler_code = 'cron' and i.scheduler_job_id = s.schedule_id::text
       order by i.scheduler_log_id desc limit 1
     ) last on true
     left join harvest.ing_plan p on p.plan_id = (last.record_remarks ->> 'planId')::uuid
     where ${where} order by s.provenance_code, s.schedule_name limit ${parameter(0)}`,
});

export function listSchedules(db: Db, filter: ScheduleFilter, limit: number): Promise<ListedSchedule[]> {
  const { statement: one, values } = list(filter);
  return db.read(one, [...values, limit]);
}

const LOCK = statement<ScheduleRow>(
  "harvest.schedule.lock",
  `select ${COLUMNS} from harvest.ing_schedule s where s.schedule_id = $1 for update`,
);

export async function lockSchedule(tx: Queryable, scheduleId: number): Promise<ScheduleRow | undefined> {
  return (await tx.rows(LOCK, [scheduleId]))[0];
}

const PAUSE = statement<ScheduleRow>(
  "harvest.schedule.pause",
  `update harvest.ing_schedule s set paused_at = case when $2 then now() end, next_at = $3
   where s.schedule_id = $1 returning ${COLUMNS}`,
);

export async function setPaused(
  tx: Queryable,
  scheduleId: number,
  paused: boolean,
  nextAt: Date | null,
): Promise<ScheduleRow | undefined> {
  return (await tx.rows(PAUSE, [scheduleId, paused, nextAt]))[0];
}

const MAY_FIRE = `s.paused_at is null and not ${isPaused("s.provenance_code", "s.endpoint_name", "s.operation_code")}`;
const IS_DUE = `s.next_at <= now() and ${MAY_FIRE}`;
const DUE = statement<{ schedule_id: number }>(
  "harvest.schedule.due",
  `select s.schedule_id from harvest.ing_schedule s where ${IS_DUE} order by s.next_at limit $1`,
);

export async function dueSchedules(db: Queryable, limit: number): Promise<number[]> {
  return (await db.rows(DUE, [limit])).map(({ schedule_id }) => schedule_id);
}

export interface DueSchedule extends ScheduleRow {
  next_at: Date;
  now_ms: number;
}
const LOCK_DUE = statement<DueSchedule>(
  "harvest.schedule.lock_due",
  `select ${COLUMNS}, (extract(epoch from now()) * 1000)::float8 as now_ms
   from harvest.ing_schedule s where s.schedule_id = $1 and ${IS_DUE} for update of s skip locked`,
);

/** Undefined when another process fires it or has fired it. */
export async function lockDue(tx: Queryable, scheduleId: number): Promise<DueSchedule | undefined> {
  return (await tx.rows(LOCK_DUE, [scheduleId]))[0];
}

const SET_NEXT = statement(
  "harvest.schedule.set_next",
  "update harvest.ing_schedule set next_at = $2 where schedule_id = $1",
);

export async function setNextFire(tx: Queryable, scheduleId: number, nextAt: Date | null): Promise<void> {
  await tx.rows(SET_NEXT, [scheduleId, nextAt]);
}

const POSTPONE = statement(
  "harvest.schedule.postpone",
  `update harvest.ing_schedule s set next_at = now() + make_interval(secs => $2) where s.schedule_id = $1 and ${IS_DUE}`,
);

/** Makes it due again after `seconds`. */
export async function postponeSchedule(db: Queryable, scheduleId: number, seconds: number): Promise<void> {
  await db.rows(POSTPONE, [scheduleId, seconds]);
}

const NEXT_DUE = statement<{ ms: number | null }>(
  "harvest.schedule.next_due",
  `select extract(epoch from min(next_at) - now())::float8 * 1000 as ms from harvest.ing_schedule s where ${MAY_FIRE}`,
);

/** Milliseconds until the next schedule is due; undefined if there is none. */
export async function nextScheduleMs(db: Queryable): Promise<number | undefined> {
  return (await db.rows(NEXT_DUE))[0]?.ms ?? undefined;
}
