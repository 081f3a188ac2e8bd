/** SQL that forgets tasks and batches: by the index of each tenant, since neither table has one by age alone. */
import type { Queryable } from "../../kernel/data/db.ts";
import { statement } from "../../kernel/data/statement.ts";
import { TASK_TYPES } from "../tasks/states.ts";

// What an asset has is known by its embedding and its summary, so a task that has succeeded is history. Its attempts go along.
const FORGET_TASKS = statement<{ id: string }>(
  "lineage.task.forget",
  `with picked as materialized (
     select t.id from lineage.tenant n, unnest($1::text[]) as y(type), lateral (
       select id from lineage.ol_async_task
       where tenant_id = n.id and task_type = y.type and status = 'SUCCEEDED'
         and next_run_at < now() - make_interval(days => $2)
       order by next_run_at limit $3
     ) t limit $3
   ) delete from lineage.ol_async_task t using picked p where t.id = p.id and t.status = 'SUCCEEDED' returning t.id`,
);
const FORGET_BATCHES = statement<{ id: string }>(
  "lineage.task.forget_batches",
  `with picked as materialized (
     select b.id from lineage.tenant n, unnest($1::text[]) as y(type), lateral (
       select id from lineage.ol_async_batch
       where tenant_id = n.id and task_type = y.type and status <> 'RUNNING'
         and created_at < now() - make_interval(days => $2)
       order by created_at limit $3
     ) b limit $3
   ) delete from lineage.ol_async_batch b using picked p where b.id = p.id returning b.id`,
);

/** So many of each at most; answers how many. */
export async function forgetTasks(db: Queryable, keepDays: number, limit: number) {
  const tasks = await db.rows(FORGET_TASKS, [TASK_TYPES, keepDays, limit]);
  const batches = await db.rows(FORGET_BATCHES, [TASK_TYPES, keepDays, limit]);
  return { tasks: tasks.length, batches: batches.length };
}
