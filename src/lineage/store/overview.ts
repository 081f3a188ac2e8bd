/** SQL for the overview: events that could not be applied or wait for their tenant, and asynchronous tasks that are DEAD or wait. */
import type { Db } from "../../kernel/data/db.ts";
import { filtered } from "../../kernel/data/filtered.ts";
import { ENTRIES_MAX } from "../../kernel/overview/part.ts";
import { COUNTED_MAX } from "../../kernel/overview/values.ts";
import { SLOT_OR_PROCESS, type WaitingRow } from "../../kernel/overview/waiting-rows.ts";

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

export interface DeadTasksRow {
  tenant_id: string;
  tenant_name: string;
  tasks: number;
  newest_at: Date;
  /** Of the newest. */
  last_error: string | null;
}
const DEAD_TASKS = filtered<{ tenant: string | null }, DeadTasksRow>({
  name: "lineage.overview.dead_tasks",
  conditions: { tenant: (parameter) => `k.tenant_id = ${parameter}` },
  // From tenant to tenant by the index, so that the many of one hide no other.
  text: (where) => `with recursive affected(tenant_id) as (
       (select k.tenant_id from lineage.ol_async_task k where k.status = 'DEAD' and ${where} order by k.tenant_id limit 1)
       union all
       select (select k.tenant_id from lineage.ol_async_task k
               where k.status = 'DEAD' and k.tenant_id > a.tenant_id and ${where} order by k.tenant_id limit 1)
       from affected a where a.tenant_id is not null
     )
     select a.tenant_id::text, t.name as tenant_name, d.tasks, d.newest_at, d.last_error
     from affected a join lineage.tenant t on t.id = a.tenant_id
     cross join lateral (
       select count(*)::int as tasks, max(u.updated_at) as newest_at,
              (array_agg(u.last_error order by u.updated_at desc))[1] as last_error
       from (select k.updated_at, k.last_error from lineage.ol_async_task k
             where k.status = 'DEAD' and k.tenant_id = a.tenant_id order by k.updated_at desc limit ${COUNTED_MAX}) u
     ) d
     order by d.tasks desc limit ${ENTRIES_MAX}`,
});

/** Tasks that no retry is left for, by tenant. */
export function deadTasks(db: Db, tenantId: string | null): Promise<DeadTasksRow[]> {
  const { statement, values } = DEAD_TASKS({ tenant: tenantId });
  return db.read(statement, values);
}

const WAITING_TASKS = filtered<{ tenant: string | null }, WaitingRow>({
  name: "lineage.overview.waiting_tasks",
  conditions: { tenant: (parameter) => `k.tenant_id = ${parameter}` },
  text: (where) => `with waiting as materialized (
       select k.tenant_id, k.status, k.created_at, k.next_run_at from lineage.ol_async_task k
       where k.status in ('PENDING', 'FAILED') and ${where} limit ${COUNTED_MAX}
     )
     (select s.cause, 'lineage-task' as kind, coalesce(s.subject, t.name) as subject, 'lineage-tasks' as about_kind,
             w.tenant_id || '/PENDING' as about_id, w.count, w.oldest_at, null::timestamptz as next_at
      from (select tenant_id, count(*)::int as count, min(created_at) as oldest_at from waiting where status = 'PENDING'
            group by tenant_id order by count(*) desc limit ${ENTRIES_MAX}) w
      join lineage.tenant t on t.id = w.tenant_id, (select ${SLOT_OR_PROCESS}) s)
     union all
     (select 'retry', 'lineage-task', t.name, 'lineage-tasks', w.tenant_id || '/FAILED', w.count, w.oldest_at, w.next_at
      from (select tenant_id, count(*)::int as count, min(created_at) as oldest_at, min(next_run_at) as next_at
            from waiting where status = 'FAILED' group by tenant_id order by count(*) desc limit ${ENTRIES_MAX}) w
      join lineage.tenant t on t.id = w.tenant_id)`,
});

/** Tasks that wait for a worker, and failed ones that wait for their next attempt, by tenant. */
export function waitingTasks(db: Db, tenantId: string | null): Promise<WaitingRow[]> {
  const { statement, values } = WAITING_TASKS({ tenant: tenantId });
  return db.read(statement, values);
}
