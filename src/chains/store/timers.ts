/** SQL for what becomes due. One statement says whether anything is due at all, so an idle process sends only that one. */
import type { Db, Queryable } from "../../kernel/data/db.ts";
import { statement } from "../../kernel/data/statement.ts";
import type { NodeKey } from "./live.ts";
import { STOPPED_WAITS } from "./node-waits.ts";

export interface DueWork {
  now_ms: number;
  pending: boolean;
  ready: boolean;
  ready_in_pool: boolean;
  lost: boolean;
  ended_children: boolean;
  orphaned_children: boolean;
  /** A node of a run that is STOPPING is parked for something else than a run. */
  stopped_waits: boolean;
  /** A node waits for a table. */
  waits: boolean;
  /** Of delayed nodes, and of parked nodes with a time-out. */
  next_due_ms: number | null;
  next_deadline_ms: number | null;
  next_grace_ms: number | null;
  next_fire_ms: number | null;
}

/** A lookup per row: a join whose plan was cached on a small database could scan all of history. */
const CHILD_STATUS = "(select r.status from chains.job_run r where r.run_id = n.child_run_id)";
const inMs = (time: string) => `extract(epoch from ${time} - now()) * 1000`;

/**
 * Child runs whose node no longer waits for them: it was completed, has ended or timed out, or its own run is STOPPING. A
 * leased node does not count as gone: it may be about to park for the child run of its previous attempt.
 */
const AWAITED = `exists (
     select from chains.live_node n
     where n.run_id = c.parent_run_id and n.node_id = c.parent_node_id and (n.state = 'leased' or n.child_run_id = c.run_id)
       and (select l.status from chains.live_run l where l.run_id = n.run_id) = 'RUNNING'
   )`;
const ORPHANED = `select c.run_id from chains.job_run c
   where c.parent_run_id is not null and c.status in ('PENDING', 'RUNNING') and not ${AWAITED}`;
/** Also for nodes that are blocked by it. */
const HAS_ENDED_CHILD = `n.child_run_id is not null and ${CHILD_STATUS} in ('SUCCESS', 'FAILED', 'STOPPED')`;

const LOOK = statement<DueWork>(
  "chains.timers.look",
  `select extract(epoch from now()) * 1000 as now_ms,
          exists (select from chains.job_run where status = 'PENDING') as pending,
          exists (select from chains.live_node where state = 'ready' and pool is null) as ready,
          exists (select from chains.live_node where state = 'ready' and pool is not null) as ready_in_pool,
          exists (select from chains.live_node n where n.state = 'leased' and not exists (
            select from kernel.session s where s.id = n.session_id and s.expires_at > now())) as lost,
          exists (select from chains.live_node n where ${HAS_ENDED_CHILD}) as ended_children,
          exists (${ORPHANED}) as orphaned_children,
          exists (${STOPPED_WAITS}) as stopped_waits,
          exists (select from chains.live_wait) as waits,
          (select ${inMs("min(due_at)")} from chains.live_node where due_at is not null)::float8 as next_due_ms,
          (select ${inMs("min(deadline_at)")} from chains.live_run where deadline_at is not null and status = 'RUNNING')::float8
            as next_deadline_ms,
          (select ${inMs("min(grace_at)")} from chains.live_run where grace_at is not null)::float8 as next_grace_ms,
          least(
            (select ${inMs("min(next_at)")} from chains.schedule
             where not paused and next_at is not null and retry_at is null),
            (select ${inMs("min(retry_at)")} from chains.schedule
             where not paused and next_at is not null and retry_at is not null))::float8 as next_fire_ms`,
);

export async function readDueWork(db: Db): Promise<DueWork> {
  const [row] = await db.rows(LOOK);
  if (!row) throw new Error("the statement for due work returned no row");
  return row;
}

// A delayed node becomes ready without a change of its status, so this needs no transition and no lock on the run.
const RELEASE_DELAYED = statement<{ pool: string | null }>(
  "chains.timers.release_delayed",
  `with due as materialized (
     select run_id, node_id from chains.live_node where state = 'delayed' and due_at <= now()
     order by due_at limit $1 for update skip locked
   )
   update chains.live_node t set state = 'ready', due_at = null
   from due where t.run_id = due.run_id and t.node_id = due.node_id returning t.pool`,
);

/** Makes delayed nodes that are due ready; returns their pools. */
export function releaseDelayed(db: Queryable, limit: number): Promise<{ pool: string | null }[]> {
  return db.rows(RELEASE_DELAYED, [limit]);
}

const OVERDUE = statement<{ run_id: string; timeout_ms: number }>(
  "chains.timers.overdue",
  `select l.run_id, (select r.run_timeout_ms from chains.job_run r where r.run_id = l.run_id)::float8 as timeout_ms
   from chains.live_run l
   where l.deadline_at <= now() and l.status = 'RUNNING' order by l.deadline_at limit $1`,
);

/** Runs that have reached their deadline. */
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
  `select n.child_run_id from chains.live_node n where ${HAS_ENDED_CHILD} limit $1`,
);

/** Child runs that have ended while their node still waits for them. */
export async function endedChildren(db: Queryable, limit: number): Promise<string[]> {
  return (await db.rows(ENDED_CHILDREN, [limit])).map(({ child_run_id }) => child_run_id);
}

const ORPHANED_CHILDREN = statement<{ run_id: string }>("chains.timers.orphaned_children", `${ORPHANED} limit $1`);

/** Child runs that no node waits for anymore. */
export async function orphanedChildren(db: Queryable, limit: number): Promise<string[]> {
  return (await db.rows(ORPHANED_CHILDREN, [limit])).map(({ run_id }) => run_id);
}

const IS_AWAITED = statement<{ awaited: boolean }>(
  "chains.timers.is_awaited",
  `select ${AWAITED} as awaited from chains.job_run c where c.run_id = $1`,
);

/** Whether a node waits for the child run, or is about to. */
export async function isAwaited(tx: Queryable, runId: string): Promise<boolean> {
  return (await tx.rows(IS_AWAITED, [runId]))[0]?.awaited ?? false;
}

const OVERDUE_CHILDREN = statement<NodeKey & { child_run_id: string }>(
  "chains.timers.overdue_children",
  `select run_id, node_id, child_run_id from chains.live_node
   where state = 'parked' and due_at <= now() order by due_at limit $1`,
);

/** Nodes whose child run has reached the node's time-out. */
export function overdueChildren(db: Queryable, limit: number) {
  return db.rows(OVERDUE_CHILDREN, [limit]);
}
