/** SQL for what is kept of runs: their statuses, attempts, checkpoints and events. */
import { itemsByKey, toArrays, unnest } from "../../kernel/data/batch.ts";
import type { Db, Queryable } from "../../kernel/data/db.ts";
import { statement } from "../../kernel/data/statement.ts";
import type { NodeStatus, RunStatus } from "../engine/states.ts";
import type { NodeKey } from "./live.ts";

const NODE_KEY = { run_id: "uuid", node_id: "text" };

const ENDED_ATTEMPT = { ...NODE_KEY, status: "text", error: "text" };
// A node that never started has no attempt.
const KEEP_ATTEMPTS = statement(
  "chains.attempt.keep",
  `insert into chains.job_run_attempt (run_id, node_id, attempt, status, error, worker, started_at, ended_at)
   select n.run_id, n.node_id, n.attempt, i.status, coalesce(i.error, n.last_error), n.worker, n.started_at,
          coalesce(n.ended_at, now())
   from ${itemsByKey(NODE_KEY, { status: "text", error: "text" })}
   join chains.job_run_node n on n.run_id = i.run_id and n.node_id = i.node_id
   where n.started_at is not null
   on conflict do nothing`,
);

/** Stores attempts that have ended and are followed by another one. Call it before the nodes are written. */
export async function keepAttempts(
  tx: Queryable,
  endedAttempt: readonly (NodeKey & { status: NodeStatus | "LOST"; error: string | null })[],
): Promise<void> {
  await tx.rows(KEEP_ATTEMPTS, toArrays(ENDED_ATTEMPT, endedAttempt));
}

const CHECKPOINT = { ...NODE_KEY, checkpoint: "jsonb" };
const SAVE_CHECKPOINTS = statement(
  "chains.checkpoint.save",
  `insert into chains.job_run_checkpoint (run_id, node_id, checkpoint_json) select * from ${unnest(CHECKPOINT, "i")}
   on conflict (run_id, node_id) do update set checkpoint_json = excluded.checkpoint_json, updated_at = now()`,
);

export async function saveCheckpoints(
  tx: Queryable,
  checkpoints: readonly (NodeKey & { checkpoint: unknown })[],
): Promise<void> {
  if (checkpoints.length > 0) await tx.rows(SAVE_CHECKPOINTS, toArrays(CHECKPOINT, checkpoints));
}

const HELD_CHECKPOINT = statement<{ node_id: string }>(
  "chains.checkpoint.save_held",
  `insert into chains.job_run_checkpoint (run_id, node_id, checkpoint_json)
   select n.run_id, n.node_id, $4::jsonb from chains.live_node n
   where n.run_id = $1 and n.node_id = $2 and n.fence = $3::bigint and n.state = 'leased'
   on conflict (run_id, node_id) do update set checkpoint_json = excluded.checkpoint_json, updated_at = now()
   returning node_id`,
);

/** Stores a checkpoint during an attempt. Returns false when the caller no longer holds the node. */
export async function saveHeldCheckpoint(
  db: Db,
  held: NodeKey & { fence: string },
  checkpoint: unknown,
): Promise<boolean> {
  const rows = await db.rows(HELD_CHECKPOINT, [held.run_id, held.node_id, held.fence, JSON.stringify(checkpoint)]);
  return rows.length > 0;
}

const CHECKPOINTS = statement<NodeKey & { checkpoint: unknown }>(
  "chains.checkpoint.read",
  `select c.run_id, c.node_id, c.checkpoint_json as checkpoint
   from ${itemsByKey(NODE_KEY)} join chains.job_run_checkpoint c on c.run_id = i.run_id and c.node_id = i.node_id`,
);

export function readCheckpoints(db: Db, keys: readonly NodeKey[]) {
  return db.rows(CHECKPOINTS, toArrays(NODE_KEY, keys));
}

const SECONDS = statement<NodeKey & { seconds: number }>(
  "chains.node.seconds",
  `select n.run_id, n.node_id, extract(epoch from now() - n.started_at)::float8 as seconds
   from ${itemsByKey(NODE_KEY)} join chains.job_run_node n on n.run_id = i.run_id and n.node_id = i.node_id
   where n.started_at is not null`,
);

