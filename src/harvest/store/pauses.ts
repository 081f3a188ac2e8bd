/** SQL of pauses: what a person holds back, a source, an endpoint or an operation. */
import type { Db, Queryable } from "../../kernel/data/db.ts";
import { statement } from "../../kernel/data/statement.ts";

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
}

const INSERT = statement<{ pause_id: string }>(
  "harvest.pause.insert",
  `insert into harvest.pause (provenance_code, endpoint_name, operation_code, paused_by, reason) values ($1, $2, $3, $4, $5)
   on conflict on constraint pause_scope do nothing returning pause_id::text`,
);

/** False if it is paused already. */
export async function insertPause(
  tx: Queryable,
  { source, endpoint, operation }: PauseScope,
  by: string,
  reason: string | null,
): Promise<boolean> {
  return (await tx.rows(INSERT, [source, endpoint, operation, by, reason])).length === 1;
}

const DELETE = statement<PauseRow>(
  "harvest.pause.delete",
  `delete from harvest.pause
   where provenance_code = $1 and endpoint_name is not distinct from $2 and operation_code is not distinct from $3
   returning provenance_code, endpoint_name, operation_code, paused_at, paused_by, reason`,
);

/** Undefined if it is not paused. */
export async function deletePause(
  tx: Queryable,
  { source, endpoint, operation }: PauseScope,
): Promise<PauseRow | undefined> {
  return (await tx.rows(DELETE, [source, endpoint, operation]))[0];
}

const LIST = statement<PauseRow>(
  "harvest.pause.list",
  `select provenance_code, endpoint_name, operation_code, paused_at, paused_by, reason from harvest.pause
   where $1::text is null or provenance_code = $1
   order by provenance_code, endpoint_name nulls first, operation_code nulls first limit $2`,
);

export function listPauses(db: Pick<Db, "rows">, source: string | undefined, limit: number): Promise<PauseRow[]> {
  return db.rows(LIST, [source ?? null, limit]);
}

const AGES = statement<PauseRow & { is_long: boolean }>(
  "harvest.pause.ages",
  `select provenance_code, endpoint_name, operation_code, paused_at, paused_by, reason,
          paused_at < now() - make_interval(days => $1) as is_long
   from harvest.pause order by paused_at limit 1000`,
);

/** The oldest first, and whether each is older than so many days. */
export function readPauseAges(db: { read: Queryable["rows"] }, days: number) {
  return db.read(AGES, [days]);
}

/** A condition: the source, endpoint and operation, as these SQL expressions, are paused. */
export function isPaused(source: string, endpoint: string, operation: string): string {
  return `exists (select from harvest.pause z where z.provenance_code = ${source}
            and (z.endpoint_name is null or z.endpoint_name = ${endpoint})
            and (z.operation_code is null or z.operation_code = ${operation}))`;
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
