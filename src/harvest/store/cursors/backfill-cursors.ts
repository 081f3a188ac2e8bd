/**
 * SQL of the cursor of a backfill: the beginning of the time that is complete up to where the backfill began, which is where HARVEST
 * began, or the end of the first backfill where nothing was harvested before. It moves back only, and never past a gap; what
 * HARVEST has completed counts too. The watermark of HARVEST stays where it is.
 */
import type { Queryable } from "../../../kernel/data/db.ts";
import { statement } from "../../../kernel/data/statement.ts";
import { type Advance, addEvent, advanceWatermark, firstWindow, lockCursor, movedTo } from "./cursors.ts";

// A slice that was cancelled without its plan is missing, as in FIRST of cursors.ts.
const TOP = statement<{ at: Date | null }>(
  "harvest.cursor.last_slice",
  `select max(window_to) as at from harvest.ing_plan_slice
   where endpoint_id = $1 and operation_code = 'BACKFILL' and namespace_scope_code = $2 and namespace_key = $3
     and window_from is not null and (status_code <> 'CANCELLED' or reason is not null)`,
);
/** Read together. A slice may close a gap above years of complete ones. */
const SLICES_AT_ONCE = 10_000;
const completeOf = (operation: string, scope: string) => `(
     select window_from, window_to from harvest.ing_plan_slice
     where endpoint_id = $1 and operation_code = ${operation} and namespace_scope_code = ${scope} and namespace_key = $3
       and window_from < $4 and (status_code = 'COMPLETE' or accepted_at is not null)
     order by window_from desc limit $5)`;
const COMPLETE = statement<{ window_from: Date; window_to: Date }>(
  "harvest.cursor.complete_slices_before",
  `select * from ${completeOf("'BACKFILL'", "$2")} b union all select * from ${completeOf("'HARVEST'", "'EXPR'")} h
   order by window_to desc`,
);
const MOVE = statement<{ cursor_value: string }>(
  "harvest.cursor.move_back",
  `insert into harvest.ing_cursor as t
     (provenance_code, operation_code, cursor_key, namespace_scope_code, namespace_key, cursor_type_code, cursor_value,
      normalized_instant, observed_max_value, plan_id, slice_id, generation, expr_hash)
   values ($1, $2, $3, $4, $5, 'TIME', $6, $7, $8, $9, $10, $11, $12)
   on conflict (provenance_code, operation_code, cursor_key, namespace_scope_code, namespace_key) do update
   set cursor_value = excluded.cursor_value, normalized_instant = excluded.normalized_instant,
       observed_max_value = greatest(t.observed_max_value, excluded.observed_max_value), plan_id = excluded.plan_id,
       slice_id = excluded.slice_id, generation = excluded.generation, expr_hash = excluded.expr_hash, updated_at = now()
   where t.normalized_instant > excluded.normalized_instant returning cursor_value`,
);

/** Moves the cursor of the operation over the slices that are COMPLETE or accepted. Answers the new value; undefined if it stays. */
export function advanceCursor(tx: Queryable, advance: Advance): Promise<Date | undefined> {
  return advance.operation_code === "BACKFILL" ? moveBack(tx, advance) : advanceWatermark(tx, advance);
}

export function directionOf(operation: string): "FORWARD" | "BACKFILL" {
  return operation === "BACKFILL" ? "BACKFILL" : "FORWARD";
}

async function moveBack(tx: Queryable, advance: Advance): Promise<Date | undefined> {
  const { endpointId, namespace_scope_code: scope, namespace_key: key } = advance;
  const present = await lockCursor(tx, advance);
  const start =
    present ??
    (await firstWindow(tx, { endpointId, operation: "HARVEST", scope: "EXPR", key })) ??
    (await tx.rows(TOP, [endpointId, scope, key]))[0]?.at;
  if (!start) return undefined;
  let reached = start;
  for (;;) {
    const complete = await tx.rows(COMPLETE, [endpointId, scope, key, reached, SLICES_AT_ONCE]);
    const begin = startOfSuffix(reached, complete);
    const isLast = complete.length < SLICES_AT_ONCE || begin.getTime() === reached.getTime();
    reached = begin;
    if (isLast) break;
  }
  if (reached.getTime() >= start.getTime()) return undefined;
  await addEvent(tx, advance, "BACKFILL", present, reached);
  const moved = await tx.rows(MOVE, movedTo(advance, reached));
  return moved.length === 1 ? reached : undefined;
}

/** The beginning of the slices that cover the time before `end` without a gap. They come by their ends, the latest first. */
export function startOfSuffix(end: Date, slices: readonly { window_from: Date; window_to: Date }[]): Date {
  let start = end.getTime();
  for (const { window_from, window_to } of slices) {
    if (window_to.getTime() < start) break;
    start = Math.min(start, window_from.getTime());
  }
  return new Date(start);
}
