/** SQL for pages about cursors and their advances. */
import type { Db } from "../../../kernel/data/db.ts";
import { filtered } from "../../../kernel/data/filtered.ts";
import { statement } from "../../../kernel/data/statement.ts";
import type { WindowSpec } from "../../spec/snapshot.ts";

export interface CursorRow {
  provenance_code: string;
  operation_code: string;
  cursor_key: string;
  namespace_scope_code: string;
  namespace_key: string;
  cursor_type_code: string;
  cursor_value: string;
  normalized_instant: Date | null;
  observed_max_value: string | null;
  plan_id: string;
  slice_id: string;
  updated_at: Date;
  /** Gaps that were accepted and not harvested since. */
  accepted_gaps: number;
  /** That of the plan that moved it last. */
  window: WindowSpec | null;
}

export interface CursorFilter {
  source: string | undefined;
  operation: string | undefined;
}
// By slices that begin within the window: a harvest of it has the same bounds, or cuts it.
const HARVESTED_SINCE = `(
  select coalesce(range_agg(tstzrange(d.window_from, d.window_to)) @> tstzrange(g.window_from, g.window_to), false)
  from harvest.ing_plan_slice d
  where d.endpoint_id = g.endpoint_id and d.operation_code = g.operation_code
    and d.namespace_scope_code = g.namespace_scope_code and d.namespace_key = g.namespace_key
    and d.window_from >= g.window_from and d.window_from < g.window_to and d.status_code = 'COMPLETE')`;
const list = filtered<CursorFilter, CursorRow>({
  name: "harvest.cursor.list",
  conditions: {
    source: (parameter) => `c.provenance_code = ${parameter}`,
    operation: (parameter) => `c.operation_code = ${parameter}`,
  },
  text: (where, parameter) =>
    `select c.provenance_code, c.operation_code, c.cursor_key, c.namespace_scope_code, c.namespace_key, c.cursor_type_code,
            c.cursor_value, c.normalized_instant, c.observed_max_value, c.plan_id, c.slice_id::text, c.updated_at,
            s.snapshot #> '{spec,window}' as window,
            (select count(*)::int4 from harvest.ing_plan_slice g
             where g.endpoint_id = p.endpoint_id and g.operation_code = c.operation_code
               and g.namespace_scope_code = c.namespace_scope_code and g.namespace_key = c.namespace_key
               and g.accepted_at is not null and not ${HARVESTED_SINCE}) as accepted_gaps
     from harvest.ing_cursor c
     left join harvest.ing_plan p on p.plan_id = c.plan_id
     left join harvest.snapshot s on s.spec_fingerprint = p.spec_fingerprint
     where ${where} order by 1, 2, 3, 4, 5 limit ${parameter(0)}`,
});

export function listCursors(db: Db, filter: CursorFilter, limit: number): Promise<CursorRow[]> {
  const { statement: one, values } = list(filter);
  return db.read(one, [...values, limit]);
}

export interface CursorEventRow {
  slice_id: string;
  generation: number;
  cursor_key: string;
  direction_code: string;
  prev_value: string | null;
  new_value: string;
  observed_max_value: string | null;
  plan_id: string;
  task_id: string;
  run_id: string | null;
  created_at: Date;
}
const EVENTS = statement<CursorEventRow>(
  "harvest.cursor_event.list",
  `select slice_id::text, generation, cursor_key, direction_code, prev_value, new_value, observed_max_value, plan_id,
          task_id::text, run_id::text, created_at
   from harvest.ing_cursor_event e
   where provenance_code = $1 and operation_code = $2 and namespace_scope_code = any('{EXPR,CUSTOM}') and namespace_key = $3
   order by e.created_at desc, e.slice_id desc limit $4`,
);

/** The newest first. */
export function listCursorEvents(
  db: Db,
  cursor: { source: string; operation: string; namespace: string },
  limit: number,
): Promise<CursorEventRow[]> {
  return db.read(EVENTS, [cursor.source, cursor.operation, cursor.namespace, limit]);
}
