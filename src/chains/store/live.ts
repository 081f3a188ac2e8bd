/**
 * The engine's SQL: claim ready nodes, read a run's live rows under its lock, write the difference back. Only one transaction
 * at a time changes a run: it holds an advisory lock on the run's id. A claim needs no such lock, since it only takes ready
 * rows that are not locked.
 */
import { type Columns, heldRows, itemsByKey, toArrays, unnest } from "../../kernel/data/batch.ts";
import type { Db, Queryable } from "../../kernel/data/db.ts";
import { statement } from "../../kernel/data/statement.ts";
import { type LeaseSpec, leaseOn, returning } from "../../kernel/work/lease.ts";
import type { LiveCounts } from "../engine/book.ts";
import type { NodeStatus, RunStatus } from "../engine/states.ts";

export interface NodeKey {
  run_id: string;
  node_id: string;
}

export interface ClaimedNode extends NodeKey {
  fence: string;
  attempt: number;
  /** Attempts before this one that ended without a result. */
  returned: number;
}

const NODE_KEY = { run_id: "uuid", node_id: "text" } as const;

const spec = {
  table: "chains.live_node",
  key: NODE_KEY,
  fence: "fence",
  hold: { by: "session", session: "session_id" },
  lost: { column: "lost_count" },
  returning: returning<Pick<ClaimedNode, "attempt" | "returned">>("t.attempt, t.returned"),
  outcomes: {},
} as const satisfies Partial<LeaseSpec>;

/** Results and reclaims of these leases are transitions of the run, so no row ever becomes `dead`. */
const state = { column: "state", ready: ["ready"], leased: "leased", dead: "ready" } as const;

const free = leaseOn({
  ...spec,
  name: "chains.node",
  state,
  readyWhen: "t.pool is null",
  orderBy: "t.priority, t.run_id, t.node_id",
});
const pooled = leaseOn({
  ...spec,
  name: "chains.pooled_node",
  state,
  readyWhen: "t.pool is not null",
  orderBy: "t.pool, t.priority, t.run_id, t.node_id",
  concurrency: { column: "pool", limit: "select p.size from chains.pool p where p.name = k.key" },
});

export const nodeLeases = { free, pooled };

const STARTED = { ...NODE_KEY, attempt: "int4" };
const MARK_STARTED = statement(
  "chains.node.mark_started",
  `update chains.job_run_node t
   set status = 'RUNNING', attempt = i.attempt, started_at = now(), ended_at = null, updated_at = now(), worker = $4,
       progress = null, progress_note = null
   from ${itemsByKey(NODE_KEY, { attempt: "int4" })} where t.run_id = i.run_id and t.node_id = i.node_id`,
);

export interface ClaimNodes {
  limit: number;
  session: string;
  /** The process, as people see it. */
  worker: string;
}

export function claimNodes(
  db: Db,
  kind: "free" | "pooled",
  { limit, session, worker }: ClaimNodes,
): Promise<ClaimedNode[]> {
  return nodeLeases[kind].claim(db, { limit, holder: session }, async (tx, claimed) => {
    await tx.rows(MARK_STARTED, [...toArrays(STARTED, claimed), worker]);
  });
}

/** Nodes whose lease has expired. */
export function lostNodes(db: Queryable, limit: number): Promise<(NodeKey & { fence: string })[]> {
  return free.expired(db, limit); // The condition is the same for both leases.
}

export interface HeldNode extends NodeKey {
  fence: string;
  /** Why it is to be aborted. */
  stop: string | null;
}

const HELD = statement<HeldNode>(
  "chains.node.held",
  `select n.run_id, n.node_id, n.fence::text as fence,
          (select 'the run was stopped' from chains.live_run r where r.run_id = n.run_id and r.status = 'STOPPING') as stop
   from chains.live_node n
   where n.state = 'leased' and n.session_id = $1::bigint`,
);

/** The nodes that a session still holds. */
export function heldNodes(db: Queryable, session: string): Promise<HeldNode[]> {
  return db.rows(HELD, [session]);
}

const LOCK = statement(
  "chains.run.lock",
  `select pg_advisory_xact_lock(hashtextextended('chains.run ' || run_id, 0))
   from (select run_id::text from unnest($1::uuid[]) as r(run_id) order by r.run_id offset 0) r`,
);

/** Call it before any read: a statement that waits for a lock has a snapshot from before it got the lock. */
export async function lockRuns(tx: Queryable, runIds: readonly string[]): Promise<void> {
  await tx.rows(LOCK, [runIds]);
}

export interface LiveRow extends NodeKey, LiveCounts {
  fence: string | null;
  child_run_id: string | null;
}

export interface LiveRunRow {
  run_id: string;
  run_status: RunStatus;
  open: number;
  run_failed: number;
  stopped: number;
  timed_out: boolean;
}

const LIVE_COLUMNS = `n.run_id, n.node_id, n.state, n.waiting, n.failed, n.skipped, n.attempt, n.tries, n.lost_count as lost, n.returned,
          n.fence::text as fence, n.child_run_id`;
