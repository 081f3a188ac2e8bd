/** SQL that tells why a slice does not finish. */
import type { Db } from "../../../kernel/data/db.ts";
import { statement } from "../../../kernel/data/statement.ts";
import { isServed } from "../../../kernel/work/session.ts";
import type { TaskState } from "../../states.ts";
import { concurrencyNow, pauseReasonOf } from "./pauses.ts";
import { harvestWaits } from "./tasks.ts";

/** Counted up to here. */
export const AHEAD_MAX = 10_000;

/** The newest task of a slice. */
export interface WhyTask {
  task_id: string;
  status_code: TaskState;
  partition_key: string;
  scheduled_at: Date | null;
  is_due: boolean;
  wait_reason: string | null;
  wait_gate: string | null;
  failed_tries: number;
  attempt_count: number;
  lost_count: number;
  pause: string | null;
  /** When the run under way began, and in which process. */
  run_at: Date | null;
  process: string | null;
  /** When the first of the runs began that failed in a row. */
  failing_since: Date | null;
  concurrency: number | null;
  /** So one task at a time asks whether the source still refuses access. */
  is_refused: boolean | null;
  running: number;
  /** Tasks of the partition that are due and go first. */
  ahead: number;
  has_worker: boolean;
  provenance_code: string;
  /** It makes way for a harvest of its source. */
  is_after_harvest: boolean;
}

const TASK = statement<WhyTask>(
  "harvest.why.task",
  `select t.task_id::text, t.status_code, t.partition_key, t.scheduled_at, coalesce(t.scheduled_at <= now(), false) as is_due,
          t.wait_reason, t.wait_gate, t.failed_tries, t.attempt_count, t.lost_count, ${pauseReasonOf("t.partition_key")} as pause,
          (select r.started_at from harvest.ing_task_run r where r.task_id = t.task_id and r.status_code = 'RUNNING'
           order by r.attempt_no desc limit 1) as run_at,
          (select s.process from kernel.session s where s.id = t.session_id) as process,
          (select min(r.started_at) from (select started_at from harvest.ing_task_run where task_id = t.task_id
           order by attempt_no desc limit t.failed_tries) r) as failing_since,
          (select ${concurrencyNow("p")} from harvest.ing_partition p where p.partition_key = t.partition_key) as concurrency,
          (select p.is_refused from harvest.ing_partition p where p.partition_key = t.partition_key) as is_refused,
          (select count(*)::int4 from harvest.ing_task r
           where r.partition_key = t.partition_key and r.status_code = 'EXECUTING') as running,
          (select count(*)::int4 from (
             select from harvest.ing_task q where q.partition_key = t.partition_key and q.status_code = 'QUEUED'
               and q.scheduled_at <= now() and (q.priority, q.scheduled_at, q.task_id) < (t.priority, t.scheduled_at, t.task_id)
             limit ${AHEAD_MAX}) q) as ahead,
          ${isServed("worker")} as has_worker, t.provenance_code,
          t.operation_code <> 'HARVEST' and ${harvestWaits("t.provenance_code")} as is_after_harvest
   from harvest.ing_task t where t.slice_id = $1 order by t.task_id desc limit 1`,
);

export async function taskOfSlice(db: Db, sliceId: string): Promise<WhyTask | undefined> {
  return (await db.read(TASK, [sliceId]))[0];
}

export interface OpenParts {
  open: number;
  gaps: number;
  parts: number;
  /** One that is open, or else one that is a gap. */
  first: string | null;
}

// What a slice was split into in time are slices with windows, and one of them that is divided counts once. What it was divided into, or
// what one of its parts was, are parts of the same whole.
const PARTS = statement<OpenParts>(
  "harvest.why.parts",
  `with recursive whole as (
     select slice_id, case when is_parted then slice_id else root_slice_id end as root
     from harvest.ing_plan_slice where plan_id = $1 and slice_id = $2
   ), part as (
     select s.slice_id, s.status_code from whole w
     join harvest.ing_plan_slice s on s.plan_id = $1 and s.parent_slice_id = w.slice_id and s.root_slice_id is not distinct from w.root
     union all
     select s.slice_id, s.status_code from part p cross join whole w
     join harvest.ing_plan_slice s on s.plan_id = $1 and s.parent_slice_id = p.slice_id and s.root_slice_id is not distinct from w.root
   )
   select count(*) filter (where status_code = 'READY')::int4 as open,
          count(*) filter (where status_code in ('FAILED', 'INCOMPLETE', 'CANCELLED'))::int4 as gaps,
          count(*) filter (where status_code <> 'SPLIT')::int4 as parts,
          coalesce(min(slice_id) filter (where status_code = 'READY'),
                   min(slice_id) filter (where status_code in ('FAILED', 'INCOMPLETE', 'CANCELLED')))::text as first
   from part`,
);

/** The slices that took the place of one that was split or divided, down to those that were not. */
export async function partsOf(db: Db, planId: string, sliceId: string): Promise<OpenParts> {
  return (await db.read(PARTS, [planId, sliceId]))[0] ?? { open: 0, gaps: 0, parts: 0, first: null };
}
