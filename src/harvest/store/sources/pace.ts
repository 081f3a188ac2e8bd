/**
 * SQL that says where the time of a source goes: waiting at its gates, or for its answers. An ended run has its sums; those of a
 * run under way are added up from its pages.
 */
import type { Db } from "../../../kernel/data/db.ts";
import { statement } from "../../../kernel/data/statement.ts";

/** The newest runs of a period, and the newest pages of a run that is under way. */
const RUNS_MAX = 20_000;
const PAGES_MAX = 1_000;

const RUNS = `run as materialized (
     select r.run_id, r.task_id, r.attempt_no, r.status_code, r.error, r.started_at, r.ended_at, r.stats
     from harvest.ing_task_run r where r.provenance_code = $1 and r.started_at >= $2
     order by r.started_at desc limit ${RUNS_MAX})`;
const stat = (name: string) => `(run.stats ->> '${name}')::float8`;

export interface PaceRow {
  /** From 0 on. */
  bucket: number;
  runs: number;
  failed: number;
  running: number;
  requests: number;
  throttled: number;
  records: number;
  busy_ms: number;
  wait_ms: number;
  answer_ms: number;
}

const PACE = statement<PaceRow>(
  "harvest.run.pace",
  `with ${RUNS}
   select floor(extract(epoch from run.started_at - $2::timestamptz) / $3::float8)::int4 as bucket, count(*)::int4 as runs,
          count(*) filter (where run.status_code = 'FAILED')::int4 as failed,
          count(*) filter (where run.ended_at is null)::int4 as running,
          coalesce(sum(coalesce(${stat("reqCount")}, page.requests)), 0)::float8 as requests,
          coalesce(sum(${stat("429Count")}), 0)::float8 as throttled,
          coalesce(sum(coalesce(${stat("retCount")}, page.records)), 0)::float8 as records,
          coalesce(sum(extract(epoch from coalesce(run.ended_at, now()) - run.started_at)) * 1000, 0)::float8 as busy_ms,
          coalesce(sum(coalesce(${stat("waitTotalMs")}, page.wait_ms)), 0)::float8 as wait_ms,
          coalesce(sum(coalesce(${stat("avgLatencyMs")} * ${stat("reqCount")}, page.answer_ms)), 0)::float8 as answer_ms
   from run left join lateral (
     select count(*)::float8 as requests, sum((b.stats ->> 'items')::float8) as records,
            sum((b.response_digest #>> '{rate,waitMs}')::float8) as wait_ms, sum((b.stats ->> 'latencyMs')::float8) as answer_ms
     from (select b.stats, b.response_digest from harvest.ing_task_run_batch b
           where b.run_id = run.run_id order by b.batch_no desc limit ${PAGES_MAX}) b
   ) page on run.ended_at is null
   group by 1 order by 1`,
);

/** By the buckets of `bucketSec` in which the runs began. */
export function paceOf(db: Db, source: string, since: Date, bucketSec: number): Promise<PaceRow[]> {
  return db.read(PACE, [source, since, bucketSec]);
}

const NEWEST = statement<{ started_at: Date }>(
  "harvest.run.newest_of_source",
  "select started_at from harvest.ing_task_run where provenance_code = $1 order by started_at desc limit 1",
);

/** When its last run began; undefined before the first. */
export async function newestRunAt(db: Db, source: string): Promise<Date | undefined> {
  return (await db.read(NEWEST, [source]))[0]?.started_at;
}

export interface ParkedRow {
  reason: string;
  times: number;
  ms: number;
}

// A run that another one continues, or will, ended because its task had to wait.
const PARKED = statement<ParkedRow>(
  "harvest.run.parked",
  `with ${RUNS}
   select run.error as reason, count(*)::int4 as times,
          (sum(extract(epoch from coalesce(later.started_at, now()) - run.ended_at)) * 1000)::float8 as ms
   from run join harvest.ing_task t on t.task_id = run.task_id
   left join harvest.ing_task_run later on later.task_id = run.task_id and later.attempt_no = run.attempt_no + 1
   where run.status_code = 'PARTIAL' and run.error is not null and (later.run_id is not null or t.status_code = 'QUEUED')
   group by run.error order by 3 desc limit $3`,
);

/** What tasks waited for in the queue, between two of their runs; the longest first. */
export function parkedOf(db: Db, source: string, since: Date, limit: number): Promise<ParkedRow[]> {
  return db.read(PARKED, [source, since, limit]);
}

export interface FailureRow {
  run_id: string;
  plan_id: string;
  slice_id: string;
  ended_at: Date;
  error: string | null;
}

const FAILURES = statement<FailureRow>(
  "harvest.run.failures",
  `with ${RUNS}
   select run.run_id::text, t.plan_id, t.slice_id::text, run.ended_at, run.error
   from run join harvest.ing_task t on t.task_id = run.task_id
   where run.status_code = 'FAILED' order by run.run_id desc limit $3`,
);

/** The newest first. */
export function failuresOf(db: Db, source: string, since: Date, limit: number): Promise<FailureRow[]> {
  return db.read(FAILURES, [source, since, limit]);
}