const LIVE_RUN_COLUMNS = "r.status as run_status, r.open, r.failed as run_failed, r.stopped, r.timed_out";

const OPEN_LIVE = statement<LiveRow & LiveRunRow>("chains.live.open", "select * from chains.open_live($1, $2, $3)");

const LOCK_ROWS = statement<LiveRow & LiveRunRow>(
  "chains.live.lock_rows",
  `select ${LIVE_COLUMNS}, ${LIVE_RUN_COLUMNS}
   from ${itemsByKey(NODE_KEY)}
   cross join lateral (
     select * from chains.live_node l where l.run_id = i.run_id and l.node_id = i.node_id for update
   ) n
   cross join lateral (select * from chains.live_run l where l.run_id = i.run_id offset 0) r`,
);

/** Locks the runs, as `lockRuns` does, and then reads the given nodes. */
export async function openLiveRows(
  tx: Queryable,
  runIds: readonly string[],
  keys: readonly NodeKey[],
): Promise<(LiveRow & LiveRunRow)[]> {
  const columns = toArrays(NODE_KEY, keys);
  const rows = await tx.rows(OPEN_LIVE, [runIds, ...columns]);
  // Without the run's lock, only ready rows (by a claim) and delayed rows (by the timers) can change. They are rare among the
  // children of a node that has just ended, and locking every row would cost as much as reading it.
  return rows.some((row) => row.state === "ready" || row.state === "delayed") ? tx.rows(LOCK_ROWS, columns) : rows;
}

const READ_ALL_LIVE = statement<LiveRow>(
  "chains.live.read_all",
  `select ${LIVE_COLUMNS} from chains.live_node n where n.run_id = $1 order by n.node_id for update`,
);
const READ_LIVE_RUN = statement<LiveRunRow>(
  "chains.live.read_run",
  `select r.run_id, ${LIVE_RUN_COLUMNS} from chains.live_run r where r.run_id = $1`,
);

export async function readWholeLive(tx: Queryable, runId: string) {
  const [run] = await tx.rows(READ_LIVE_RUN, [runId]);
  return { run, nodes: run ? await tx.rows(READ_ALL_LIVE, [runId]) : [] };
}

/** The new values of a live row. */
export interface LiveWrite extends NodeKey, LiveCounts {
  /** Null keeps the stored time. */
  delay_ms: number | null;
  child_run_id: string | null;
  /** Leases it to this session, under a new fence. Null keeps the lease that it has. */
  session_id: string | null;
}

export interface NodeWrite extends NodeKey {
  status: NodeStatus;
  attempt: number;
  error: string | null;
  artifact: unknown;
}

export interface RunWrite {
  run_id: string;
  status: "RUNNING" | "STOPPING";
  open: number;
  failed: number;
  stopped: number;
  timed_out: boolean;
  grace_ms: number | null;
}

const LIVE_VALUES: Columns = {
  state: "text",
  waiting: "int4",
  failed: "int4",
  skipped: "int4",
  attempt: "int4",
  tries: "int4",
  lost: "int4",
  returned: "int4",
  delay_ms: "float8",
  child_run_id: "uuid",
  session_id: "int8",
};
const NODE_VALUES: Columns = { status: "text", attempt: "int4", error: "text", artifact: "jsonb" };
const RUN_KEY = { run_id: "uuid" };
const RUN_VALUES: Columns = {
  status: "text",
  open: "int4",
  failed: "int4",
  stopped: "int4",
  timed_out: "bool",
  grace_ms: "float8",
};

const LIVE_AT = 3;
const NODE_AT = LIVE_AT + 2 + Object.keys(LIVE_VALUES).length;
const RUN_AT = NODE_AT + 2 + Object.keys(NODE_VALUES).length;
const WORKER_AT = RUN_AT + 1 + Object.keys(RUN_VALUES).length;

