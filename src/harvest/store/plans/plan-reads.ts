/** SQL for pages about plans and their slices. Counts are over the slices of one plan. */
import type { Db } from "../../../kernel/data/db.ts";
import { filtered } from "../../../kernel/data/filtered.ts";
import { statement } from "../../../kernel/data/statement.ts";
import type { EstimateBasis } from "../../slice/estimate.ts";
import type { Part } from "../../slice/parts.ts";
import type { PlanState, SliceState, TaskState } from "../../states.ts";
import { concurrencyNow, isRefused, pauseReasonOf } from "../queue/pauses.ts";
import { isShownGap } from "./gaps.ts";

export interface PlanRow {
  plan_id: string;
  schedule_instance_id: string;
  provenance_code: string;
  endpoint_name: string;
  operation_code: string;
  namespace_key: string;
  window_from: Date | null;
  window_to: Date | null;
  plan_strategy: string;
  spec_fingerprint: string;
  priority: number;
  planned_at: Date;
  status_code: PlanState;
  unsliced_from: Date | null;
  record_remarks: Record<string, unknown>;
  created_at: Date;
  ended_at: Date | null;
  /** Why no task of it starts: what is paused, by whom and since when. Null for one that has ended. */
  paused: string | null;
}

export interface FoundPlan extends PlanRow {
  /** The table that its windows land in, if they do. */
  landing_table: string | null;
  /** Null for the lake. */
  landing_engine: string | null;
  landing_grain: "hour" | "day" | null;
  /** Of its window. */
  timezone: string | null;
  endpoint_id: number;
  /** Why nothing of it goes on until a person acts: access to its endpoint is refused. */
  stopped: string | null;
}

const OF_PLAN = ["p.provenance_code", "p.endpoint_name", "p.operation_code"] as const;

const PLAN = `p.plan_id, p.schedule_instance_id, p.provenance_code, p.endpoint_name, p.operation_code, p.namespace_key,
          p.window_from, p.window_to, p.plan_strategy, p.spec_fingerprint, p.priority, p.planned_at, p.status_code,
          p.unsliced_from, p.record_remarks, p.created_at, p.ended_at,
          case when p.ended_at is null then harvest.pause_reason(${OF_PLAN.join(", ")}) end as paused`;

export interface PlanFilter {
  source: string | undefined;
  endpoint: string | undefined;
  operation: string | undefined;
  status: string | undefined;
  /** A plan: those that were made before it. */
  after: string | undefined;
}

// Ids are in the order of time.
const list = filtered<PlanFilter, PlanRow>({
  name: "harvest.plan.list",
  conditions: {
    source: (parameter) => `p.provenance_code = ${parameter}`,
    endpoint: (parameter) => `p.endpoint_name = ${parameter}`,
    operation: (parameter) => `p.operation_code = ${parameter}`,
    status: (parameter) => `p.status_code = ${parameter}`,
    after: (parameter) => `p.plan_id < ${parameter}`,
  },
  text: (where, parameter) =>
    `select ${PLAN} from harvest.ing_plan p where ${where} order by p.plan_id desc limit ${parameter(0)}`,
});

/** The newest first. */
export function listPlans(db: Db, filter: PlanFilter, limit: number): Promise<PlanRow[]> {
  const { statement: one, values } = list(filter);
  return db.read(one, [...values, limit]);
}

const FIND = statement<FoundPlan>(
  "harvest.plan.find",
  `select ${PLAN}, s.snapshot #>> '{spec,landing,table}' as landing_table,
          s.snapshot #>> '{spec,landing,engine}' as landing_engine, s.snapshot #>> '{spec,landing,grain}' as landing_grain,
          s.snapshot #>> '{spec,window,timezone}' as timezone, p.endpoint_id,
          case when p.ended_at is null and ${isRefused(...OF_PLAN)} then harvest.pause_reason(${OF_PLAN.join(", ")}) end as stopped
   from harvest.ing_plan p join harvest.snapshot s on s.spec_fingerprint = p.spec_fingerprint where p.plan_id = $1`,
);

export async function findPlan(db: Db, planId: string): Promise<FoundPlan | undefined> {
  return (await db.read(FIND, [planId]))[0];
}

/**
 * Sums of the slices in one state. Those that were split are counted by their children, except for what they changed. A slice that
 * is divided is counted by its parts until it has ended; its parts are no slices of the plan, and what they expect is its own.
 */
