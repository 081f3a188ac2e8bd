/** SQL for what becomes due. One look tells whether there is anything to do at all, so an idle system asks one question. */
import type { Db, Queryable } from "../../kernel/data/db.ts";
import { statement } from "../../kernel/data/statement.ts";
import type { NodeKey } from "./live.ts";

export interface Look {
  now_ms: number;
  pending: boolean;
  ready: boolean;
  ready_in_pool: boolean;
  lost: boolean;
  ended_children: boolean;
  forsaken_children: boolean;
  /** Somebody waits for a table. */
  waits: boolean;
  /** Of delayed nodes, and of nodes that wait for a run. */
  next_due_ms: number | null;
  next_deadline_ms: number | null;
  next_grace_ms: number | null;
  next_fire_ms: number | null;
}

/** Looked up run by run: a join whose plan was made on a young database could walk through all of history. */
const CHILD_STATUS = "(select r.status from chains.job_run r where r.run_id = n.child_run_id)";
const inMs = (time: string) => `extract(epoch from ${time} - now()) * 1000`;

/**
 * Runs that were started for a node which no longer waits for them: it was completed, given up or has taken too long, or its
 * own run is being stopped. A node that is leased may be about to wait for the run of its last attempt.
 */
const FORSAKEN = `select c.run_id from chains.job_run c
   where c.parent_run_id is not null and c.status in ('PENDING', 'RUNNING') and not exists (
     select from chains.live_node n
     where n.run_id = c.parent_run_id and n.node_id = c.parent_node_id and (n.state = 'leased' or n.child_run_id = c.run_id)
       and (select l.status from chains.live_run l where l.run_id = n.run_id) = 'RUNNING'
   )`;

const LOOK = statement<Look>(
  "chains.timers.look",
  `select extract(epoch from now()) * 1000 as now_ms,
          exists (select from chains.job_run where status = 'PENDING') as pending,
          exists (select from chains.live_node where state = 'ready' and pool is null) as ready,
          exists (select from chains.live_node where state = 'ready' and pool is not null) as ready_in_pool,
          exists (select from chains.live_node n where n.state = 'leased' and not exists (
            select from kernel.session s where s.id = n.session_id and s.expires_at > now())) as lost,
          exists (select from chains.live_node n where n.state = 'parked' and ${CHILD_STATUS} in ('SUCCESS', 'FAILED', 'STOPPED'))
            as ended_children,
          exists (${FORSAKEN}) as forsaken_children,
          exists (select from chains.live_wait) as waits,
          (select ${inMs("min(due_at)")} from chains.live_node where due_at is not null)::float8 as next_due_ms,
          (select ${inMs("min(deadline_at)")} from chains.live_run where deadline_at is not null and status = 'RUNNING')::float8
            as next_deadline_ms,
          (select ${inMs("min(grace_at)")} from chains.live_run where grace_at is not null)::float8 as next_grace_ms,
          (select ${inMs("min(next_at)")} from chains.schedule where not paused and next_at is not null)::float8 as next_fire_ms`,
);

export async function look(db: Db): Promise<Look> {
  const [row] = await db.rows(LOOK);
  if (!row) throw new Error("the look at the timers came back empty");
  return row;
}

// A delayed node changes into work without a change of its status, so it needs no transition and no lock of its run.
const RIPEN = statement<{ pool: string | null }>(
  "chains.timers.ripen",
  `with due as materialized (
     select run_id, node_id from chains.live_node where state = 'delayed' and due_at <= now()
     order by due_at limit $1 for update skip locked
   )
   update chains.live_node t set state = 'ready', due_at = null
   from due where t.run_id = due.run_id and t.node_id = due.node_id returning t.pool`,
);

/** Makes delayed nodes whose time has come ready; answers their pools. */
export function ripen(db: Queryable, limit: number): Promise<{ pool: string | null }[]> {
  return db.rows(RIPEN, [limit]);
}

const OVERDUE = statement<{ run_id: string; timeout_ms: number }>(
  "chains.timers.overdue",
  `select l.run_id, (select r.run_timeout_ms from chains.job_run r where r.run_id = l.run_id)::float8 as timeout_ms
   from chains.live_run l
   where l.deadline_at <= now() and l.status = 'RUNNING' order by l.deadline_at limit $1`,
);

/** Runs that have taken longer than they may. */
export function overdueRuns(db: Queryable, limit: number) {
  return db.rows(OVERDUE, [limit]);
}

const OUT_OF_GRACE = statement<{ run_id: string }>(
  "chains.timers.out_of_grace",
  "select run_id from chains.live_run where grace_at <= now() order by grace_at limit $1",
);

export async function runsOutOfGrace(db: Queryable, limit: number): Promise<string[]> {
  return (await db.rows(OUT_OF_GRACE, [limit])).map(({ run_id }) => run_id);
}

const ENDED_CHILDREN = statement<{ child_run_id: string }>(
  "chains.timers.ended_children",
  `select n.child_run_id from chains.live_node n
   where n.state = 'parked' and ${CHILD_STATUS} in ('SUCCESS', 'FAILED', 'STOPPED') limit $1`,
);

/** Runs that have ended without the node that waits for them having been told. */
export async function endedChildren(db: Queryable, limit: number): Promise<string[]> {
  return (await db.rows(ENDED_CHILDREN, [limit])).map(({ child_run_id }) => child_run_id);
}

const FORSAKEN_CHILDREN = statement<{ run_id: string }>("chains.timers.forsaken_children", `${FORSAKEN} limit $1`);

/** Runs that go on although nothing waits for them any more. */
export async function forsakenChildren(db: Queryable, limit: number): Promise<string[]> {
  return (await db.rows(FORSAKEN_CHILDREN, [limit])).map(({ run_id }) => run_id);
}

const OVERDUE_CHILDREN = statement<NodeKey & { child_run_id: string }>(
  "chains.timers.overdue_children",
  `select run_id, node_id, child_run_id from chains.live_node
   where state = 'parked' and due_at <= now() order by due_at limit $1`,
);

/** Nodes whose run has taken longer than they may. */
export function overdueChildren(db: Queryable, limit: number) {
  return db.rows(OVERDUE_CHILDREN, [limit]);
}
