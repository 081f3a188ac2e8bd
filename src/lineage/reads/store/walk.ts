/**
 * SQL for walking the graph, one level at a time. A table may be read by a million statements, so the result is limited in the
 * statement: each asset of the level is looked up by key, in the order of ids, until the limit is reached.
 */
import type { Db } from "../../../kernel/data/db.ts";
import { statement } from "../../../kernel/data/statement.ts";
import type { NodeKind } from "../../graph/names.ts";

export interface StepRow {
  /** The asset of the level. */
  at: string;
  kind: string;
  reached: string;
  reached_kind: NodeKind;
  /** Of edges between columns, where they are asked for. */
  transformations: string[] | null;
}
const LEVEL = "(select f.id from unnest($2::int8[]) f(id) order by f.id) f";

// Without transformations an edge is found in the index alone.
const stepping = (name: string, [near, far]: ["src", "dst"] | ["dst", "src"], transformations: string) =>
  statement<StepRow>(
    name,
    `select f.id::text as at, k.kind, e.reached::text, e.reached_kind, e.transformations
     from ${LEVEL} cross join unnest($3::text[]) k(kind) cross join lateral (
       select e.${far} as reached, n.kind as reached_kind, ${transformations} as transformations
       from lineage.edge e join lineage.node n on n.tenant_id = $1 and n.id = e.${far}
       where e.tenant_id = $1 and e.${near} = f.id and e.kind = k.kind
         and n.deleted_at is null and n.kind = any($4::text[])
       order by e.${far} limit least($5::int8, $6::int8)
     ) e
     order by f.id, k.kind, e.reached limit $5`,
  );
const TABLES = {
  along: stepping("lineage.walk.along", ["src", "dst"], "null::text[]"),
  against: stepping("lineage.walk.against", ["dst", "src"], "null::text[]"),
};
const COLUMNS = {
  along: stepping("lineage.walk.columns_along", ["src", "dst"], "e.transformations"),
  against: stepping("lineage.walk.columns_against", ["dst", "src"], "e.transformations"),
};

export interface Step {
  /** Ids of assets of the graph that are there, not more than a walk may find. */
  level: readonly string[];
  kinds: readonly string[];
  /** What may be reached. */
  to: readonly NodeKind[];
  limit: number;
  /** Of one asset of the level by one kind of edges; null if it is all the same how many there are. */
  fanout: number | null;
}

/** To the ends of the edges that leave the level, or to the beginnings of those that lead into it. */
export type How = "along" | "against";

const values = (tenantId: string, { level, kinds, to, limit, fanout }: Step) => [
  tenantId,
  level,
  kinds,
  to,
  limit,
  fanout,
];

export const stepFromTables = (db: Db, tenantId: string, how: How, step: Step): Promise<StepRow[]> =>
  db.read(TABLES[how], values(tenantId, step));
export const stepFromColumns = (db: Db, tenantId: string, how: How, step: Step): Promise<StepRow[]> =>
  db.read(COLUMNS[how], values(tenantId, step));

export interface MetricRow {
  table_id: string;
  kind: string;
  metric_id: string;
  /** The path of the column that the metric measures or filters by. */
  via: string[];
}
const METRICS_OF_TABLES = statement<MetricRow>(
  "lineage.walk.metrics_of_tables",
  `select f.id::text as table_id, e.kind, e.metric_id::text, e.via
   from ${LEVEL} cross join lateral (
     select e.kind, e.src as metric_id, c.path as via
     from lineage.node c join lineage.edge e on e.tenant_id = $1 and e.dst = c.id and e.kind in ('MEASURES', 'FILTERS_BY')
     join lineage.node m on m.tenant_id = $1 and m.id = e.src and m.deleted_at is null
     where c.tenant_id = $1 and c.parent_id = f.id and c.kind = 'COLUMN' and c.deleted_at is null
     order by e.src, e.kind, c.id limit $3
   ) e
   order by f.id, e.metric_id, e.kind, e.via limit $3`,
);
const TABLES_OF_METRICS = statement<MetricRow>(
  "lineage.walk.tables_of_metrics",
  `select t.id::text as table_id, e.kind, f.id::text as metric_id, c.path as via
   from ${LEVEL} join lineage.edge e on e.tenant_id = $1 and e.src = f.id and e.kind in ('MEASURES', 'FILTERS_BY')
   join lineage.node c on c.tenant_id = $1 and c.id = e.dst and c.deleted_at is null
   join lineage.node t on t.tenant_id = $1 and t.id = c.parent_id and t.deleted_at is null
   order by f.id, t.id, e.kind, c.id limit $3`,
);
export const metricsOfTables = (db: Db, tenantId: string, level: readonly string[], limit: number) =>
  db.read(METRICS_OF_TABLES, [tenantId, level, limit]);
export const tablesOfMetrics = (db: Db, tenantId: string, level: readonly string[], limit: number) =>
  db.read(TABLES_OF_METRICS, [tenantId, level, limit]);

const HAS_METRICS = statement<{ yes: boolean }>(
  "lineage.walk.has_metrics",
  `select exists (select from lineage.node n where n.tenant_id = $1 and n.kind = 'METRIC' and n.deleted_at is null) as yes`,
);
/** Most tenants of a compute engine have none, and then the columns of tables need not be looked at. */
export const hasMetrics = async (db: Db, tenantId: string): Promise<boolean> =>
  (await db.read(HAS_METRICS, [tenantId]))[0]?.yes ?? false;
