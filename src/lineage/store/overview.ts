/** SQL for the overview: events that could not be applied, and those that wait for their tenant. */
import type { Db } from "../../kernel/data/db.ts";
import { filtered } from "../../kernel/data/filtered.ts";
import { ENTRIES_MAX } from "../../kernel/overview/part.ts";
import { COUNTED_MAX } from "../../kernel/overview/values.ts";

export interface UnappliedRow {
  tenant_id: string;
  tenant_name: string;
  apply_state: "BUFFERED" | "DEAD";
  events: number;
  oldest_at: Date;
  newest_at: Date;
  /** Of the newest. */
  apply_error: string | null;
}
const read = filtered<{ tenant: string | null }, UnappliedRow>({
  name: "lineage.overview.unapplied",
  conditions: { tenant: (parameter) => `e.tenant_id = ${parameter}` },
  text: (where) => `${inState("BUFFERED", where)} union all ${inState("DEAD", where)}`,
});

/** Each state has a limit of its own: many events that wait must not hide those that could not be applied. */
function inState(state: UnappliedRow["apply_state"], where: string): string {
  return `(select u.tenant_id::text, max(u.tenant_name) as tenant_name, '${state}' as apply_state, count(*)::int as events,
             min(u.created_at) as oldest_at, max(u.created_at) as newest_at,
             (array_agg(u.apply_error order by u.created_at desc))[1] as apply_error
      from (select * from lineage.lineage_events e where e.apply_state = '${state}' and ${where} limit ${COUNTED_MAX}) u
      group by u.tenant_id order by count(*) desc limit ${ENTRIES_MAX})`;
}

/** By tenant; only of one if the caller is bound to it. */
export function unappliedByTenant(db: Db, tenantId: string | null): Promise<UnappliedRow[]> {
  const { statement, values } = read({ tenant: tenantId });
  return db.read(statement, values);
}
