/** SQL for runs that failed and are tried again: they wait in the instance, without a slot. */
import type { Queryable } from "../../kernel/data/db.ts";
import { statement } from "../../kernel/data/statement.ts";
import type { InstanceState } from "../runs/states.ts";
import type { InstanceKey } from "./instances.ts";

const RETRY_LATER = statement<{ again: boolean }>(
  "arrivals.retry.later",
  `with held as (
     select t.model_id, t.op_time, t.again from arrivals.model_instance t
     where t.model_id = $1 and t.op_time = $2 and t.state = 'running' and t.fence = $3::bigint for update
   )
   update arrivals.model_instance t
   set state = 'retrying', due_at = now() + make_interval(secs => $4::float8 / 1000), failed_attempts = t.failed_attempts + 1,
       session_id = null, fence = null, chain_run_id = null, again = false, lost_count = 0, updated_at = now()
   from held where t.model_id = held.model_id and t.op_time = held.op_time
   returning held.again`,
);

/** Under the fence of the attempt that failed. Undefined means that the lease was lost. */
export async function retryLater(
  tx: Queryable,
  { model_id, op_time, fence }: InstanceKey & { fence: string },
  delayMs: number,
): Promise<{ again: boolean } | undefined> {
  return (await tx.rows(RETRY_LATER, [model_id, op_time, fence, delayMs]))[0];
}

// The model may have been unpublished in the moment in which its run failed. The next attempt has the same generation.
const RETRY_DUE = statement<InstanceKey & { state: InstanceState }>(
  "arrivals.retry.due",
  `with due as (
     select i.model_id, i.op_time, m.state = 1 as published from arrivals.model_instance i
     join arrivals.metrics_model m on m.model_id = i.model_id
     where i.state = 'retrying' and i.due_at <= now() order by i.due_at limit $1 for update of i skip locked
   )
   update arrivals.model_instance t
   set state = case when due.published then 'ready' else 'idle' end, due_at = null, updated_at = now(),
       ready_at = case when due.published then now() end,
       generation = case when due.published then t.generation - 1 else t.generation end,
       failed_attempts = case when due.published then t.failed_attempts else 0 end
   from due where t.model_id = due.model_id and t.op_time = due.op_time
   returning t.model_id, t.op_time, t.state`,
);

/** Makes those ready whose back-off is over. */
export function retryDue(tx: Queryable, limit: number) {
  return tx.rows(RETRY_DUE, [limit]);
}
