/**
 * SQL for the records of a page. New keys cost one statement; a second one compares and changes those that are already there.
 *
 * The texts of records go as one parameter, separated by a character that JSON always escapes: an array literal would have to
 * escape every quote of every record.
 */
import { itemsByKey, toArrays } from "../../../kernel/data/batch.ts";
import type { Queryable } from "../../../kernel/data/db.ts";
import { statement } from "../../../kernel/data/statement.ts";

/** A record as it came. No two of one call have the same key. */
export interface IncomingRecord {
  item_key: string;
  /** 32 hexadecimal digits. */
  content_hash: string;
  source_time: Date | null;
  provider_version: string | null;
  deleted: boolean;
  /** JSON text. */
  data: string;
}

/** The batch that brings them. */
export interface RecordOrigin {
  endpointId: number;
  planMonth: string;
  sliceId: string;
  generation: number;
  batchNo: number;
  /** When it was asked for, by the database's clock. Unset: now. */
  fetchedAt?: Date | undefined;
}

export interface RecordCounts {
  inserted: number;
  updated: number;
  unchanged: number;
  /** Records that the source deleted, new or known before. They are neither inserted nor updated. */
  deleted: number;
}

const SEPARATOR = "\u001e";
const COLUMNS = {
  item_key: "text",
  content_hash: "uuid",
  source_time: "timestamptz",
  provider_version: "text",
  deleted: "bool",
};
const NAMES = Object.keys(COLUMNS).join(", ");
const ORIGIN = "endpoint_id, plan_month, slice_id, generation, batch_no";
const FIRST = 6;
const ARRAYS = Object.values(COLUMNS).map((type, index) => `$${FIRST + index}::${type}[]`);
// In key order, so that two pages with common keys wait for each other instead of deadlocking.
const INCOMING = `(select * from unnest(${ARRAYS.join(", ")}, string_to_array($${FIRST + ARRAYS.length}, e'\\x1e'))
     as u(${NAMES}, data) order by item_key) i`;

const INSERT = statement<{ item_key: string; deleted: boolean }>(
  "harvest.record.insert",
  `insert into harvest.record (${ORIGIN}, ${NAMES}, data)
   select $1::int4, $2::date, $3::int8, $4::int4, $5::int4, ${NAMES}, data::json from ${INCOMING}
   on conflict do nothing returning item_key, deleted`,
);
// 1 if what came is the newer version of the source, -1 if the older one, else 0. As `compareVersions` within a page.
const isOrdered = (version: string) => `${version} ~ '^v?[0-9]{1,18}$'`;
const VERSIONS = `case when ${isOrdered("i.provider_version")} and ${isOrdered("r.provider_version")}
                then sign(ltrim(i.provider_version, 'v')::int8 - ltrim(r.provider_version, 'v')::int8)::int4 else 0 end`;
/**
 * A record changes unless its content is the same or the source says that it is older, by its time or else by its version. With the
 * same of both and another content, what was asked for later is the newer one: many sources have times of whole days, and an answer
 * may wait for its commit while another operation asks again. `i` is what came, `r` what is there.
 */
const changes = (
  fetchedAt: string,
  versions = "0",
) => `(i.content_hash, i.deleted) is distinct from (r.content_hash, r.deleted)
       and not coalesce(i.source_time < r.source_time, false)
       and case when i.source_time > r.source_time then true else case ${versions} when 1 then true when -1 then false
         else coalesce((
           select b.fetched_at from harvest.ing_task_run_batch b
           where b.plan_month = r.plan_month and b.slice_id = r.slice_id and b.generation = r.generation and b.batch_no = r.batch_no
         ), '-infinity') <= coalesce(${fetchedAt}::timestamptz, now()) end end`;
const COMPARED_COLUMNS = "r.content_hash, r.deleted, r.source_time, r.plan_month, r.slice_id, r.generation, r.batch_no";
const WITH_VERSION = `${COMPARED_COLUMNS}, r.provider_version`;
/**
 * The row of a key. An order that only the primary key has, because any index costs the same while the table is small, and the plan
 * is kept although it grows: by the index of changes, each lookup would read all records of the endpoint.
 */
const presentRow = (columns: string, lock = "") =>
  `cross join lateral (
       select r.item_key as present_key, ${columns} from harvest.record r
       where r.endpoint_id = $1::int4 and r.item_key >= i.item_key order by r.item_key limit 1 ${lock}
     ) r`;
