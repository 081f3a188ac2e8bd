/**
 * SQL of updates: which ranges of known ids are due, and which of their records are asked for.
 *
 * A range is fresh if the last plan that has checked it was made lately, with the same expression. Ranges and records are compared
 * by the database, since its order of texts is that of the index of records.
 */
import { toArrays, unnest } from "../../../kernel/data/batch.ts";
import type { Queryable } from "../../../kernel/data/db.ts";
import { statement } from "../../../kernel/data/statement.ts";
import { type Advance, lockCursor, moveForward } from "../cursors/cursors.ts";
import type { Namespace } from "../plans/plans.ts";
import type { IncomingRecord } from "./records.ts";

/** Ids from one up to, but not including, another; null is without a bound. */
export interface KeyRange {
  from: string | null;
  to: string | null;
}

const OPEN = statement<{ plan_id: string }>(
  "harvest.update.open_plan",
  `select plan_id from harvest.ing_plan
   where endpoint_id = $1 and ended_at is null and operation_code = 'UPDATE' and namespace_key = $2
     and plan_strategy in ('RANGE', 'QUARANTINE') limit 1`,
);

/** A plan of ranges, or of what is quarantined, that has not ended. */
export async function openUpdate(tx: Queryable, { endpointId, key }: Namespace): Promise<string | undefined> {
  return (await tx.rows(OPEN, [endpointId, key]))[0]?.plan_id;
}

const A_KEY = statement<{ item_key: string }>(
  "harvest.update.a_key",
  "select item_key from harvest.record where endpoint_id = $1 and not deleted order by item_key limit 1",
);

/** The key of a known record, if there is one. */
export async function aKnownKey(db: Queryable, endpointId: number): Promise<string | undefined> {
  return (await db.rows(A_KEY, [endpointId]))[0]?.item_key;
}

// Behind the last slice of the last plan, so that ranges take turns also where one plan cannot cover all of them.
const STALE = statement<KeyRange>(
  "harvest.update.stale_ranges",
  `with last as (
     select plan_id from harvest.ing_plan
     where endpoint_id = $1 and operation_code = 'UPDATE' and namespace_key = $2 and plan_strategy = 'RANGE'
     order by plan_id desc limit 1
   ), start as (
     select (select upper(s.keys) from last join harvest.ing_plan_slice s using (plan_id) order by s.slice_no desc limit 1) as key
   ), fresh as (
     select coalesce(range_agg(c.keys), '{}') as keys
     from harvest.checked_keys c join harvest.ing_plan p using (plan_id)
     where c.endpoint_id = $1 and c.namespace_key = $2
       and p.planned_at > coalesce($3::timestamptz, '-infinity') and p.expr_proto_hash = $4
   ), stale as (
     select harvest.key_multirange(harvest.key_range(null, null)) - fresh.keys as keys from fresh
   )
   select lower(r.range) as from, upper(r.range) as to
   from start, stale, lateral (
     select 1 as turn, unnest(stale.keys * harvest.key_multirange(harvest.key_range(start.key, null))) as range
     union all
     select 2, unnest(stale.keys * harvest.key_multirange(harvest.key_range(null, start.key))) where start.key is not null
   ) r
   order by r.turn, r.range`,
);

/** The ranges that are not fresh, behind those that were planned last. */
export function staleRanges(
  tx: Queryable,
  { endpointId, key }: Namespace,
  { staleBefore, exprProtoHash }: { staleBefore: Date | null; exprProtoHash: string },
): Promise<KeyRange[]> {
  return tx.rows(STALE, [endpointId, key, staleBefore, exprProtoHash]);
}

const IN_RANGE = "r.item_key >= coalesce($2, '') and ($3::text is null or r.item_key < $3)";
const CUT = statement<{ records: number; next: string | null }>(
  "harvest.update.cut",
  `select count(*)::int4 as records, max(item_key) filter (where n > $4) as next from (
     select r.item_key, row_number() over (order by r.item_key) as n from harvest.record r
     where r.endpoint_id = $1 and ${IN_RANGE} order by r.item_key limit $4 + 1) r`,
);

/** How many of the first `limit` records the range has, and the key of the one behind them. */
export async function cutRange(
  tx: Queryable,
  endpointId: number,
  { from, to }: KeyRange,
  limit: number,
): Promise<{ records: number; next: string | null }> {
  const [row] = await tx.rows(CUT, [endpointId, from, to, limit]);
  return { records: Math.min(row?.records ?? 0, limit), next: row?.next ?? null };
}

const KEYS = { slice_no: "int4", from: "text", to: "text" };
const SET_KEYS = statement(
  "harvest.update.set_keys",
  `update harvest.ing_plan_slice s set keys = harvest.key_range(i."from", i."to")
   from (select * from unnest($2::int4[], $3::text[], $4::text[]) as u(slice_no, "from", "to")) i
   where s.plan_id = $1 and s.slice_no = i.slice_no`,
);

/** Of the slices of a plan, by their numbers. */
export async function setKeys(
  tx: Queryable,
  planId: string,
  ranges: readonly (KeyRange & { slice_no: number })[],
): Promise<void> {
  if (ranges.length > 0) await tx.rows(SET_KEYS, [planId, ...toArrays(KEYS, ranges)]);
}

