/**
 * SQL for nodes that are parked for something that is not a run of a chain, such as the run of a model. Its id is stored where
 * a child run's id would be.
 */
import { toArrays, unnest } from "../../kernel/data/batch.ts";
import type { Queryable } from "../../kernel/data/db.ts";
import { statement } from "../../kernel/data/statement.ts";
import type { NodeKey } from "./live.ts";

export type NodeWaitKey = NodeKey & { wait_id: string };
/** `key` is the idempotency key of the attempt that waits. */
export type NodeWait = NodeWaitKey & { key: string };
const WAIT = { run_id: "uuid", node_id: "text", wait_id: "uuid", key: "text" };

// The key is made as in worker/execute.ts.
const STILL_WAITING = statement<{ wait_id: string }>(
  "chains.node_wait.still",
  `select i.wait_id from ${unnest(WAIT, "i")}
   join chains.live_node n on n.run_id = i.run_id and n.node_id = i.node_id
   join chains.live_run r on r.run_id = i.run_id
   where r.status = 'RUNNING' and (n.child_run_id = i.wait_id
     or (n.state <> 'parked' and i.key = n.run_id || '/' || n.node_id || '/' || (n.attempt - n.returned)))`,
);

/**
 * The waits whose node is parked for them, or runs the attempt that began them and may be about to park. If the worker of that
 * attempt is lost, the node is ready, and the next attempt has the same key and parks for the same wait.
 */
export async function stillWaiting(db: Queryable, waits: readonly NodeWait[]): Promise<Set<string>> {
  const rows = waits.length > 0 ? await db.rows(STILL_WAITING, toArrays(WAIT, waits)) : [];
  return new Set(rows.map(({ wait_id }) => wait_id));
}

const OPEN_NODES = statement<{ wait_id: string }>(
  "chains.node_wait.open_nodes",
  `select i.wait_id from ${unnest(WAIT, "i")}
   join chains.live_node n on n.run_id = i.run_id and n.node_id = i.node_id
   join chains.live_run r on r.run_id = i.run_id where r.status = 'RUNNING'`,
);

/** The waits whose node has not ended: it waits, or a later attempt of it may wait again. */
export async function openNodes(db: Queryable, waits: readonly NodeWait[]): Promise<Set<string>> {
  const rows = waits.length > 0 ? await db.rows(OPEN_NODES, toArrays(WAIT, waits)) : [];
  return new Set(rows.map(({ wait_id }) => wait_id));
}

/**
 * A run that is STOPPING has a `grace_at`, and only such a run. Lookups per row: a join whose plan was cached on a small
 * database could scan all of history.
 */
export const STOPPED_WAITS = `select n.run_id, n.node_id, n.child_run_id as wait_id
   from chains.live_run r, lateral (
     select * from chains.live_node l where l.run_id = r.run_id and l.state = 'parked' offset 0
   ) n
   where r.grace_at is not null and (select c.status from chains.job_run c where c.run_id = n.child_run_id) is null`;

const STOPPED = statement<NodeWaitKey>("chains.node_wait.stopped", `${STOPPED_WAITS} limit $1`);

/** Waits of nodes whose run is STOPPING. What they wait for is not stopped. */
export function stoppedWaits(db: Queryable, limit: number): Promise<NodeWaitKey[]> {
  return db.rows(STOPPED, [limit]);
}

const ROOT = statement<{ run_id: string }>(
  "chains.node_wait.root",
  `with recursive above(run_id, parent_run_id) as (
     select run_id, parent_run_id from chains.job_run where run_id = $1
     union all
     select p.run_id, p.parent_run_id from above a join chains.job_run p on p.run_id = a.parent_run_id
   )
   select run_id from above where parent_run_id is null`,
);

/** The run that this run and its ancestors were started for; itself if it is no child run. */
export async function rootOf(db: Queryable, runId: string): Promise<string | undefined> {
  return (await db.rows(ROOT, [runId]))[0]?.run_id;
}
