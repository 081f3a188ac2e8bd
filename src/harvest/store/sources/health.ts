/**
 * SQL for the doctor and the metrics: windows that are missing, and what schedules led to. It looks at the newest failed plans and
 * the open ones, not at all there were: a plan without a window takes what is missing again, so a gap is in a new plan too.
 */
import type { Queryable } from "../../../kernel/data/db.ts";
import { statement } from "../../../kernel/data/statement.ts";
import type { WindowSpec } from "../../spec/snapshot.ts";
import type { SliceState } from "../../states.ts";
import { completeOver, isGap, MAX_WINDOW_MS } from "../plans/gaps.ts";

type Reader = { read: Queryable["rows"] };

export interface MissingWindow {
  provenance_code: string;
  endpoint_name: string;
  operation_code: string;
  namespace_key: string;
  /** Null for an endpoint without a window. */
  window_from: Date | null;
  window_to: Date | null;
  /** Of the newest slice of the window. */
  plan_id: string;
  status_code: Extract<SliceState, "FAILED" | "INCOMPLETE" | "CANCELLED">;
  reason: string;
  ended_at: Date;
}

const PLANS_MAX = 200;
const SLICES_OF_PLAN_MAX = 100;
const WINDOWS_MAX = 1_000;

// Slices behind the watermark were completed by later ones; behind that of a backfill is after it. A slice before it may still have been, in parts, after a gap before it.
const MISSING = statement<MissingWindow>(
  "harvest.health.missing_windows",
  `with plan as (
     (select plan_id, spec_fingerprint from harvest.ing_plan where status_code = 'FAILED' order by plan_id desc limit $1)
     union all
     (select plan_id, spec_fingerprint from harvest.ing_plan where ended_at is null limit $1)
   ),
   gap as materialized (
     select distinct on (s.endpoint_id, s.operation_code, s.namespace_scope_code, s.namespace_key, s.window_from, s.window_to)
            s.*, e.endpoint_name, ${MAX_WINDOW_MS} as max_window_ms
     from plan
     join harvest.snapshot n using (spec_fingerprint)
     cross join lateral (
       select * from harvest.ing_plan_slice o
       where o.plan_id = plan.plan_id and ${isGap("o")} and o.accepted_at is null limit $2
     ) s
     join harvest.reg_prov_endpoint_def e on e.endpoint_id = s.endpoint_id and e.removed_at is null
     left join harvest.ing_cursor c
       on c.provenance_code = s.provenance_code and c.operation_code = s.operation_code
      and c.cursor_key = n.snapshot #>> '{spec,window,watermarkKey}'
      and c.namespace_scope_code = s.namespace_scope_code and c.namespace_key = s.namespace_key
     where case when s.operation_code = 'BACKFILL' then s.window_from < coalesce(c.normalized_instant, 'infinity')
                else s.window_to > coalesce(c.normalized_instant, '-infinity') end
        or s.window_to is null and not exists (
             select from harvest.ing_plan later
             where later.provenance_code = s.provenance_code and later.plan_id > s.plan_id and later.endpoint_id = s.endpoint_id
               and later.operation_code = s.operation_code and later.namespace_key = s.namespace_key
               and later.status_code = 'COMPLETE')
     order by s.endpoint_id, s.operation_code, s.namespace_scope_code, s.namespace_key, s.window_from, s.window_to, s.slice_id desc
   )
   select g.provenance_code, g.endpoint_name, g.operation_code, g.namespace_key, g.window_from, g.window_to, g.plan_id, g.status_code, g.reason, g.ended_at
   from gap g
   where g.window_from is null or not isempty(
     tstzmultirange(tstzrange(g.window_from, g.window_to)) - coalesce((
       select range_agg(tstzrange(d.window_from, d.window_to)) from ${completeOver("g", "g.max_window_ms")}), '{}'))
   order by 1, 2, 3, 4, g.window_from limit $3`,
);