export interface SliceSums {
  status_code: SliceState;
  slices: number;
  expected: number | null;
  received: number;
  inserted: number;
  updated: number;
  unchanged: number;
  deleted: number;
  quarantined: number;
  missing: number;
  /** Gaps that somebody has accepted. */
  accepted: number;
  gaps: number;
}
const SLICE_SUMS = statement<SliceSums>(
  "harvest.slice.sums",
  `select s.status_code, count(*) filter (where s.root_slice_id is null)::int4 as slices,
          sum(s.expected) filter (where s.root_slice_id is null)::float8 as expected, sum(s.received)::float8 as received,
          sum(s.inserted)::float8 as inserted, sum(s.updated)::float8 as updated, sum(s.unchanged)::float8 as unchanged,
          sum(s.deleted)::float8 as deleted, sum(s.quarantined)::float8 as quarantined, sum(s.missing)::float8 as missing,
          count(s.accepted_at)::int4 as accepted,
          count(*) filter (where ${isShownGap("s")})::int4 as gaps
   from harvest.ing_plan_slice s
   left join harvest.ing_plan_slice r on r.slice_id = s.root_slice_id
   where s.plan_id = $1 and (r.slice_id is null or r.status_code in ('READY', 'CANCELLED')) group by s.status_code`,
);

export function sliceSums(db: Db, planId: string): Promise<SliceSums[]> {
  return db.read(SLICE_SUMS, [planId]);
}

export interface TaskSums {
  status_code: TaskState;
  tasks: number;
}
const TASK_SUMS = statement<TaskSums>(
  "harvest.task.sums",
  "select status_code, count(*)::int4 as tasks from harvest.ing_task where plan_id = $1 group by status_code",
);

export function taskSums(db: Db, planId: string): Promise<TaskSums[]> {
  return db.read(TASK_SUMS, [planId]);
}

export interface Wait {
  /** Null for tasks that are due. */
  wait_reason: string | null;
  tasks: number;
  until: Date;
  /** `until` has passed. */
  is_due: boolean;
  partition_key: string;
  /** Why they are held back: a person or Millrace has paused them. */
  pause: string | null;
  /** How many tasks of the partition run, and may. */
  running: number;
  concurrency: number;
  /** So one task at a time asks whether the source still refuses access. */
  is_refused: boolean;
}
const WAITS = statement<Wait>(
  "harvest.task.waits",
  `select w.*, w.until <= now() as is_due, ${concurrencyNow("p")} as concurrency, p.is_refused, ${pauseReasonOf("w.partition_key")} as pause, (select count(*)::int4 from harvest.ing_task t
                               where t.partition_key = w.partition_key and t.status_code = 'EXECUTING') as running
   from (select wait_reason, partition_key, count(*)::int4 as tasks, min(scheduled_at) as until from harvest.ing_task
         where plan_id = $1 and status_code = 'QUEUED' group by wait_reason, partition_key order by 3 desc limit $2) w
   join harvest.ing_partition p on p.partition_key = w.partition_key order by w.tasks desc`,
);

/** Why the queued tasks of a plan do not run. */
export function taskWaits(db: Db, planId: string, limit: number): Promise<Wait[]> {
  return db.read(WAITS, [planId, limit]);
}

export interface SliceRow {
  slice_id: string;
  parent_slice_id: string | null;
  slice_no: number;
  /** Of a part: that of the whole. */
  window_from: Date | null;
  window_to: Date | null;
  root_slice_id: string | null;
  part: Part | null;
  is_parted: boolean;
  status_code: SliceState;
  generation: number;
  batches: number;
  operation_code: string;
  /** What was expected of it before it was read, and by what. */
  estimated: number | null;
  estimate_basis: EstimateBasis | null;
  expected: number | null;
  received: number;
  inserted: number;
  updated: number;
  unchanged: number;
  deleted: number;
  quarantined: number;
  missing: number;
  reason: string | null;
  accepted_at: Date | null;
  accepted_by: string | null;
  accepted_reason: string | null;
  slice_signature_hash: string;
  created_at: Date;
  ended_at: Date | null;
}
/** A part has no window of its own. */
export const WINDOW_OF_SLICE = `coalesce(s.window_from, (s.slice_spec #>> '{time,from}')::timestamptz) as window_from,
          coalesce(s.window_to, (s.slice_spec #>> '{time,to}')::timestamptz) as window_to`;
const SLICE = `s.slice_id::text, s.parent_slice_id::text, s.slice_no, ${WINDOW_OF_SLICE}, s.root_slice_id::text,
          s.part, s.is_parted, s.status_code, s.generation,
          s.batches, s.operation_code, (s.slice_spec #>> '{telemetry,totalEstimated}')::float8 as estimated,
          s.slice_spec #>> '{telemetry,basis}' as estimate_basis, s.expected::float8, s.received::float8, s.inserted::float8, s.updated::float8, s.unchanged::float8,
          s.deleted::float8, s.quarantined::float8, s.missing::float8, s.reason, s.accepted_at, s.accepted_by,
          s.accepted_reason, s.slice_signature_hash, s.created_at, s.ended_at`;