/** How long the present attempts of these nodes have been running. */
export function secondsRunning(db: Queryable, keys: readonly NodeKey[]) {
  return db.rows(SECONDS, toArrays(NODE_KEY, keys));
}

const RESULTS = statement<NodeKey & { status: NodeStatus; artifact: unknown }>(
  "chains.node.results",
  `select n.run_id, n.node_id, n.status, n.artifact_json as artifact
   from ${itemsByKey(NODE_KEY)} join chains.job_run_node n on n.run_id = i.run_id and n.node_id = i.node_id`,
);

/** Statuses and artifacts of nodes. */
export function readResults(db: Db, keys: readonly NodeKey[]) {
  return db.rows(RESULTS, toArrays(NODE_KEY, keys));
}

export interface NodeEnd extends NodeKey {
  status: NodeStatus;
  attempt: number;
  error: string | null;
  ended_at: Date;
  /** The `table` in the artifact of an `arrive` node. */
  announced: string | null;
}
const NODE_END = { ...NODE_KEY, announces: "bool" };
// Artifacts may be large; only those of `arrive` nodes are read.
const NODE_ENDS = statement<NodeEnd>(
  "chains.node.ends",
  `select n.run_id, n.node_id, n.status, n.attempt, n.last_error as error, n.ended_at,
          case when i.announces then n.artifact_json ->> 'table' end as announced
   from ${itemsByKey(NODE_KEY, { announces: "bool" })}
   join chains.job_run_node n on n.run_id = i.run_id and n.node_id = i.node_id
   where n.started_at is not null and n.status in ('SUCCESS', 'FAILED', 'STOPPED')`,
);

/** How nodes ended, without those that never started or were skipped. */
export function readNodeEnds(tx: Queryable, nodes: readonly (NodeKey & { announces: boolean })[]): Promise<NodeEnd[]> {
  return tx.rows(NODE_ENDS, toArrays(NODE_END, nodes));
}

export interface EventWrite {
  run_id: string;
  kind: string;
  node_id: string | null;
  actor: string | null;
  detail: unknown;
}
const EVENT = { run_id: "uuid", kind: "text", node_id: "text", actor: "text", detail: "jsonb" };
const WRITE_EVENTS = statement(
  "chains.event.write",
  `insert into chains.job_run_event (run_id, kind, node_id, actor, detail) select * from ${unnest(EVENT, "i")}`,
);

export async function writeEvents(tx: Queryable, events: readonly EventWrite[]): Promise<void> {
  await tx.rows(WRITE_EVENTS, toArrays(EVENT, events));
}

const RUN_KEY = { run_id: "uuid" };
const RUN_STATUS = { status: "text", reason_from: "text", reason: "text" };
/** Of nodes that failed in one transaction, the first of the definition. */
const FAILURE = `(select 'node \`' || n.node_id || '\` failed: ' || n.last_error from chains.job_run_node n
          where n.run_id = t.run_id and n.status = 'FAILED' order by n.ended_at, n.node_no limit 1)`;
const MOVE_RUNS = statement<{ run_id: string; reason: string | null }>(
  "chains.run.move",
  // A transaction that began earlier may move a run later: by `now()` the later state would seem the older one.
  `update chains.job_run t
   set status = i.status, updated_at = greatest(clock_timestamp(), t.updated_at + interval '1 millisecond'),
       started_at = case when i.status = 'RUNNING' then coalesce(t.started_at, now()) else t.started_at end,
       ended_at = case when i.status in ('SUCCESS', 'FAILED', 'STOPPED') then now() end,
       reason = case i.reason_from when 'text' then i.reason when 'failure' then ${FAILURE} else t.reason end
   from ${itemsByKey(RUN_KEY, RUN_STATUS)} where t.run_id = i.run_id
   returning t.run_id, t.reason`,
);

export interface RunMove {
  run_id: string;
  status: RunStatus;
  /** `failure`: from the node that failed first. Whoever names the failure of a run reads this reason. */
  reason_from: "stored" | "text" | "failure";
  /** The text. */
  reason: string | null;
}

/** Call it after the nodes are written. Returns the reasons that are now stored. */
export function moveRuns(
  tx: Queryable,
  runs: readonly RunMove[],
): Promise<{ run_id: string; reason: string | null }[]> {
  return tx.rows(MOVE_RUNS, toArrays({ ...RUN_KEY, ...RUN_STATUS }, runs));
}
