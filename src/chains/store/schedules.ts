/** SQL for schedules. */
import type { Db, Queryable } from "../../kernel/data/db.ts";
import { statement } from "../../kernel/data/statement.ts";
import type { MissedPolicy } from "../../kernel/time/cron.ts";
import type { Grain } from "../../kernel/time/op-time.ts";

export interface ScheduleRow {
  schedule_id: string;
  chain_id: string;
  name: string;
  cron: string;
  time_zone: string;
  missed: MissedPolicy;
  op_time: { grain: Grain; offset: number } | null;
  params: Record<string, unknown>;
  priority: number;
  paused: boolean;
  next_at: Date | null;
  last_at: Date | null;
  last_run_id: string | null;
  /** Why it could not fire at `next_at`, and when it is tried again. */
  problem: string | null;
  retry_at: Date | null;
  created_at: Date;
  updated_at: Date;
}
export type ScheduleWrite = Pick<
  ScheduleRow,
  | "schedule_id"
  | "chain_id"
  | "name"
  | "cron"
  | "time_zone"
  | "missed"
  | "op_time"
  | "params"
  | "priority"
  | "paused"
  | "next_at"
>;

const COLUMNS = `schedule_id, chain_id, name, cron, time_zone, missed, op_time, params, priority, paused, next_at, last_at,
          last_run_id, problem, retry_at, created_at, updated_at`;
const values = (row: ScheduleWrite) => [
  row.schedule_id,
  row.chain_id,
  row.name,
  row.cron,
  row.time_zone,
  row.missed,
  row.op_time === null ? null : JSON.stringify(row.op_time),
  JSON.stringify(row.params),
  row.priority,
  row.paused,
  row.next_at,
];

const INSERT = statement<ScheduleRow>(
  "chains.schedule.insert",
  `insert into chains.schedule
     (schedule_id, chain_id, name, cron, time_zone, missed, op_time, params, priority, paused, next_at)
   values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)
   on conflict (chain_id, name) do nothing
   returning ${COLUMNS}`,
);

/** Returns undefined when the chain already has a schedule of that name. */
export async function insertSchedule(db: Queryable, row: ScheduleWrite): Promise<ScheduleRow | undefined> {
  return (await db.rows(INSERT, values(row)))[0];
}

const UPDATE = statement<ScheduleRow>(
  "chains.schedule.update",
  `update chains.schedule
   set name = $3, cron = $4, time_zone = $5, missed = $6, op_time = $7, params = $8, priority = $9, paused = $10,
       next_at = $11, problem = null, retry_at = null, updated_at = now()
   where schedule_id = $1 and chain_id = $2
   returning ${COLUMNS}`,
);

export async function updateSchedule(db: Queryable, row: ScheduleWrite): Promise<ScheduleRow | undefined> {
  return (await db.rows(UPDATE, values(row)))[0];
}

const FIND = `select ${COLUMNS} from chains.schedule where schedule_id = $2 and chain_id = $1`;
const READ = statement<ScheduleRow>("chains.schedule.read", FIND);
const LOCK = statement<ScheduleRow>("chains.schedule.lock", `${FIND} for update`);

export async function readSchedule(db: Db, chainId: string, scheduleId: string): Promise<ScheduleRow | undefined> {
  return (await db.read(READ, [chainId, scheduleId]))[0];
}

/** Locked until the transaction ends. */
export async function lockSchedule(
  tx: Queryable,
  chainId: string,
  scheduleId: string,
): Promise<ScheduleRow | undefined> {
  return (await tx.rows(LOCK, [chainId, scheduleId]))[0];
}

const LIST = statement<ScheduleRow>(
  "chains.schedule.list",
  `select ${COLUMNS} from chains.schedule where chain_id = $1 order by name`,
);

export function listSchedules(db: Db, chainId: string): Promise<ScheduleRow[]> {
  return db.read(LIST, [chainId]);
}

const DELETE = statement<{ name: string }>(
  "chains.schedule.delete",
  "delete from chains.schedule where schedule_id = $2 and chain_id = $1 returning name",
);

export async function deleteSchedule(db: Queryable, chainId: string, scheduleId: string): Promise<string | undefined> {
  return (await db.rows(DELETE, [chainId, scheduleId]))[0]?.name;
}

const IS_DUE = "not s.paused and s.next_at <= now() and (s.retry_at is null or s.retry_at <= now())";
// By two indexes: those that wait for another try are not looked at before that.
const DUE = statement<{ schedule_id: string }>(
  "chains.schedule.due",
  `select schedule_id from (
     (select s.schedule_id, s.next_at from chains.schedule s
      where not s.paused and s.next_at <= now() and s.retry_at is null order by s.next_at limit $1)
     union all
     (select s.schedule_id, s.next_at from chains.schedule s
      where not s.paused and s.next_at is not null and s.retry_at <= now() order by s.retry_at limit $1)
   ) d order by next_at limit $1`,
);

/** Schedules that are due. */
export async function dueSchedules(db: Queryable, limit: number): Promise<string[]> {
  return (await db.rows(DUE, [limit])).map(({ schedule_id }) => schedule_id);
}

export interface DueRow extends ScheduleRow {
  next_at: Date;
  /** A schedule of a disabled chain starts no run, but its `next_at` still advances. */
  enabled: boolean;
  now_ms: number;
}
const LOCK_DUE = statement<DueRow>(
  "chains.schedule.lock_due",
  `select s.*, d.enabled, (extract(epoch from now()) * 1000)::float8 as now_ms
   from chains.schedule s join chains.job_chain_definition d on d.chain_id = s.chain_id
   where s.schedule_id = $1 and ${IS_DUE} for update of s skip locked`,
);

/** Returns undefined when another process fires it or has fired it, so exactly one does. */
export async function lockDue(tx: Queryable, scheduleId: string): Promise<DueRow | undefined> {
  return (await tx.rows(LOCK_DUE, [scheduleId]))[0];
}

const POSTPONE = statement(
  "chains.schedule.postpone",
  `update chains.schedule s set retry_at = now() + make_interval(secs => $2), problem = $3
   where s.schedule_id = $1 and ${IS_DUE}`,
);

/** Tries it again after `seconds`, for the same time. */
export async function postponeSchedule(
  db: Queryable,
  scheduleId: string,
  { seconds, problem }: { seconds: number; problem: string },
): Promise<void> {
  await db.rows(POSTPONE, [scheduleId, seconds, problem]);
}

const FIRED = statement(
  "chains.schedule.fired",
  `update chains.schedule set next_at = $2, retry_at = null, problem = null, last_at = coalesce($3, last_at), last_run_id = coalesce($4, last_run_id)
   where schedule_id = $1`,
);

export async function markFired(
  tx: Queryable,
  fired: { scheduleId: string; nextAt: Date | null; lastAt: Date | null; lastRunId: string | null },
): Promise<void> {
  await tx.rows(FIRED, [fired.scheduleId, fired.nextAt, fired.lastAt, fired.lastRunId]);
}
