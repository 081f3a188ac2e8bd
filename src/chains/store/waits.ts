/** SQL for the tables that nodes wait for. */
import { itemsByKey, toArrays, unnest } from "../../kernel/data/batch.ts";
import type { Db, Queryable } from "../../kernel/data/db.ts";
import { statement } from "../../kernel/data/statement.ts";
import type { NodeKey } from "./live.ts";

const WAIT = { run_id: "uuid", node_id: "text", table_name: "text" };
const INSERT = statement(
  "chains.wait.insert",
  `insert into chains.live_wait (run_id, node_id, table_name, op_time)
   select i.run_id, i.node_id, i.table_name, r.op_time
   from ${unnest(WAIT, "i")} join chains.job_run r on r.run_id = i.run_id`,
);

export async function insertWaits(
  tx: Queryable,
  waits: readonly (NodeKey & { tables: readonly string[] })[],
): Promise<void> {
  const rows = waits.flatMap(({ run_id, node_id, tables }) =>
    tables.map((table_name) => ({ run_id, node_id, table_name })),
  );
  await tx.rows(INSERT, toArrays(WAIT, rows));
}

const READ = statement<{ node_id: string; tables: string[] }>(
  "chains.wait.read",
  "select node_id, array_agg(table_name) as tables from chains.live_wait where run_id = $1 group by node_id",
);

export function readWaits(tx: Queryable, runId: string) {
  return tx.rows(READ, [runId]);
}

const ENDED = { run_id: "uuid", node_id: "text" };
const DROP = statement(
  "chains.wait.drop",
  `delete from chains.live_wait w using ${unnest(ENDED, "i")} where w.run_id = i.run_id and w.node_id = i.node_id`,
);

/** For nodes that have ended. */
export async function dropWaits(tx: Queryable, nodes: readonly NodeKey[]): Promise<void> {
  await tx.rows(DROP, toArrays(ENDED, nodes));
}

const HOLD_ARRIVALS = statement(
  "chains.wait.hold_arrivals",
  `select pg_advisory_xact_lock_shared(hashtextextended('chains.wait ' || op_time, 0))
   from (select distinct op_time from unnest($1::text[]) as u(op_time) order by 1 offset 0) t`,
);
const LOCK_ARRIVALS = statement(
  "chains.wait.lock_arrivals",
  `select pg_advisory_xact_lock(hashtextextended('chains.wait ' || op_time, 0))
   from (select distinct op_time from unnest($1::text[]) as u(op_time) order by 1 offset 0) t`,
);

/**
 * Call it before reading which tables have arrived. Without it, a table that arrives between that read and the commit of the
 * wait would find no wait. `findWaiting` takes the exclusive lock, so it runs after that commit.
 */
export async function holdArrivals(tx: Queryable, opTimes: readonly string[]): Promise<void> {
  await tx.rows(HOLD_ARRIVALS, [opTimes]);
}

const ARRIVED = { table_name: "text", op_time: "text" };
const WAITING = statement<NodeKey & { table_name: string }>(
  "chains.wait.find",
  `select w.run_id, w.node_id, w.table_name
   from ${itemsByKey(ARRIVED)} join chains.live_wait w on w.table_name = i.table_name and w.op_time = i.op_time`,
);

export interface ArrivedTable {
  table: string;
  opTime: string;
}

/** The nodes that wait for these tables. Call it when the arrivals are committed. */
export function findWaiting(db: Db, arrivals: readonly ArrivedTable[]) {
  const rows = arrivals.map(({ table, opTime }) => ({ table_name: table, op_time: opTime }));
  return db.tx(async (tx) => {
    await tx.rows(LOCK_ARRIVALS, [arrivals.map(({ opTime }) => opTime)]);
    return tx.rows(WAITING, toArrays(ARRIVED, rows));
  });
}

const AWAITED = statement<{ op_time: string; tables: string[] }>(
  "chains.wait.awaited",
  `select op_time, array_agg(distinct table_name::text) as tables
   from (select op_time, table_name from chains.live_wait limit $1) w group by op_time`,
);

/** The tables that any node waits for, by opTime. */
export function awaitedTables(db: Queryable, limit: number) {
  return db.rows(AWAITED, [limit]);
}

const MET = statement<NodeKey>(
  "chains.wait.met",
  `delete from chains.live_wait w using ${unnest(WAIT, "i")}
   where w.run_id = i.run_id and w.node_id = i.node_id and w.table_name = i.table_name
   returning w.run_id, w.node_id`,
);

/** Deletes satisfied waits, under the run's lock. Returns those that existed, so that no arrival counts twice. */
export function satisfyWaits(tx: Queryable, waits: readonly (NodeKey & { table_name: string })[]): Promise<NodeKey[]> {
  return tx.rows(MET, toArrays(WAIT, waits));
}
