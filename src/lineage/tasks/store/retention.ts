/** SQL that deletes old tasks and batches: tenant by tenant, since neither table has an index by age alone. */
import type { Queryable } from "../../../kernel/data/db.ts";
import { statement } from "../../../kernel/data/statement.ts";
import { TASK_TYPES } from "../states.ts";

// What an asset has is known by its embedding and its summary, so a task that has succeeded is history. Its attempts go along.
const DELETE_TASKS = statement<{ id: string }>(
  "lineage.task.delete_old",
  `with picked as materialized (
     select t.id from lineage.tenant n, unnest($1::text[]) as y(type), lateral (
       select id from lineage.ol_async_task
       where tenant_id = n.id and task_type = y.type and status = 'SUCCEEDED'
         and next_run_at < now() - make_interval(days => $2)
       order by next_run_at limit $3
     ) t limit $3
   ) delete from lineage.ol_async_task t using picked p where t.id = p.id and t.status = 'SUCCEEDED' returning t.id`,
);
const DELETE_BATCHES = statement<{ id: string }>(
  "lineage.task.delete_old_batches",
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
export async function deleteOldTasks(db: Queryable, keepDays: number, limit: number) {
  const tasks = await db.rows(DELETE_TASKS, [TASK_TYPES, keepDays, limit]);
  const batches = await db.rows(DELETE_BATCHES, [TASK_TYPES, keepDays, limit]);
  return { tasks: tasks.length, batches: batches.length };
}
