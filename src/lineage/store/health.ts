/** SQL for the doctor: invariants of the graph, and what waits for a person. */
import type { Db } from "../../kernel/data/db.ts";
import { invariant } from "../../kernel/data/invariants.ts";
import { statement } from "../../kernel/data/statement.ts";

export const INVARIANTS = [
  invariant(
    "lineage.invariant_edges",
    "both ends of an edge are there",
    `select e.tenant_id || ': ' || e.src || ' ' || e.kind || ' ' || e.dst as example
     from lineage.edge e
     join lineage.node s on s.tenant_id = e.tenant_id and s.id = e.src
     join lineage.node d on d.tenant_id = e.tenant_id and d.id = e.dst
     where s.deleted_at is not null or d.deleted_at is not null`,
  ),
  invariant(
    "lineage.invariant_parents",
    "what lies in another asset is not there without it",
    `select n.tenant_id || ': ' || n.kind || ' ' || n.id as example
     from lineage.node n join lineage.node p on p.tenant_id = n.tenant_id and p.id = n.parent_id
     where n.deleted_at is null and p.deleted_at is not null`,
  ),
  invariant(
    "lineage.invariant_assertions",
    "an event that was applied has an assertion",
    `select e.tenant_id || ': event ' || e.id as example from lineage.lineage_events e
     where e.apply_state = 'APPLIED' and not exists (
       select from lineage.assertion t where t.tenant_id = e.tenant_id and t.key = e.assertion)`,
  ),
];

export interface Unapplied {
  dead: number;
  buffered: number;
  /** A tenant that has some. */
  example: string | null;
  /** For how long the oldest buffered event has waited. */
  waiting_seconds: number;
}
const UNAPPLIED = statement<Unapplied>(
  "lineage.unapplied",
  `select count(*) filter (where apply_state = 'DEAD')::int as dead,
          count(*) filter (where apply_state = 'BUFFERED')::int as buffered, min(tenant_id)::text as example,
          coalesce(max(extract(epoch from now() - created_at)) filter (where apply_state = 'BUFFERED'), 0)::float8
            as waiting_seconds
   from lineage.lineage_events where apply_state in ('BUFFERED', 'DEAD')`,
);
export async function unapplied(db: Db): Promise<Unapplied> {
  const [row] = await db.read(UNAPPLIED);
  if (!row) throw new Error("the look at unapplied events came back empty");
  return row;
}