export interface SliceFilter {
  plan: string;
  status: string | undefined;
  /** The number of a slice: those behind it. */
  after: number | undefined;
}
const slices = filtered<SliceFilter, SliceRow>({
  name: "harvest.slice.list",
  conditions: {
    plan: (parameter) => `s.plan_id = ${parameter}`,
    status: (parameter) => `s.status_code = ${parameter}`,
    after: (parameter) => `s.slice_no > ${parameter}`,
  },
  text: (where, parameter) =>
    `select ${SLICE} from harvest.ing_plan_slice s where ${where} order by s.slice_no limit ${parameter(0)}`,
});

export function listSlices(db: Db, filter: SliceFilter, limit: number): Promise<SliceRow[]> {
  const { statement: one, values } = slices(filter);
  return db.read(one, [...values, limit]);
}

const FIND_SLICE = statement<SliceRow>(
  "harvest.slice.find",
  `select ${SLICE} from harvest.ing_plan_slice s where s.plan_id = $1 and s.slice_id = $2`,
);

export async function findSlice(db: Db, planId: string, sliceId: string): Promise<SliceRow | undefined> {
  return (await db.read(FIND_SLICE, [planId, sliceId]))[0];
}

const GAPS = statement<SliceRow>(
  "harvest.slice.gaps",
  `select ${SLICE} from harvest.ing_plan_slice s
   where s.plan_id = $1 and ${isShownGap("s")}
   order by s.window_from, s.slice_id limit $2`,
);

/** The slices that ended without being complete. */
export function gapSlices(db: Db, planId: string, limit: number): Promise<SliceRow[]> {
  return db.read(GAPS, [planId, limit]);
}

/** A slice that was divided into parts. */
export interface DividedSlice {
  slice_id: string;
  window_from: Date | null;
  window_to: Date | null;
  status_code: SliceState;
  expected: number | null;
  /** How many parts are in each state. */
  parts: Partial<Record<SliceState, number>>;
  /** The dimensions that divide it, or `pages`. */
  dimensions: string[];
}
const DIVIDED = statement<DividedSlice>(
  "harvest.slice.divided",
  `select s.slice_id::text, s.window_from, s.window_to, s.status_code, s.expected::float8, p.parts, p.dimensions
   from harvest.ing_plan_slice s
   cross join lateral (
     select jsonb_object_agg(q.status_code, q.n) as parts, (
       select coalesce(array_agg(distinct k.name), '{}') from harvest.ing_plan_slice d cross join lateral jsonb_object_keys(d.part) as k(name)
       where d.root_slice_id = s.slice_id) as dimensions
     from (select status_code, count(*)::int4 as n from harvest.ing_plan_slice
           where root_slice_id = s.slice_id and status_code <> 'SPLIT' group by status_code) q
   ) p
   where s.plan_id = $1 and s.is_parted and p.parts is not null order by s.slice_no limit $2`,
);

export function dividedSlices(db: Db, planId: string, limit: number): Promise<DividedSlice[]> {
  return db.read(DIVIDED, [planId, limit]);
}

export type LandingState = "PENDING" | "LANDING" | "LANDED" | "FAILED";
export interface LandingRow {
  op_time: string;
  table_name: string;
  window_from: Date;
  window_to: Date;
  status_code: LandingState;
  rows: number | null;
  last_error: string | null;
  landed_at: Date | null;
}
const LANDINGS = statement<LandingRow>(
  "harvest.landing.of_plan",
  `select op_time, table_name, window_from, window_to, status_code, rows::float8, last_error, landed_at
   from harvest.landing where plan_id = $1 order by status_code = 'LANDED', op_time limit $2`,
);

const QUEUED = statement<{ op_time: string }>(
  "harvest.landing.queued",
  "select op_time from harvest.landing where endpoint_id = $1 and op_time = any($2)",
);

/** Those of the windows that have landed or will, whichever plan completed them. */
export async function queuedLandings(db: Db, endpointId: number, opTimes: readonly string[]): Promise<string[]> {
  return (await db.read(QUEUED, [endpointId, opTimes])).map(({ op_time }) => op_time);
}

const LANDING_SUMS = statement<{ status_code: LandingState; windows: number }>(
  "harvest.landing.sums",
  "select status_code, count(*)::int4 as windows from harvest.landing where plan_id = $1 group by status_code",
);

export function landingSums(db: Db, planId: string): Promise<{ status_code: LandingState; windows: number }[]> {
  return db.read(LANDING_SUMS, [planId]);
}

/** The windows of a table that this plan was the last to change. Open ones first: who waits for all must not miss one. */
export function landingsOf(db: Db, planId: string, limit: number): Promise<LandingRow[]> {
  return db.read(LANDINGS, [planId, limit]);
}
