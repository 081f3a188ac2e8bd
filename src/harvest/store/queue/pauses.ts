/** SQL of pauses: what a person holds back, a source, an endpoint or an operation, and endpoints whose access is refused. */
import type { Db, Queryable } from "../../../kernel/data/db.ts";
import { statement } from "../../../kernel/data/statement.ts";

export interface PauseScope {
  source: string;
  /** Null for all. */
  endpoint: string | null;
  operation: string | null;
}

export interface PauseRow {
  provenance_code: string;
  endpoint_name: string | null;
  operation_code: string | null;
  paused_at: Date;
  paused_by: string;
  reason: string | null;
  /** Made by Millrace: access to the endpoint is refused. */
  is_automatic: boolean;
}

const COLUMNS = "provenance_code, endpoint_name, operation_code, paused_at, paused_by, reason, is_automatic";

const INSERT = statement<{ pause_id: string }>(
  "harvest.pause.insert",
  `insert into harvest.pause (provenance_code, endpoint_name, operation_code, paused_by, reason) values ($1, $2, $3, $4, $5)
   on conflict on constraint pause_scope do update
     set paused_by = excluded.paused_by, reason = excluded.reason, paused_at = now(), is_automatic = false
     where pause.is_automatic
   returning pause_id::text`,
);

/** A pause by a person, in the place of one that Millrace made. False if a person has paused it already. */
export async function insertPause(
  tx: Queryable,
  { source, endpoint, operation }: PauseScope,
  by: string,
  reason: string | null,
): Promise<boolean> {
  return (await tx.rows(INSERT, [source, endpoint, operation, by, reason])).length === 1;
}

// The lock lets an apply wait until the pause that it lifts is there, or this statement until it sees the new definition.
const INSERT_AUTOMATIC = statement<{ is_current: boolean; is_new: boolean }>(
  "harvest.pause.insert_automatic",
  `with current as materialized (
     select from harvest.ing_plan p join harvest.reg_provenance s using (provenance_code)
     where p.plan_id = $5 and s.updated_at <= p.created_at for share of s
   ),
   inserted as (
     insert into harvest.pause (provenance_code, endpoint_name, paused_by, reason, is_automatic)
     select $1, $2, $3, $4, true from current
     on conflict on constraint pause_scope do nothing returning pause_id
   )
   select exists (select from current) as is_current, exists (select from inserted) as is_new`,
);

/** `outdated`: the definition has changed since the plan was made, and nothing is paused. */
export async function insertAutomaticPause(
  tx: Queryable,
  { source, endpoint, planId }: { source: string; endpoint: string; planId: string },
  by: string,
  reason: string,
): Promise<"new" | "present" | "outdated"> {
  const [row] = await tx.rows(INSERT_AUTOMATIC, [source, endpoint, by, reason, planId]);
  if (!row?.is_current) return "outdated";
  return row.is_new ? "new" : "present";
}

// In the order of keys, so that two of these statements do not deadlock.
const SET_REFUSED = statement<{ partition_key: string }>(
  "harvest.partition.set_refused",
  `update harvest.ing_partition p set is_refused = $3
   from (select partition_key from harvest.ing_partition
         where starts_with(partition_key, $1 || '/' || $2 || '/') and is_refused <> $3
         order by 1 for update) l
   where p.partition_key = l.partition_key returning p.partition_key`,
);

/** Whether the source refuses access to the endpoint, as far as its last answer says. Answers whether that is news. */
export async function setRefused(
  tx: Queryable,
  { source, endpoint }: { source: string; endpoint: string },
  refused: boolean,
): Promise<boolean> {
  return (await tx.rows(SET_REFUSED, [source, endpoint, refused])).length > 0;
}

/** How many tasks of a partition run at once: while its source refuses access, one asks whether it still does. */
export function concurrencyNow(partition: string): string {
  return `case when ${partition}.is_refused then 1 else ${partition}.concurrency end`;
}

const DELETE = statement<PauseRow>(
  "harvest.pause.delete",
  `delete from harvest.pause
   where provenance_code = $1 and endpoint_name is not distinct from $2 and operation_code is not distinct from $3
   returning ${COLUMNS}`,
);

/** Undefined if it is not paused. */
export async function deletePause(
  tx: Queryable,
  { source, endpoint, operation }: PauseScope,
): Promise<PauseRow | undefined> {
  return (await tx.rows(DELETE, [source, endpoint, operation]))[0];
}

const DELETE_AUTOMATIC = statement<PauseRow>(
  "harvest.pause.delete_automatic",
  `delete from harvest.pause where provenance_code = $1 and is_automatic returning ${COLUMNS}`,
);

/** Those that Millrace made. */
export function deleteAutomatic(tx: Queryable, source: string): Promise<PauseRow[]> {
  return tx.rows(DELETE_AUTOMATIC, [source]);
}

const LIST = statement<PauseRow>(
  "harvest.pause.list",
  `select ${COLUMNS} from harvest.pause
   where $1::text is null or provenance_code = $1
   order by provenance_code, endpoint_name nulls first, operation_code nulls first limit $2`,
);

export function listPauses(db: Pick<Db, "rows">, source: string | undefined, limit: number): Promise<PauseRow[]> {
  return db.rows(LIST, [source ?? null, limit]);
}

const AUTOMATIC = statement<PauseRow & { endpoint_name: string }>(
  "harvest.pause.automatic",
  `select ${COLUMNS} from harvest.pause where is_automatic order by paused_at desc limit $1`,
);

/** Endpoints whose access is refused, the newest first. */
export function automaticPauses(db: { read: Queryable["rows"] }, limit: number) {
  return db.read(AUTOMATIC, [limit]);
}

const AGES = statement<PauseRow & { is_long: boolean }>(
  "harvest.pause.ages",
  `select ${COLUMNS}, paused_at < now() - make_interval(days => $1) as is_long
   from harvest.pause order by paused_at limit 1000`,
);

/** The oldest first, and whether each is older than so many days. */
export function readPauseAges(db: { read: Queryable["rows"] }, days: number) {
  return db.read(AGES, [days]);
}

function holding(source: string, endpoint: string, operation: string): string {
  return `from harvest.pause z where z.provenance_code = ${source}
            and (z.endpoint_name is null or z.endpoint_name = ${endpoint})
            and (z.operation_code is null or z.operation_code = ${operation})`;
}

/** A condition: the source, endpoint and operation, as these SQL expressions, are paused. */
export function isPaused(source: string, endpoint: string, operation: string): string {
  return `exists (select ${holding(source, endpoint, operation)})`;
}

/** The same where only Millrace has paused it. Null where nothing is paused. */
export function isRefused(source: string, endpoint: string, operation: string): string {
  return `(select bool_and(z.is_automatic) ${holding(source, endpoint, operation)})`;
}

const partOf = (key: string, number: number) => `split_part(${key}, '/', ${number})`;

/** The same for the key of a partition. */
export function isPartitionPaused(key: string): string {
  return isPaused(partOf(key, 1), partOf(key, 2), partOf(key, 3));
}

/** Why tasks of a partition do not start; null if they may. */
export function pauseReasonOf(key: string): string {
  return `harvest.pause_reason(${partOf(key, 1)}, ${partOf(key, 2)}, ${partOf(key, 3)})`;
}