// One round trip for what nearly every change writes. The parts write different rows, so their order does not matter.
const WRITE = statement<ClaimedNode>(
  "chains.live.write",
  `with deleted as (
     delete from chains.live_node t using ${heldRows("chains.live_node", NODE_KEY)} where t.ctid = i.place
   ), updated as (
     update chains.live_node t
     set state = i.state, waiting = i.waiting, failed = i.failed, skipped = i.skipped, attempt = i.attempt, tries = i.tries,
         lost_count = i.lost, returned = i.returned, child_run_id = i.child_run_id,
         session_id = case when i.state = 'leased' then coalesce(i.session_id, t.session_id) end,
         fence = case when i.state <> 'leased' then null when i.session_id is null then t.fence else nextval('kernel.fence') end,
         due_at = case when i.state in ('delayed', 'parked') then coalesce(now() + make_interval(secs => i.delay_ms / 1000), t.due_at) end
     from ${heldRows("chains.live_node", NODE_KEY, LIVE_VALUES, LIVE_AT)} where t.ctid = i.place
     returning t.run_id, t.node_id, t.fence, t.attempt, t.returned, i.session_id is not null as leased
   ), nodes as (
     update chains.job_run_node t
     set status = i.status, attempt = i.attempt, last_error = i.error, artifact_json = i.artifact, updated_at = now(),
         started_at = case when i.status = 'RUNNING' then now() when i.status in ('SUCCESS', 'FAILED', 'STOPPED') then t.started_at end,
         ended_at = case when i.status in ('SUCCESS', 'FAILED', 'STOPPED', 'SKIPPED') then now() end,
         worker = case when i.status = 'RUNNING' then $${WORKER_AT} else t.worker end,
         progress = null, progress_note = null
     from ${itemsByKey(NODE_KEY, NODE_VALUES, NODE_AT)} where t.run_id = i.run_id and t.node_id = i.node_id
   ), runs as (
     update chains.live_run t
     set status = i.status, open = i.open, failed = i.failed, stopped = i.stopped, timed_out = i.timed_out,
         grace_at = case when i.status = 'STOPPING' then coalesce(now() + make_interval(secs => i.grace_ms / 1000), t.grace_at) end
     from ${heldRows("chains.live_run", RUN_KEY, RUN_VALUES, RUN_AT)} where t.ctid = i.place
   )
   select run_id, node_id, fence::text as fence, attempt, returned from updated where leased`,
);

export interface LiveDifference {
  /** Live rows of nodes that have ended. */
  deleted: readonly NodeKey[];
  updated: readonly LiveWrite[];
  /** Rows of `job_run_node`, which people see. */
  nodes: readonly NodeWrite[];
  runs: readonly RunWrite[];
  /** The process that runs the nodes that this leases, as people see it. */
  worker: string | null;
}

/** Returns the nodes that it leased. */
export async function writeLive(
  tx: Queryable,
  { deleted, updated, nodes, runs, worker }: LiveDifference,
): Promise<ClaimedNode[]> {
  return tx.rows(WRITE, [
    ...toArrays(NODE_KEY, deleted),
    ...toArrays({ ...NODE_KEY, ...LIVE_VALUES }, updated),
    ...toArrays({ ...NODE_KEY, ...NODE_VALUES }, nodes),
    ...toArrays({ ...RUN_KEY, ...RUN_VALUES }, runs),
    worker,
  ]);
}

const NEW_LIVE = {
  ...NODE_KEY,
  state: "text",
  waiting: "int4",
  failed: "int4",
  skipped: "int4",
  attempt: "int4",
  tries: "int4",
  lost: "int4",
  pool: "text",
  session_id: "int8",
};
const INSERT_LIVE = statement<ClaimedNode>(
  "chains.live.insert",
  `with inserted as (
     insert into chains.live_node
       (run_id, node_id, state, waiting, failed, skipped, attempt, tries, lost_count, pool, priority, session_id, fence)
     select i.run_id, i.node_id, i.state, i.waiting, i.failed, i.skipped, i.attempt, i.tries, i.lost, i.pool, r.priority,
            i.session_id, case when i.session_id is not null then nextval('kernel.fence') end
     from ${unnest(NEW_LIVE, "i")} join chains.live_run r on r.run_id = i.run_id
     returning run_id, node_id, fence, attempt, returned
   )
   select run_id, node_id, fence::text as fence, attempt, returned from inserted where fence is not null`,
);

/** Returns the nodes that it leased. */
export async function insertLive(
  tx: Queryable,
  nodes: readonly (Omit<LiveWrite, "delay_ms" | "child_run_id"> & { pool: string | null })[],
): Promise<ClaimedNode[]> {
  return tx.rows(INSERT_LIVE, toArrays(NEW_LIVE, nodes));
}

const NEW_RUN = { open: "int4", failed: "int4", stopped: "int4" };
const INSERT_LIVE_RUN = statement(
  "chains.live.insert_run",
  `insert into chains.live_run (run_id, open, failed, stopped, priority, deadline_at)
   select i.run_id, i.open, i.failed, i.stopped, r.priority, now() + make_interval(secs => r.run_timeout_ms / 1000.0)
   from ${itemsByKey(RUN_KEY, NEW_RUN)}
   join chains.job_run r on r.run_id = i.run_id`,
);

export async function insertLiveRuns(
  tx: Queryable,
  runs: readonly Pick<RunWrite, "run_id" | "open" | "failed" | "stopped">[],
): Promise<void> {
  await tx.rows(INSERT_LIVE_RUN, toArrays({ ...RUN_KEY, ...NEW_RUN }, runs));
}

const DELETE_LIVE_RUNS = statement(
  "chains.live.delete_runs",
  `with waits as (delete from chains.live_wait where run_id = any($1::uuid[]))
   delete from chains.live_run where run_id = any($1::uuid[])`,
);

export async function deleteLiveRuns(tx: Queryable, runIds: readonly string[]): Promise<void> {
  await tx.rows(DELETE_LIVE_RUNS, [runIds]);
}
