/** SQL for executions of statements and jobs: each run counts once, however many events it has. */
import { itemsByKey, toArrays } from "../../kernel/data/batch.ts";
import type { Queryable } from "../../kernel/data/db.ts";
import { statement } from "../../kernel/data/statement.ts";

const EXECUTION = { node_id: "int8", run_uuid: "uuid", at: "int8" };
const COUNT = statement(
  "lineage.count_executions",
  `with fresh as (
     insert into lineage.execution (tenant_id, node_id, run_uuid) select $4::int8, i.node_id, i.run_uuid
     from ${itemsByKey({ node_id: "int8", run_uuid: "uuid" }, { at: "int8" })}
     on conflict do nothing returning node_id, run_uuid
   )
   insert into lineage.execution_count as c (tenant_id, node_id, executions, last_at)
   select $4::int8, f.node_id, count(*), max(i.at)
   from fresh f join unnest($1::int8[], $2::uuid[], $3::int8[]) as i(node_id, run_uuid, at) using (node_id, run_uuid)
   group by f.node_id order by f.node_id
   on conflict (tenant_id, node_id) do update
   set executions = c.executions + excluded.executions, last_at = greatest(c.last_at, excluded.last_at)`,
);
/** Each pair of statement and run once; those that were counted before change nothing. */
export async function countExecutions(
  tx: Queryable,
  tenantId: string,
  executions: readonly { node_id: string; run_uuid: string; at: number }[],
): Promise<void> {
  if (executions.length > 0) await tx.rows(COUNT, [...toArrays(EXECUTION, executions), tenantId]);
}
