/** SQL for the figures of a tenant. Each count stops at a bound. */
import type { Db } from "../../../kernel/data/db.ts";
import { statement } from "../../../kernel/data/statement.ts";
import { NODE_KINDS, type NodeKind } from "../../graph/names.ts";

const ASSETS = statement<{ kind: NodeKind; count: number }>(
  "lineage.statistics.assets",
  `select k.kind, c.count::int from unnest($2::text[]) k(kind) cross join lateral (
     select count(*) from (
       select n.kind from lineage.node n where n.tenant_id = $1 and n.kind = k.kind and n.deleted_at is null limit $3) x) c`,
);
export const countAssets = (db: Db, tenantId: string, countMax: number) =>
  db.read(ASSETS, [tenantId, NODE_KINDS, countMax]);

const EDGES = statement<{ count: number }>(
  "lineage.statistics.edges",
  `select count(*)::int from (select e.src from lineage.edge e where e.tenant_id = $1 limit $2) x`,
);
export const countEdges = async (db: Db, tenantId: string, countMax: number): Promise<number> =>
  (await db.read(EDGES, [tenantId, countMax]))[0]?.count ?? 0;

// Hour by hour, each by its own stretch of the index.
const HOURS = statement<{ hour: Date; count: number }>(
  "lineage.statistics.hours",
  `select h.hour, c.count::int
   from generate_series(date_trunc('hour', now()) - make_interval(hours => $2 - 1), now(), interval '1 hour') h(hour)
   cross join lateral (
     select count(*) from (
       select e.event_time from lineage.lineage_events e
       where e.tenant_id = $1 and e.event_time >= h.hour and e.event_time < h.hour + interval '1 hour' limit $3) x) c
   order by h.hour`,
);
export const countHours = (db: Db, tenantId: string, hours: number, countMax: number) =>
  db.read(HOURS, [tenantId, hours, countMax]);

const NEWEST = statement<{ at: Date }>(
  "lineage.statistics.newest",
  `select e.event_time as at from lineage.lineage_events e where e.tenant_id = $1 order by e.event_time desc limit 1`,
);
export const newestEvent = async (db: Db, tenantId: string): Promise<Date | null> =>
  (await db.read(NEWEST, [tenantId]))[0]?.at ?? null;

const UNAPPLIED = statement<{ state: string; count: number }>(
  "lineage.statistics.unapplied",
  `select s.state, c.count::int from unnest(array['BUFFERED', 'DEAD']) s(state) cross join lateral (
     select count(*) from (
       select from lineage.lineage_events e
       where e.tenant_id = $1 and e.apply_state in ('BUFFERED', 'DEAD') and e.apply_state = s.state limit $2) x) c`,
);
export const countUnapplied = (db: Db, tenantId: string, countMax: number) => db.read(UNAPPLIED, [tenantId, countMax]);

const TASKS = statement<{ type: string; status: string; count: number }>(
  "lineage.statistics.tasks",
  `select t.type, s.status, c.count::int from unnest(array['EMBEDDING', 'SQL_SUMMARY']) t(type)
   cross join unnest(array['PENDING', 'RUNNING', 'SUCCEEDED', 'FAILED', 'DEAD', 'CANCELED']) s(status) cross join lateral (
     select count(*) from (
       select k.status from lineage.ol_async_task k
       where k.tenant_id = $1 and k.task_type = t.type and k.status = s.status limit $2) x) c`,
);
export const countTasks = (db: Db, tenantId: string, countMax: number) => db.read(TASKS, [tenantId, countMax]);

const TENANT = statement<{ id: string }>("lineage.read.tenant", "select id::text from lineage.tenant where id = $1");
export const tenantExists = async (db: Db, tenantId: string): Promise<boolean> =>
  (await db.read(TENANT, [tenantId])).length > 0;
