/** SQL of rewinds, and of the history of a cursor. */
import type { Db, Queryable } from "../../../kernel/data/db.ts";
import { statement } from "../../../kernel/data/statement.ts";
import type { WindowSpec } from "../../spec/snapshot.ts";
import { isGap } from "../plans/gaps.ts";

/** A condition on rows of `ing_plan_slice`: they count for their cursor, since they were made after its last rewind. */
export const AFTER_REWIND = `not exists (
       select from harvest.ing_cursor c
       where c.provenance_code = ing_plan_slice.provenance_code and c.operation_code = ing_plan_slice.operation_code
         and c.namespace_scope_code = ing_plan_slice.namespace_scope_code and c.namespace_key = ing_plan_slice.namespace_key
         and c.slices_after >= ing_plan_slice.slice_id)`;

export interface CursorOf {
  source: string;
  operation: string;
  namespace: string;
}

export interface LockedCursor {
  provenance_code: string;
  operation_code: string;
  cursor_key: string;
  namespace_scope_code: string;
  namespace_key: string;
  normalized_instant: Date | null;
  cursor_generation: number;
  window: WindowSpec | null;
  endpoint_id: number | null;
}

const FIND = statement<LockedCursor>(
  "harvest.cursor.find",
  `select c.provenance_code, c.operation_code, c.cursor_key, c.namespace_scope_code, c.namespace_key, c.normalized_instant,
          c.cursor_generation, s.snapshot #> '{spec,window}' as window, p.endpoint_id
   from harvest.ing_cursor c
   left join harvest.ing_plan p on p.plan_id = c.plan_id
   left join harvest.snapshot s on s.spec_fingerprint = p.spec_fingerprint
   where c.provenance_code = $1 and c.operation_code = $2 and c.namespace_key = $3
   order by c.updated_at desc limit 1`,
);

export async function findCursor(
  tx: Queryable,
  { source, operation, namespace }: CursorOf,
): Promise<LockedCursor | undefined> {
  return (await tx.rows(FIND, [source, operation, namespace]))[0];
}

// As for events (cursors.ts), the time is read under the lock of the cursor.
const REWIND = statement<{ cursor_generation: number }>(
  "harvest.cursor.rewind",
  `with moved as (
     update harvest.ing_cursor c
     set cursor_value = $6, normalized_instant = $7, cursor_generation = c.cursor_generation + 1, updated_at = now(),
         slices_after = (select coalesce(max(slice_id), 0) from harvest.ing_plan_slice)
     where c.provenance_code = $1 and c.operation_code = $2 and c.cursor_key = $3 and c.namespace_scope_code = $4
       and c.namespace_key = $5 and c.normalized_instant > $7
     returning c.cursor_generation
   )
   insert into harvest.cursor_rewind
     (provenance_code, operation_code, cursor_key, namespace_scope_code, namespace_key, cursor_generation, prev_value, new_value,
      reason, rewound_by, rewound_at)
   select $1, $2, $3, $4, $5, moved.cursor_generation, $8, $6, $9, $10, clock_timestamp() from moved
   returning cursor_generation`,
);

/** Back to an earlier instant, under the lock of the cursor. Answers the new generation; undefined if it is not before the value. */
export async function rewindCursor(
  tx: Queryable,
  cursor: LockedCursor,
  { from, to, reason, by }: { from: Date; to: Date; reason: string; by: string },
): Promise<number | undefined> {
  const { provenance_code, operation_code, cursor_key, namespace_scope_code, namespace_key } = cursor;
  const key = [provenance_code, operation_code, cursor_key, namespace_scope_code, namespace_key];
  const values = [...key, to.toISOString(), to, from.toISOString(), reason, by];
  return (await tx.rows(REWIND, values))[0]?.cursor_generation;
}

const COUNT_AGAIN = statement<{ n: number }>(
  "harvest.cursor.count_again",
  `select count(*)::int4 as n from harvest.ing_plan_slice
   where endpoint_id = $1 and operation_code = $2 and namespace_scope_code = $3 and namespace_key = $4
     and window_from < $6 and window_to > $5 and status_code = 'COMPLETE' and ${AFTER_REWIND}`,
);

/** The complete slices that will be harvested once more. */
export async function countAgain(
  tx: Queryable,
  { endpoint_id, operation_code, namespace_scope_code, namespace_key }: LockedCursor,
  from: Date,
  to: Date,
): Promise<number> {
  const values = [endpoint_id, operation_code, namespace_scope_code, namespace_key, from, to];
  return (await tx.rows(COUNT_AGAIN, values))[0]?.n ?? 0;
}

export const TIMELINE_KINDS = ["advance", "rewind", "gap", "accepted"] as const;
export interface TimelineRow {
  at: Date;
  kind: (typeof TIMELINE_KINDS)[number];
  from: string | null;
  to: string;
  plan_id: string | null;
  slice_id: string | null;
  by: string | null;
  reason: string | null;
}

const ISO = (column: string) => `to_char(${column} at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')`;
// As the planner gives it (plan/request.ts): the indexes of events and slices begin with it.
const SCOPE = "case $2 when 'HARVEST' then 'EXPR' else 'CUSTOM' end";
const GAP = `from harvest.ing_plan_slice s
     where s.endpoint_id in (select endpoint_id from harvest.reg_prov_endpoint_def where provenance_code = $1)
       and s.operation_code = $2 and s.namespace_scope_code = ${SCOPE} and s.namespace_key = $3 and s.window_from is not null
       and ${isGap("s")}`;
const TIMELINE = statement<TimelineRow>(
  "harvest.cursor.timeline",
  `select * from (
     (select e.created_at as at, 'advance' as kind, e.prev_value as "from", e.new_value as "to", e.plan_id::text as plan_id,
             e.slice_id::text as slice_id, null as by, null as reason
      from harvest.ing_cursor_event e
      where e.provenance_code = $1 and e.operation_code = $2 and e.namespace_key = $3 and e.namespace_scope_code = ${SCOPE}
      order by e.created_at desc limit $4)
     union all
     (select w.rewound_at, 'rewind', w.prev_value, w.new_value, null, null, w.rewound_by, w.reason
      from harvest.cursor_rewind w where w.provenance_code = $1 and w.operation_code = $2 and w.namespace_key = $3
      order by w.rewound_at desc limit $4)
     union all
     (select s.ended_at, 'gap', ${ISO("s.window_from")}, ${ISO("s.window_to")}, s.plan_id::text, s.slice_id::text, null, s.reason
      ${GAP} order by s.slice_id desc limit $4)
     union all
     (select s.accepted_at, 'accepted', ${ISO("s.window_from")}, ${ISO("s.window_to")}, s.plan_id::text, s.slice_id::text,
             s.accepted_by, s.accepted_reason
      ${GAP} and s.accepted_at is not null order by s.slice_id desc limit $4)
   ) t order by t.at desc, t.kind limit $4`,
);

/** The newest first. */
export function readTimeline(
  db: Db,
  { source, operation, namespace }: CursorOf,
  limit: number,
): Promise<TimelineRow[]> {
  return db.read(TIMELINE, [source, operation, namespace, limit]);
}
