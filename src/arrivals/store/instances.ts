/** SQL for instances (a model for one opTime): their states, locks, queue and lease. */
import { type Columns, itemsByKey, toArrays } from "../../kernel/data/batch.ts";
import type { Db, Queryable } from "../../kernel/data/db.ts";
import { statement } from "../../kernel/data/statement.ts";
import { leaseOn, returning } from "../../kernel/work/lease.ts";
import type { Consumed } from "../runs/decide.ts";
import type { InstanceState, Trigger } from "../runs/states.ts";

export interface InstanceKey {
  model_id: string;
  op_time: string;
}
/** The arrival that caused a run. */
export interface Cause {
  table: string;
  opTime: string;
}
export interface InstanceRow extends InstanceKey {
  state: InstanceState;
  generation: number;
  again: boolean;
  consumed: Consumed | null;
  due_at: Date | null;
  /** Of its run that is open. */
  failed_attempts: number;
  /** What triggers its next run, or has triggered its last one. */
  trigger: Trigger | null;
  /** The database's clock, which also sets the times of arrivals. */
  now_ms: number;
}

const KEY = { model_id: "text", op_time: "text" } as const;
const UNDER_WAY = "t.state in ('running', 'parked', 'returned')";
const COLUMNS = `t.model_id, t.op_time, t.state, t.generation, t.again, t.consumed, t.due_at, t.failed_attempts, t.trigger,
   extract(epoch from clock_timestamp())::float8 * 1000 as now_ms`;

// Waits for a concurrent delete of the model and then inserts nothing: the foreign key would fail the whole batch.
const ENSURE = statement(
  "arrivals.instance.ensure",
  `insert into arrivals.model_instance (model_id, op_time) select i.model_id, i.op_time from ${itemsByKey(KEY)}
   join arrivals.metrics_model m on m.model_id = i.model_id
   where not exists (select from arrivals.model_instance t where t.model_id = i.model_id and t.op_time = i.op_time)
   for key share of m on conflict do nothing`,
);
const LOCK = statement<InstanceRow>(
  "arrivals.instance.lock",
  `select ${COLUMNS} from ${itemsByKey(KEY)}
   join arrivals.model_instance t on t.model_id = i.model_id and t.op_time = i.op_time for update of t`,
);

/** Inserts missing instances and locks all of them in key order. A deleted model has none. */
export async function lockInstances(tx: Queryable, keys: readonly InstanceKey[]): Promise<InstanceRow[]> {
  const columns = toArrays(KEY, keys);
  await tx.rows(ENSURE, columns);
  return tx.rows(LOCK, columns);
}

const DROP_NEW = statement(
  "arrivals.instance.drop_new",
  `delete from arrivals.model_instance t using ${itemsByKey(KEY)}
   where t.model_id = i.model_id and t.op_time = i.op_time and t.state = 'idle' and t.xmin = pg_current_xact_id()::xid`,
);

/** Deletes those that this transaction has inserted only to lock them. Call it before any of them is updated. */
export async function dropNewInstances(tx: Queryable, keys: readonly InstanceKey[]): Promise<void> {
  await tx.rows(DROP_NEW, toArrays(KEY, keys));
}

const FIND = statement<InstanceRow>(
  "arrivals.instance.find",
  `select ${COLUMNS} from ${itemsByKey(KEY)}
   join arrivals.model_instance t on t.model_id = i.model_id and t.op_time = i.op_time`,
);

export function findInstances(db: Queryable, keys: readonly InstanceKey[]): Promise<InstanceRow[]> {
  return db.rows(FIND, toArrays(KEY, keys));
}