const IS_PRESENT = "r.present_key = i.item_key";
// Without a lock, so that what has not changed, which is most of what comes again, is not written to.
const COMPARED = { item_key: "text", content_hash: "uuid", source_time: "timestamptz", deleted: "bool" };
const COMPARE = statement<{ item_key: string }>(
  "harvest.record.compare",
  `select i.item_key from ${itemsByKey(COMPARED, {}, 2)}
   ${presentRow(COMPARED_COLUMNS)} where ${IS_PRESENT} and ${changes("$6")}`,
);
// Apart, because most sources have no versions, and this is the statement for each page that comes again.
const COMPARED_VERSIONS = { ...COMPARED, provider_version: "text" };
const COMPARE_VERSIONS = statement<{ item_key: string }>(
  "harvest.record.compare_versions",
  `select i.item_key from ${itemsByKey(COMPARED_VERSIONS, {}, 2)}
   ${presentRow(WITH_VERSION)} where ${IS_PRESENT} and ${changes("$7", VERSIONS)}`,
);
const LOCK = statement(
  "harvest.record.lock",
  `select from ${itemsByKey({ item_key: "text" }, {}, 2)} ${presentRow("r.version", "for no key update")}`,
);
// Under the lock, with a snapshot of its own, so the rows are those that were locked.
const changeWhere = (condition: string) =>
  `with changed as materialized (
       select i.*, r.place from ${INCOMING} ${presentRow(`${WITH_VERSION}, r.ctid as place`)}
       where ${IS_PRESENT} and ${condition}
     ),
     kept as (
       insert into harvest.record_version (${ORIGIN}, version, change_xid, ${NAMES}, data)
       select ${prefixed(`${ORIGIN}, version, change_xid, ${NAMES}, data`)}
       from changed c join harvest.record r on r.ctid = c.place
     ),
     written as (
       update harvest.record r
       set version = r.version + 1, content_hash = c.content_hash, source_time = c.source_time,
           provider_version = c.provider_version, deleted = c.deleted, data = c.data::json,
           change_xid = pg_current_xact_id(),
           plan_month = $2::date, slice_id = $3::int8, generation = $4::int4, batch_no = $5::int4
       from changed c where r.ctid = c.place
       returning r.deleted
     )
   select count(*)::int4 as updated, count(*) filter (where deleted)::int4 as deleted from written`;
const CHANGE = statement<{ updated: number; deleted: number }>(
  "harvest.record.change",
  changeWhere(changes(`$${FIRST + ARRAYS.length + 1}`, VERSIONS)),
);
const FILL = statement<{ updated: number }>("harvest.record.fill", changeWhere("true"));

function prefixed(columns: string): string {
  return columns
    .split(", ")
    .map((name) => `r.${name}`)
    .join(", ");
}

function valuesOf(origin: RecordOrigin, some: readonly IncomingRecord[]) {
  const { endpointId, planMonth, sliceId, generation, batchNo } = origin;
  return [
    endpointId,
    planMonth,
    sliceId,
    generation,
    batchNo,
    ...toArrays(COLUMNS, some),
    some.map(({ data }) => data).join(SEPARATOR),
  ];
}

/** Writes versions of records that are known and locked, whatever their content. */
export async function fillRecords(
  tx: Queryable,
  origin: RecordOrigin,
  records: readonly IncomingRecord[],
): Promise<RecordCounts> {
  const [counts] = records.length === 0 ? [] : await tx.rows(FILL, valuesOf(origin, records));
  return { inserted: 0, updated: counts?.updated ?? 0, unchanged: 0, deleted: 0 };
}

/** Inserts new records and changes those whose content is new. */
export async function putRecords(
  tx: Queryable,
  origin: RecordOrigin,
  records: readonly IncomingRecord[],
): Promise<RecordCounts> {
  if (records.length === 0) return { inserted: 0, updated: 0, unchanged: 0, deleted: 0 };
  const { endpointId, fetchedAt = null } = origin;
  const inserted = await tx.rows(INSERT, valuesOf(origin, records));
  const deleted = inserted.reduce((sum, row) => sum + Number(row.deleted), 0);
  const live = inserted.length - deleted;
  if (inserted.length === records.length) return { inserted: live, updated: 0, unchanged: 0, deleted };
  const isNew = new Set(inserted.map(({ item_key }) => item_key));
  const known = records.filter(({ item_key }) => !isNew.has(item_key));
  const hasVersions = known.some(({ provider_version }) => provider_version !== null);
  const [compare, columns] = hasVersions ? [COMPARE_VERSIONS, COMPARED_VERSIONS] : [COMPARE, COMPARED];
  const differing = await tx.rows(compare, [endpointId, ...toArrays(columns, known), fetchedAt]);
  const keys = new Set(differing.map(({ item_key }) => item_key));
  const change = keys.size === 0 ? undefined : await changeRecords(known.filter(({ item_key }) => keys.has(item_key)));
  const { updated = 0, deleted: gone = 0 } = change ?? {};
  return { inserted: live, updated: updated - gone, unchanged: known.length - updated, deleted: deleted + gone };

  async function changeRecords(some: readonly IncomingRecord[]) {
    const [, [counts]] = await Promise.all([
      tx.rows(LOCK, [endpointId, some.map(({ item_key }) => item_key)]),
      tx.rows(CHANGE, [...valuesOf(origin, some), fetchedAt]),
    ]);
    return counts;
  }
}