/** Windows whose slices ended as gaps that nobody has accepted, and that nothing has completed since. In the order of their time. */
export function missingWindows(db: Reader): Promise<MissingWindow[]> {
  return db.read(MISSING, [PLANS_MAX, SLICES_OF_PLAN_MAX, WINDOWS_MAX]);
}

export interface FailedPlan {
  plan_id: string;
  /** No window of it is missing: a part of it has no slices. */
  is_unsliced: boolean;
  provenance_code: string;
  namespace_key: string;
  reason: string;
  ended_at: Date;
}

// Of two plans without a window, the later one has the whole. A backfill goes from its end to its beginning.
const UNSLICED_FROM = "(p.record_remarks #>> '{unsliced,from}')::timestamptz";
const SLICES_REST = `(later.window_from is null or case when p.operation_code = 'BACKFILL'
                then later.window_from < ${UNSLICED_FROM} else later.window_to > ${UNSLICED_FROM} end)`;
// A plan whose rest could not be sliced has no slice that is missing.
const FAILED_PLANS = statement<FailedPlan>(
  "harvest.health.failed_plans",
  `select p.plan_id, p.plan_id <> all($1::uuid[]) as is_unsliced, p.provenance_code, p.namespace_key,
          p.record_remarks ->> 'reason' as reason, p.ended_at
   from harvest.ing_plan p
   where p.status_code = 'FAILED' and p.ended_at > now() - make_interval(days => $2)
     and (p.plan_id = any($1::uuid[]) or (p.record_remarks ? 'unsliced' and not exists (
            select from harvest.ing_plan later
            where later.endpoint_id = p.endpoint_id and later.plan_id > p.plan_id and later.operation_code = p.operation_code
              and later.namespace_key = p.namespace_key and later.status_code = 'COMPLETE' and ${SLICES_REST})))
   order by p.plan_id desc limit $3`,
);

/** Plans that failed in the last days and were not repeated, the newest first. `missing` are the windows that nothing has completed. */
export function failedPlans(db: Reader, missing: readonly MissingWindow[], days: number): Promise<FailedPlan[]> {
  return db.read(FAILED_PLANS, [[...new Set(missing.map(({ plan_id }) => plan_id))], days, PLANS_MAX]);
}

export interface ScheduleHealth {
  provenance_code: string;
  schedule_name: string;
  endpoint_name: string;
  operation_code: string;
  /** Why the last fire made no plan, where the definition was at fault. */
  refused: string | null;
  /** Of the plan that the last fire made, if it has ended. */
  namespace_key: string | null;
  planned_at: Date | null;
  window: WindowSpec | null;
  watermark: Date | null;
}

const SCHEDULES_MAX = 1_000;
const SCHEDULES = statement<ScheduleHealth>(
  "harvest.health.schedules",
  `select s.provenance_code, s.schedule_name, s.endpoint_name, s.operation_code, last.record_remarks ->> 'refused' as refused,
          p.namespace_key, p.planned_at, n.snapshot #> '{spec,window}' as window, c.normalized_instant as watermark
   from harvest.ing_schedule s
   cross join lateral (
     select record_remarks from harvest.ing_schedule_instance i
     where i.scheduler_code = 'cron' and i.scheduler_job_id = s.schedule_id::text
     order by i.scheduler_log_id desc limit 1
   ) last
   left join harvest.ing_plan p on p.plan_id = (last.record_remarks ->> 'planId')::uuid and p.ended_at is not null
   left join harvest.snapshot n on n.spec_fingerprint = p.spec_fingerprint
   left join harvest.ing_cursor c
     on c.provenance_code = p.provenance_code and c.operation_code = p.operation_code
    and c.cursor_key = n.snapshot #>> '{spec,window,watermarkKey}'
    and c.namespace_scope_code = p.namespace_scope_code and c.namespace_key = p.namespace_key
   where s.paused_at is null order by 1, 2 limit $1`,
);

/** What the last fire of each schedule led to. */
export function scheduleHealth(db: Reader): Promise<ScheduleHealth[]> {
  return db.read(SCHEDULES, [SCHEDULES_MAX]);
}