export interface InstanceMove extends InstanceKey {
  state: Exclude<InstanceState, "running" | "parked" | "returned">;
  /** When a `quiet` or `retrying` one is due. */
  due_at: Date | null;
  /** What triggers the next run; null keeps the present trigger. */
  trigger: Trigger | null;
  caused_by: Cause | null;
}
const MOVE_VALUES: Columns = { state: "text", due_at: "timestamptz", trigger: "text", caused_by: "jsonb" };
// A retry that is made ready is the next attempt of its run, so the claim has to give it the same generation.
const MOVE = statement(
  "arrivals.instance.move",
  `update arrivals.model_instance t
   set state = i.state, due_at = i.due_at,
       failed_attempts = case i.state when 'retrying' then t.failed_attempts else 0 end,
       generation = case when t.state = 'retrying' and i.state = 'ready' then t.generation - 1 else t.generation end,
       ready_at = case when i.state = 'ready' then coalesce(t.ready_at, now()) end,
       trigger = coalesce(i.trigger, t.trigger), caused_by = case when i.trigger is null then t.caused_by else i.caused_by end,
       updated_at = now()
   from ${itemsByKey(KEY, MOVE_VALUES)}
   where t.model_id = i.model_id and t.op_time = i.op_time and not ${UNDER_WAY}`,
);

export async function moveInstances(tx: Queryable, moves: readonly InstanceMove[]): Promise<void> {
  if (moves.length > 0) await tx.rows(MOVE, toArrays({ ...KEY, ...MOVE_VALUES }, moves));
}

export type InstanceAgain = InstanceKey & Pick<InstanceMove, "trigger" | "caused_by">;
const AGAIN_VALUES: Columns = { trigger: "text", caused_by: "jsonb" };
const AGAIN = statement(
  "arrivals.instance.again",
  `update arrivals.model_instance t
   set again = true, trigger = coalesce(i.trigger, t.trigger), caused_by = case when i.trigger is null then t.caused_by else i.caused_by end
   from ${itemsByKey(KEY, AGAIN_VALUES)}
   where t.model_id = i.model_id and t.op_time = i.op_time and ${UNDER_WAY} and not t.again`,
);

/** Something arrived during a run. The run keeps its own cause in its log row; its end considers the instance again. */
export async function markAgain(tx: Queryable, running: readonly InstanceAgain[]): Promise<void> {
  if (running.length > 0) await tx.rows(AGAIN, toArrays({ ...KEY, ...AGAIN_VALUES }, running));
}

export interface ClaimedInstance extends InstanceKey {
  fence: string;
  generation: number;
  trigger: Trigger;
  caused_by: Cause | null;
  /** Whether it has succeeded before. */
  rerun: boolean;
  /** The run of its chain that has ended, if it is claimed to store the result of that. */
  chain_run_id: string | null;
  /** 1 for the first. */
  attempt: number;
}
export const instanceLease = leaseOn({
  name: "arrivals.instance",
  table: "arrivals.model_instance",
  key: KEY,
  state: { column: "state", ready: ["ready", "returned"], leased: "running", dead: "idle" },
  // Backfills come last: a model that somebody waits for must not queue behind months of them.
  orderBy: "(t.trigger = 'backfill'), t.ready_at, t.model_id, t.op_time",
  fence: "fence",
  hold: { by: "session", session: "session_id" },
  lost: { column: "lost_count" },
  onClaim: {
    generation: "case t.state when 'ready' then t.generation + 1 else t.generation end",
    ready_at: "null",
    updated_at: "now()",
  },
  returning: returning<Omit<ClaimedInstance, keyof InstanceKey | "fence">>(
    `t.generation, t.trigger, t.caused_by, t.consumed is not null as rerun, t.chain_run_id,
     t.failed_attempts + 1 as attempt`,
  ),
  outcomes: {},
});

export function claimInstances(
  db: Db,
  request: { limit: number; session: string },
  also: (tx: Queryable, claimed: ClaimedInstance[]) => Promise<void>,
): Promise<ClaimedInstance[]> {
  return instanceLease.claim(db, { limit: request.limit, holder: request.session }, also);
}

const HAS_READY = statement<{ ready: boolean }>(
  "arrivals.instance.has_ready",
  "select exists (select from arrivals.model_instance where state in ('ready', 'returned')) as ready",
);

export async function hasReadyInstances(db: Queryable): Promise<boolean> {
  return (await db.rows(HAS_READY))[0]?.ready ?? false;
}

