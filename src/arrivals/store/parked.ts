/** SQL for instances that are parked with a run of their chain. */
import type { Db, Queryable } from "../../kernel/data/db.ts";
import { statement } from "../../kernel/data/statement.ts";
import type { InstanceKey } from "./instances.ts";

const PARK = statement<InstanceKey>(
  "arrivals.parked.park",
  `update arrivals.model_instance t
   set state = 'parked', chain_run_id = $4, session_id = null, fence = null, lost_count = 0, updated_at = now(),
       due_at = now() + make_interval(secs => $5)
   where t.model_id = $1 and t.op_time = $2 and t.state = 'running' and t.fence = $3::bigint
   returning t.model_id, t.op_time`,
);
const SET_CHAIN_RUN = statement(
  "arrivals.parked.set_chain_run",
  "update arrivals.metrics_task_log set chain_run_id = $2 where id = $1::bigint",
);

/** Parks a run under its fence until the run of its chain has ended. False if the lease was lost. */
export async function park(
  tx: Queryable,
  run: InstanceKey & { fence: string; taskId: string; chainRunId: string; timeoutSeconds: number },
): Promise<boolean> {
  const { model_id, op_time, fence, taskId, chainRunId, timeoutSeconds } = run;
  const parked = await tx.rows(PARK, [model_id, op_time, fence, chainRunId, timeoutSeconds]);
  if (parked.length > 0) await tx.rows(SET_CHAIN_RUN, [taskId, chainRunId]);
  return parked.length > 0;
}

// In key order, like every other lock on instances.
const RETURN = statement<{ chain_run_id: string }>(
  "arrivals.parked.return",
  `with parked as (
     select model_id, op_time from arrivals.model_instance
     where state = 'parked' and chain_run_id = any($1::uuid[]) order by model_id, op_time for update
   ), moved as (
     update arrivals.model_instance t set state = 'returned', ready_at = now(), due_at = null, updated_at = now()
     from parked p where t.model_id = p.model_id and t.op_time = p.op_time
   )
   select chain_run_id from arrivals.model_instance where chain_run_id = any($1::uuid[])`,
);

/**
 * Makes the instances that are parked with these runs claimable. Answers the runs that have an instance, also one that was
 * made claimable before: a run that failed may have been continued and failed again before the model was claimed.
 */
export async function returnParked(tx: Queryable, chainRunIds: readonly string[]): Promise<string[]> {
  return (await tx.rows(RETURN, [chainRunIds])).map(({ chain_run_id }) => chain_run_id);
}

// Only the newest run of an instance, and only while no other is requested: a later run replaces it. What was decided about a
// later run meanwhile is decided again when this one ends.
const CONTINUE = statement<{ chain_run_id: string }>(
  "arrivals.parked.continue",
  `with failed as (
     select i.model_id, i.op_time, l.id, l.chain_run_id from arrivals.metrics_task_log l
     join arrivals.model_instance i on i.model_id = l.model_id and i.op_time = l.op_time and i.generation = l.generation
     where l.chain_run_id = any($1::uuid[]) and l.status = 'FAILED' and i.state in ('idle', 'waiting', 'quiet', 'asking', 'retrying')
       and not exists (select from arrivals.metrics_task_log n
                       where n.model_id = l.model_id and n.op_time = l.op_time and n.id > l.id)
     order by i.model_id, i.op_time for update of i
   ), moved as (
     update arrivals.model_instance t
     set state = $2, chain_run_id = f.chain_run_id, again = t.state not in ('idle', 'retrying'), updated_at = now(),
         ready_at = case when $2 = 'returned' then now() end,
         due_at = case when $2 = 'parked' then now() + make_interval(secs => (
           select m.timeout_seconds from arrivals.metrics_model m where m.model_id = f.model_id)) end
     from failed f where t.model_id = f.model_id and t.op_time = f.op_time
     returning f.id, f.chain_run_id
   )
   update arrivals.metrics_task_log l
   set status = 'RUNNING', end_time = null, message = null, warnings = '[]', timed_out = false from moved where l.id = moved.id
   returning moved.chain_run_id`,
);

/**
 * Continues the failed runs of models whose chain's run goes on (`parked`), or has succeeded after all (`returned`). Answers the
 * runs of chains that had one.
 */
export async function continueFailed(
  tx: Queryable,
  chainRunIds: readonly string[],
  state: "parked" | "returned",
): Promise<string[]> {
  return (await tx.rows(CONTINUE, [chainRunIds, state])).map(({ chain_run_id }) => chain_run_id);
}

const OVERDUE = statement<{ chain_run_id: string; timeout_seconds: number }>(
  "arrivals.parked.overdue",
  `with overdue as (
     select model_id, op_time from arrivals.model_instance
     where state = 'parked' and due_at <= now() order by due_at limit $1 for update skip locked
   )
   update arrivals.model_instance t set due_at = now() + interval '1 minute'
   from overdue o, arrivals.metrics_model m
   where t.model_id = o.model_id and t.op_time = o.op_time and m.model_id = o.model_id
   returning t.chain_run_id, m.timeout_seconds`,
);

/** Runs of chains that take longer than their models allow. Each is answered again after a minute, in case its stop failed. */
export function overdueChainRuns(db: Queryable, limit: number) {
  return db.rows(OVERDUE, [limit]);
}

const SET_TIMED_OUT = statement(
  "arrivals.parked.set_timed_out",
  `update arrivals.metrics_task_log set timed_out = $2
   where chain_run_id = any($1::uuid[]) and status = 'RUNNING' and timed_out <> $2`,
);

/** Whether the runs of models with these runs of chains have timed out. Call it in the transaction that makes it so. */
export async function setTimedOut(tx: Queryable, chainRunIds: readonly string[], timedOut: boolean): Promise<void> {
  if (chainRunIds.length > 0) await tx.rows(SET_TIMED_OUT, [chainRunIds, timedOut]);
}

const PARKED = statement<{ chain_run_id: string }>(
  "arrivals.parked.runs",
  `select chain_run_id from arrivals.model_instance
   where state = 'parked' and chain_run_id > coalesce($1, '00000000-0000-0000-0000-000000000000'::uuid)
   order by chain_run_id limit $2`,
);

/** The runs of chains that models are parked with, after this one. */
export async function parkedChainRuns(db: Db, after: string | null, limit: number): Promise<string[]> {
  return (await db.rows(PARKED, [after, limit])).map(({ chain_run_id }) => chain_run_id);
}
