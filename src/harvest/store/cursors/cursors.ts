/**
 * SQL of the watermark: the end of the time that COMPLETE slices, and gaps that somebody has accepted, cover without another gap. It moves forward only, except by a
 * rewind (rewinds.ts), after which only slices that were made since then count. The event is written before the value, in the transaction that completes a slice or accepts its gap.
 */
import type { Queryable } from "../../../kernel/data/db.ts";
import { statement } from "../../../kernel/data/statement.ts";
import { AFTER_REWIND } from "./rewinds.ts";

export interface CursorNamespace {
  provenance_code: string;
  operation_code: string;
  cursor_key: string;
  namespace_scope_code: string;
  namespace_key: string;
}

export interface Advance extends CursorNamespace {
  endpointId: number;
  planMonth: string;
  sliceId: string;
  generation: number;
  scheduleInstanceId: string;
  planId: string;
  taskId: string;
  /** Null where the slice was cancelled before it ran, and its gap is accepted. */
  runId: string | null;
  exprHash: string;
  /** The longest slice: no earlier one can reach over the watermark. */
  maxWindowMs: number;
  observedMax: string | null;
}

// Two slices that complete at the same time would not see each other. The next statement sees what was committed before the lock.
const LOCK = statement(
  "harvest.cursor.lock",
  "select pg_advisory_xact_lock(hashtextextended('harvest.cursor ' || concat_ws(' ', $1::text, $2::text, $3::text, $4::text, $5::text), 0))",
);
const READ = statement<{ at: Date }>(
  "harvest.cursor.value",
  `select normalized_instant as at from harvest.ing_cursor
   where provenance_code = $1 and operation_code = $2 and cursor_key = $3 and namespace_scope_code = $4 and namespace_key = $5`,
);
// A slice that was cancelled without its plan, and so has a reason, is missing; those of a cancelled plan were never wanted.
const FIRST = statement<{ at: Date | null }>(
  "harvest.cursor.first_slice",
  `select min(window_from) as at from harvest.ing_plan_slice
   where endpoint_id = $1 and operation_code = $2 and namespace_scope_code = $3 and namespace_key = $4
     and window_from is not null and (status_code <> 'CANCELLED' or reason is not null)`,
);
/** Read together. A slice may close a gap before years of complete ones. */
const SLICES_AT_ONCE = 10_000;
const COMPLETE = statement<{ window_from: Date; window_to: Date }>(
  "harvest.cursor.complete_slices",
  `select window_from, window_to from harvest.ing_plan_slice
   where endpoint_id = $1 and operation_code = $2 and namespace_scope_code = $3 and namespace_key = $4
     and window_from >= $5::timestamptz - make_interval(secs => $6) and window_to > $5
     and (status_code = 'COMPLETE' or accepted_at is not null) and ${AFTER_REWIND}
   order by window_from limit $7`,
);
// `created_at` orders the events of a cursor, so it is read under the cursor's lock: now() is when the transaction began, and the one
// that began first may get the lock last.
const EVENT = statement<{ slice_id: string }>(
  "harvest.cursor.event",
  `insert into harvest.ing_cursor_event
     (plan_month, slice_id, generation, provenance_code, operation_code, cursor_key, namespace_scope_code, namespace_key,
      cursor_type_code, direction_code, prev_value, new_value, prev_instant, new_instant, observed_max_value,
      schedule_instance_id, plan_id, task_id, run_id, expr_hash, created_at)
   values ($1::date, $2, $3, $4, $5, $6, $7, $8, 'TIME', $19, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, clock_timestamp())
   on conflict do nothing returning slice_id::text`,
);
const MOVE = statement<{ cursor_value: string }>(
  "harvest.cursor.move",
  `insert into harvest.ing_cursor as t
     (provenance_code, operation_code, cursor_key, namespace_scope_code, namespace_key, cursor_type_code, cursor_value,
      normalized_instant, observed_max_value, plan_id, slice_id, generation, expr_hash)
   values ($1, $2, $3, $4, $5, 'TIME', $6, $7, $8, $9, $10, $11, $12)
   on conflict (provenance_code, operation_code, cursor_key, namespace_scope_code, namespace_key) do update
   set cursor_value = excluded.cursor_value, normalized_instant = excluded.normalized_instant,
       observed_max_value = greatest(t.observed_max_value, excluded.observed_max_value), plan_id = excluded.plan_id,
       slice_id = excluded.slice_id, generation = excluded.generation, expr_hash = excluded.expr_hash, updated_at = now()
   where t.normalized_instant < excluded.normalized_instant returning cursor_value`,
);