const HELD = { ...KEY, fence: "int8" };
const END_VALUES: Columns = { fence: "int8", consumed: "jsonb" };
const END = statement<InstanceKey & { again: boolean }>(
  "arrivals.instance.end",
  `with held as (
     select t.model_id, t.op_time, t.again, i.consumed from ${itemsByKey(KEY, END_VALUES)}
     join arrivals.model_instance t on t.model_id = i.model_id and t.op_time = i.op_time
     where t.state = 'running' and t.fence = i.fence for update of t
   )
   update arrivals.model_instance t
   set state = 'idle', session_id = null, fence = null, chain_run_id = null, again = false, lost_count = 0,
       failed_attempts = 0, updated_at = now(), consumed = coalesce(held.consumed, t.consumed)
   from held where t.model_id = held.model_id and t.op_time = held.op_time
   returning t.model_id, t.op_time, held.again`,
);

/** Ends a run under its fence; `consumed` only after a success. Undefined means that the lease was lost. */
export async function endInstance(
  tx: Queryable,
  held: InstanceKey & { fence: string; consumed: Consumed | null },
): Promise<{ again: boolean } | undefined> {
  return (await tx.rows(END, toArrays({ ...KEY, ...END_VALUES }, [held])))[0];
}

const IS_DEAD = "(t.lost_count + $4 >= $5)";
const RELEASE = statement<InstanceKey & { state: InstanceState; generation: number; again: boolean }>(
  "arrivals.instance.give_back",
  `with held as (
     select t.model_id, t.op_time, t.again from ${itemsByKey(KEY, { fence: "int8" })}
     join arrivals.model_instance t on t.model_id = i.model_id and t.op_time = i.op_time
     where t.state = 'running' and t.fence = i.fence for update of t
   )
   update arrivals.model_instance t
   set state = case when ${IS_DEAD} then 'idle' when t.chain_run_id is null then 'ready' else 'returned' end,
       ready_at = case when ${IS_DEAD} then null else now() end,
       generation = case when ${IS_DEAD} or t.chain_run_id is not null then t.generation else t.generation - 1 end,
       lost_count = case when ${IS_DEAD} then 0 else t.lost_count + $4 end,
       failed_attempts = case when ${IS_DEAD} then 0 else t.failed_attempts end,
       chain_run_id = case when ${IS_DEAD} then null else t.chain_run_id end,
       session_id = null, fence = null, again = t.again and t.chain_run_id is not null and not ${IS_DEAD}, updated_at = now()
   from held where t.model_id = held.model_id and t.op_time = held.op_time
   returning t.model_id, t.op_time, t.state, held.again,
             case t.state when 'ready' then t.generation + 1 else t.generation end as generation`,
);

/**
 * Releases runs whose session expired (`lost`), or that a process returns when it stops. The next claim has the same
 * generation and reads what has arrived meanwhile; if the run of a chain had done the work, it stores that result. A run
 * that was lost too often has failed, and the next one gets a new generation.
 */
export function releaseInstances(
  tx: Queryable,
  held: readonly (InstanceKey & { fence: string })[],
  { lost, lostLimit }: { lost: boolean; lostLimit: number },
) {
  return tx.rows(RELEASE, [...toArrays(HELD, held), lost ? 1 : 0, lostLimit]);
}

const WITHDRAW = statement(
  "arrivals.instance.calm",
  `update arrivals.model_instance set state = 'idle', due_at = null, ready_at = null, failed_attempts = 0, updated_at = now()
   where model_id = $1 and state in ('waiting', 'quiet', 'asking', 'ready', 'retrying')`,
);

/** Makes the instances of an unpublished model idle, except those that have a run under way. */
export async function withdrawInstances(tx: Queryable, modelId: string): Promise<void> {
  await tx.rows(WITHDRAW, [modelId]);
}

const DUE = statement<InstanceKey>(
  "arrivals.instance.due",
  "select model_id, op_time from arrivals.model_instance where state = 'quiet' and due_at <= now() order by due_at limit $1",
);

