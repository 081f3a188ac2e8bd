/** SQL for the log of arrivals. */
import { itemsByKey, toArrays } from "../../kernel/data/batch.ts";
import type { Db, Queryable } from "../../kernel/data/db.ts";
import { statement } from "../../kernel/data/statement.ts";

/** Totals of lists are counted up to this limit, because history is long and counting it all is slow. */
export const COUNTED_MAX = 10_000;

export interface ArrivalKey {
  table_name: string;
  op_time: string;
}
const KEY = { table_name: "text", op_time: "text" };
const NEW_VALUES = { idempotency_key: "text", announced_by: "text" };
const NEW = { ...KEY, ...NEW_VALUES };

export interface ArrivalRow extends ArrivalKey {
  sequence: string;
  arrival_time: Date;
  /** False for the repeat of a request. */
  fresh: boolean;
}

// A repeated key leaves the row as it is, so a caller that got no answer can repeat the request. The sequence is drawn when
// the row is locked: `excluded` has an earlier one, so of two concurrent arrivals the later could get the smaller.
// One that was retracted arrives anew, whatever its key.
const IS_REPEAT = "t.idempotency_key = excluded.idempotency_key and t.retracted_at is null";
const RECORD = statement<ArrivalRow>(
  "arrivals.record",
  `insert into arrivals.metrics_etl_log as t (table_name, op_time, idempotency_key, announced_by)
   select i.table_name, i.op_time, i.idempotency_key, i.announced_by from ${itemsByKey(KEY, NEW_VALUES)}
   on conflict (table_name, op_time) do update
   set arrival_time = case when ${IS_REPEAT} then t.arrival_time else now() end,
       sequence = case when ${IS_REPEAT} then t.sequence else nextval('arrivals.arrival_sequence') end,
       arrivals = case when ${IS_REPEAT} then t.arrivals else t.arrivals + 1 end,
       announced_by = case when ${IS_REPEAT} then t.announced_by else excluded.announced_by end,
       idempotency_key = excluded.idempotency_key, retracted_at = null, retracted_by = null
   returning table_name, op_time, sequence::text as sequence, arrival_time,
             arrival_time = now() as fresh`,
);

/** In key order, so that two batches cannot deadlock. No key may occur twice. */
export function recordArrivals(
  tx: Queryable,
  arrivals: readonly (ArrivalKey & { idempotency_key: string | null; announced_by: string | null })[],
): Promise<ArrivalRow[]> {
  return tx.rows(RECORD, toArrays(NEW, arrivals));
}

const FIND = statement<ArrivalKey & { sequence: string; arrival_time: Date; announced_by: string | null }>(
  "arrivals.find",
  `select t.table_name, t.op_time, t.sequence::text as sequence, t.arrival_time, t.announced_by
   from ${itemsByKey(KEY)} join arrivals.metrics_etl_log t on t.table_name = i.table_name and t.op_time = i.op_time
   where t.retracted_at is null`,
);

export function findArrivals(db: Queryable, keys: readonly ArrivalKey[]) {
  return db.rows(FIND, toArrays(KEY, keys));
}

export interface ArrivalListed extends ArrivalKey {
  arrival_time: Date;
  first_time: Date;
  arrivals: number;
  sequence: string;
  announced_by: string | null;
  retracted_at: Date | null;
  retracted_by: string | null;
}
const LISTED = "($1::text is null or table_name = $1) and ($2::text is null or op_time = $2)";
const LIST = statement<ArrivalListed>(
  "arrivals.list",
  `select table_name, op_time, arrival_time, first_time, arrivals, sequence::text as sequence, announced_by,
          retracted_at, retracted_by
   from arrivals.metrics_etl_log where ${LISTED} order by metrics_etl_log.sequence desc limit $3 offset $4`,
);
const COUNT = statement<{ total: number }>(
  "arrivals.count",
  `select count(*)::int as total from (
     select from arrivals.metrics_etl_log where ${LISTED} limit ${COUNTED_MAX}
   ) t`,
);

export interface ListArrivals {
  table: string | null;
  opTime: string | null;
  size: number;
  page: number;
}

/** The newest first. */
export async function listArrivals(db: Db, { table, opTime, size, page }: ListArrivals) {
  const [items, [counted]] = await Promise.all([
    db.read(LIST, [table, opTime, size, (page - 1) * size]),
    db.read(COUNT, [table, opTime]),
  ]);
  return { items, total: counted?.total ?? 0 };
}

const OP_TIMES = statement<{ op_time: string }>(
  "arrivals.op_times",
  `with recursive t(op_time) as (
     (select op_time from arrivals.metrics_etl_log where op_time >= $1 and op_time <= $2 order by op_time limit 1)
     union all
     select (select op_time from arrivals.metrics_etl_log where op_time > t.op_time and op_time <= $2 order by op_time limit 1)
     from t where t.op_time is not null
   )
   select op_time from t where op_time is not null limit $3`,
);
// A statement of its own: no text comes after all others in every collation.
const OP_TIMES_FROM = statement<{ op_time: string }>(
  "arrivals.op_times_from",
  `with recursive t(op_time) as (
     (select op_time from arrivals.metrics_etl_log where op_time >= $1 order by op_time limit 1)
     union all
     select (select op_time from arrivals.metrics_etl_log where op_time > t.op_time order by op_time limit 1)
     from t where t.op_time is not null
   )
   select op_time from t where op_time is not null limit $2`,
);

/** The opTimes in a range, which may be open, for which anything has arrived, in text order. */
export async function arrivedOpTimes(db: Db, from: string, to: string | null, limit: number): Promise<string[]> {
  const rows = to === null ? db.read(OP_TIMES_FROM, [from, limit]) : db.read(OP_TIMES, [from, to, limit]);
  return (await rows).map(({ op_time }) => op_time);
}

const RETRACT = statement<ArrivalKey>(
  "arrivals.retract",
  `update arrivals.metrics_etl_log set retracted_at = now(), retracted_by = $3
   where table_name = $1 and op_time = $2 and retracted_at is null returning table_name, op_time`,
);

/** False if it has not arrived, or was retracted before. */
export async function retractArrival(tx: Queryable, table: string, opTime: string, by: string): Promise<boolean> {
  return (await tx.rows(RETRACT, [table, opTime, by])).length > 0;
}

export interface Retracted extends ArrivalKey {
  retracted_at: Date;
  retracted_by: string;
}
const RETRACTED = statement<Retracted>(
  "arrivals.retracted",
  `select t.table_name, t.op_time, t.retracted_at, t.retracted_by
   from ${itemsByKey(KEY)} join arrivals.metrics_etl_log t on t.table_name = i.table_name and t.op_time = i.op_time
   where t.retracted_at is not null`,
);

export function findRetracted(db: Queryable, keys: readonly ArrivalKey[]): Promise<Retracted[]> {
  return db.rows(RETRACTED, toArrays(KEY, keys));
}