/** The watermark of a namespace; undefined before the first. */
export async function readWatermark(db: Queryable, namespace: CursorNamespace): Promise<Date | undefined> {
  return (await db.rows(READ, keyOf(namespace)))[0]?.at;
}

/** Two slices that end at the same time move the cursor one after the other. Answers where it is. */
export async function lockCursor(tx: Queryable, namespace: CursorNamespace): Promise<Date | undefined> {
  await tx.rows(LOCK, keyOf(namespace));
  return readWatermark(tx, namespace);
}

/** The beginning of the earliest slice of a namespace: what lies behind it is harvested or missing. */
export async function firstWindow(
  db: Queryable,
  { endpointId, operation, scope, key }: { endpointId: number; operation: string; scope: string; key: string },
): Promise<Date | undefined> {
  return (await db.rows(FIRST, [endpointId, operation, scope, key]))[0]?.at ?? undefined;
}

/** Moves the watermark over the slices that are COMPLETE or accepted. Answers the new value; undefined if it stays. */
export async function advanceWatermark(tx: Queryable, advance: Advance): Promise<Date | undefined> {
  const present = await lockCursor(tx, advance);
  const slices = [advance.endpointId, advance.operation_code, advance.namespace_scope_code, advance.namespace_key];
  const start = present ?? (await tx.rows(FIRST, slices))[0]?.at;
  if (!start) return undefined;
  let reached = start;
  for (;;) {
    const complete = await tx.rows(COMPLETE, [...slices, reached, advance.maxWindowMs / 1_000, SLICES_AT_ONCE]);
    const end = endOfPrefix(reached, complete);
    const isLast = complete.length < SLICES_AT_ONCE || end.getTime() === reached.getTime();
    reached = end;
    if (isLast) break;
  }
  if (reached.getTime() <= start.getTime()) return undefined;
  return moveForward(tx, advance, present, reached);
}

/** The caller has the lock of the cursor. Undefined if it stays. */
export async function moveForward(
  tx: Queryable,
  advance: Advance,
  present: Date | undefined,
  reached: Date,
): Promise<Date | undefined> {
  await addEvent(tx, advance, "FORWARD", present, reached);
  const moved = await tx.rows(MOVE, movedTo(advance, reached));
  return moved.length === 1 ? reached : undefined;
}

/** The values of a statement that moves a cursor. */
export function movedTo(advance: Advance, reached: Date): unknown[] {
  const { planId, sliceId, generation, exprHash, observedMax } = advance;
  return [...keyOf(advance), reached.toISOString(), reached, observedMax, planId, sliceId, generation, exprHash];
}

/** An event comes before the value, in the same transaction. */
export async function addEvent(
  tx: Queryable,
  advance: Advance,
  direction: "FORWARD" | "BACKFILL",
  present: Date | undefined,
  reached: Date,
): Promise<void> {
  const { planMonth, sliceId, generation, planId, exprHash, observedMax } = advance;
  await tx.rows(EVENT, [
    planMonth,
    sliceId,
    generation,
    ...keyOf(advance),
    present?.toISOString() ?? null,
    reached.toISOString(),
    present ?? null,
    reached,
    observedMax,
    advance.scheduleInstanceId,
    planId,
    advance.taskId,
    advance.runId,
    exprHash,
    direction,
  ]);
}

/** The end of the slices that cover the time from `start` on without a gap. They come in the order of their beginning. */
export function endOfPrefix(start: Date, slices: readonly { window_from: Date; window_to: Date }[]): Date {
  let end = start.getTime();
  for (const { window_from, window_to } of slices) {
    if (window_from.getTime() > end) break;
    end = Math.max(end, window_to.getTime());
  }
  return new Date(end);
}

function keyOf(namespace: CursorNamespace): string[] {
  const { provenance_code, operation_code, cursor_key, namespace_scope_code, namespace_key } = namespace;
  return [provenance_code, operation_code, cursor_key, namespace_scope_code, namespace_key];
}