export function dueInstances(db: Queryable, limit: number): Promise<InstanceKey[]> {
  return db.rows(DUE, [limit]);
}

/** A backfill does not push back what is ready for another reason. */
const KEEPS_TRIGGER = "t.state in ('ready', 'retrying') and $3 = 'backfill'";
const FORCE = statement<InstanceKey & { generation: number }>(
  "arrivals.instance.force",
  `update arrivals.model_instance t
   set state = 'ready', due_at = null, ready_at = coalesce(t.ready_at, now()), failed_attempts = 0, updated_at = now(),
       generation = case t.state when 'retrying' then t.generation - 1 else t.generation end,
       trigger = case when ${KEEPS_TRIGGER} then t.trigger else $3 end,
       caused_by = case when ${KEEPS_TRIGGER} then t.caused_by end
   from ${itemsByKey(KEY)}
   where t.model_id = i.model_id and t.op_time = i.op_time and not ${UNDER_WAY}
   returning t.model_id, t.op_time, t.generation`,
);

/** Makes instances ready on request; answers those that had no run under way. */
export function forceInstances(tx: Queryable, keys: readonly InstanceKey[], trigger: Trigger) {
  return tx.rows(FORCE, [...toArrays(KEY, keys), trigger]);
}

const WAITING = statement<InstanceKey>(
  "arrivals.instance.waiting",
  `select model_id, op_time from arrivals.model_instance
   where model_id = $1 and state in ('waiting', 'quiet', 'asking', 'retrying') order by op_time desc limit $2`,
);

/** Those of a model that a change of it may concern, the newest first. */
export function waitingInstances(tx: Queryable, modelId: string, limit: number): Promise<InstanceKey[]> {
  return tx.rows(WAITING, [modelId, limit]);
}

const FAILED = statement<InstanceKey>(
  "arrivals.instance.failed",
  `select t.model_id, t.op_time from arrivals.model_instance t
   cross join lateral (
     select l.status from arrivals.metrics_task_log l where l.model_id = t.model_id and l.op_time = t.op_time
     order by l.id desc limit 1
   ) newest
   where t.model_id = $1 and ($2::text is null or t.op_time = $2) and t.state not in ('running', 'parked', 'returned')
     and newest.status = 'FAILED'
   order by t.op_time limit $3`,
);

/** Those of a model whose newest run has failed. */
export function failedInstances(
  db: Queryable,
  modelId: string,
  opTime: string | null,
  limit: number,
): Promise<InstanceKey[]> {
  return db.rows(FAILED, [modelId, opTime, limit]);
}

export interface StoppableInstance extends InstanceKey {
  state: "ready" | "running" | "parked" | "retrying";
  chain_run_id: string | null;
}
const STOPPABLE = statement<StoppableInstance>(
  "arrivals.instance.stoppable",
  `select model_id, op_time, state, chain_run_id from arrivals.model_instance
   where model_id = $1 and ($2::text is null or op_time = $2) and state in ('ready', 'running', 'parked', 'retrying')
   order by op_time limit $3 for update`,
);

/** Those of a model that run or are about to, locked. */
export function lockStoppable(
  tx: Queryable,
  modelId: string,
  opTime: string | null,
  limit: number,
): Promise<StoppableInstance[]> {
  return tx.rows(STOPPABLE, [modelId, opTime, limit]);
}

const STOP = statement(
  "arrivals.instance.stop",
  `update arrivals.model_instance t
   set state = 'idle', ready_at = null, due_at = null, session_id = null, fence = null, chain_run_id = null, again = false,
       lost_count = 0, failed_attempts = 0, updated_at = now()
   from ${itemsByKey(KEY)}
   where t.model_id = i.model_id and t.op_time = i.op_time and t.state in ('ready', 'running', 'retrying')`,
);

/** Whoever runs one of them has lost its lease. Call it with those that `lockStoppable` has locked. */
export async function stopInstances(tx: Queryable, keys: readonly InstanceKey[]): Promise<void> {
  if (keys.length > 0) await tx.rows(STOP, toArrays(KEY, keys));
}