const CLEAR = statement("harvest.update.clear_ids", "delete from harvest.slice_id_item where slice_id = $1");
// Records that came since, and that the same expression read, need no check. Neither does what is deleted, or was not answered lately.
const LIST = statement(
  "harvest.update.list_range",
  `insert into harvest.slice_id_item (slice_id, generation, ord, item_id)
   select $4, $5, row_number() over (order by r.item_key), r.item_key
   from harvest.record r
   join harvest.ing_plan_slice o on o.slice_id = r.slice_id
   join harvest.ing_plan p on p.plan_id = o.plan_id
   where r.endpoint_id = $1 and ${IN_RANGE} and not r.deleted
     and (p.expr_proto_hash <> $6 or coalesce(o.ended_at, now()) <= $7::timestamptz)
     and not exists (select from harvest.bad_id b where b.endpoint_id = $1 and b.item_id = r.item_key and b.expires_at > now())`,
);
const LIST_IDS = statement(
  "harvest.update.list_ids",
  `insert into harvest.slice_id_item (slice_id, generation, ord, item_id)
   select s.slice_id, $2, i.ord, i.id
   from harvest.ing_plan_slice s, jsonb_array_elements_text(s.slice_spec -> 'ids') with ordinality as i(id, ord) where s.slice_id = $1`,
);
const RANGE_OF = statement<KeyRange & { is_range: boolean }>(
  "harvest.update.range_of",
  `select keys is not null as is_range, lower(keys) as from, upper(keys) as to from harvest.ing_plan_slice where slice_id = $1`,
);
const LISTED = statement<{ n: number }>(
  "harvest.update.listed",
  `with counted as (select count(*)::int4 as n from harvest.slice_id_item where slice_id = $1 and generation = $2)
   update harvest.ing_plan_slice s set expected = counted.n from counted
   where s.slice_id = $1 and s.generation = $2 and s.status_code = 'READY' returning counted.n`,
);

export interface Listing {
  sliceId: string;
  generation: number;
  endpointId: number;
  exprProtoHash: string;
  /** Null: time makes no record stale. */
  staleBefore: Date | null;
}

/** Lists the ids that a slice asks for, anew; answers how many. Undefined if the slice is no longer there. */
export async function listUpdates(tx: Queryable, listing: Listing): Promise<number | undefined> {
  const { sliceId, generation, endpointId, exprProtoHash, staleBefore } = listing;
  await tx.rows(CLEAR, [sliceId]);
  const [range] = await tx.rows(RANGE_OF, [sliceId]);
  if (!range) return undefined;
  if (range.is_range) {
    await tx.rows(LIST, [endpointId, range.from, range.to, sliceId, generation, exprProtoHash, staleBefore]);
  } else await tx.rows(LIST_IDS, [sliceId, generation]);
  return (await tx.rows(LISTED, [sliceId, generation]))[0]?.n;
}

// What an earlier plan has checked and this one has checked again is taken from the earlier one, so there are only the plans of one
// round through all ids, however many plans a range has failed in. A slice of quarantined records has no range.
const CHECK = statement(
  "harvest.update.check",
  `with slice as (
     select plan_id, endpoint_id, namespace_key, harvest.key_multirange(keys) as keys from harvest.ing_plan_slice
     where slice_id = $1 and keys is not null
   ), earlier as (
     select c.plan_id, c.keys - s.keys as keys from harvest.checked_keys c join slice s using (endpoint_id, namespace_key)
     where c.plan_id <> s.plan_id and c.keys && s.keys
   ), shortened as (
     update harvest.checked_keys c set keys = e.keys from earlier e where c.plan_id = e.plan_id and not isempty(e.keys)
   ), replaced as (
     delete from harvest.checked_keys c using earlier e where c.plan_id = e.plan_id and isempty(e.keys)
   )
   insert into harvest.checked_keys as c (plan_id, endpoint_id, namespace_key, keys) select * from slice
   on conflict (plan_id) do update set keys = c.keys + excluded.keys`,
);
// The plan that has checked a range last longest ago, if every range was checked.
const CHECKED_SINCE = statement<{ at: Date }>(
  "harvest.update.checked_since",
  `select min(p.planned_at) as at from harvest.checked_keys c join harvest.ing_plan p using (plan_id)
   where c.endpoint_id = $1 and c.namespace_key = $2
     and not exists (select from harvest.ing_plan_slice o where o.plan_id = $3 and o.status_code = 'READY')
   having range_agg(c.keys) @> harvest.key_range(null, null) and min(p.planned_at) > coalesce($4::timestamptz, '-infinity')`,
);

/** The key of the cursor of updates: every record was checked since then. */
const CHECKED_KEY = "refresh_checked_at";

/** The slice has checked its range. Moves the cursor of updates when it is the last of its plan and every range was checked; undefined if it stays. */
export async function advanceChecked(tx: Queryable, advance: Omit<Advance, "cursor_key">): Promise<Date | undefined> {
  const cursor = { ...advance, cursor_key: CHECKED_KEY };
  const present = await lockCursor(tx, cursor);
  await tx.rows(CHECK, [cursor.sliceId]);
  const values = [cursor.endpointId, cursor.namespace_key, cursor.planId, present ?? null];
  const [row] = await tx.rows(CHECKED_SINCE, values);
  return row && moveForward(tx, cursor, present, row.at);
}

export type StoredRecord = Pick<
  IncomingRecord,
  "item_key" | "content_hash" | "source_time" | "provider_version" | "data"
>;
const STORED = statement<StoredRecord>(
  "harvest.update.stored",
  `select r.item_key, r.content_hash, r.source_time, r.provider_version, r.data::text as data
   from (select * from ${unnest({ item_key: "text" }, "u", 2)} order by item_key) i
   cross join lateral (select * from harvest.record r where r.endpoint_id = $1 and r.item_key >= i.item_key and not r.deleted
                       order by r.item_key limit 1) r
   where r.item_key = i.item_key for no key update of r`,
);

/** The records of these ids as they are, locked. */
export function lockStored(tx: Queryable, endpointId: number, keys: readonly string[]) {
  return tx.rows(STORED, [endpointId, keys]);
}
