/** SQL for the page of one asset: its attributes, parents, children, tags, and the events that name it. */
import type { Db } from "../../../kernel/data/db.ts";
import { statement } from "../../../kernel/data/statement.ts";
import type { Attributes } from "../../graph/facts.ts";
import type { NodeKind } from "../../graph/names.ts";
import { ATTRIBUTES } from "./attributes.ts";

export interface DetailRow {
  id: string;
  kind: NodeKind;
  key: string;
  path: string[];
  parent_id: string | null;
  /** Of a dropped asset, those that it had last. */
  attributes: Attributes;
  created_at: Date;
  updated_at: Date;
  deleted_at: Date | null;
  summary: string | null;
  summary_tags: string[] | null;
  generated_at: Date | null;
  executions: string | null;
  last_execution_at: string | null;
  is_embedded: boolean;
}
const DETAIL = statement<DetailRow>(
  "lineage.read.asset",
  `select n.id::text, n.kind, n.key, n.path, n.parent_id::text, ${ATTRIBUTES} as attributes,
          n.created_at, n.updated_at, n.deleted_at, s.summary, s.tags as summary_tags, s.generated_at, x.executions::text, x.last_at::text as last_execution_at,
          exists (select from lineage.embedding v where v.tenant_id = n.tenant_id and v.node_id = n.id) as is_embedded
   from lineage.node n
   left join lineage.summary s on s.tenant_id = n.tenant_id and s.node_id = n.id
   left join lineage.execution_count x on x.tenant_id = n.tenant_id and x.node_id = n.id
   where n.tenant_id = $1 and n.id = $2`,
);
/** Also of an asset that was dropped. */
export const readDetail = async (db: Db, tenantId: string, id: string): Promise<DetailRow | undefined> =>
  (await db.read(DETAIL, [tenantId, id]))[0];

export interface LineRow {
  id: string;
  kind: NodeKind;
  key: string;
  path: string[];
  deleted_at: Date | null;
}
const ABOVE = statement<LineRow>(
  "lineage.read.above",
  `with recursive line as (
     select n.id, n.parent_id, 0 as step from lineage.node n where n.tenant_id = $1 and n.id = $2
     union all
     select p.id, p.parent_id, l.step + 1 from line l
     join lineage.node p on p.tenant_id = $1 and p.id = l.parent_id where l.step < 8
   )
   select n.id::text, n.kind, n.key, n.path, n.deleted_at from line l
   join lineage.node n on n.tenant_id = $1 and n.id = l.id where l.step > 0 order by l.step desc`,
);
/** The catalog first, its parent last. */
export const readAbove = (db: Db, tenantId: string, id: string): Promise<LineRow[]> => db.read(ABOVE, [tenantId, id]);

export interface ColumnRow {
  id: string;
  path: string[];
  attributes: Attributes;
  value_domains: string[] | null;
}
const COLUMNS = statement<ColumnRow>(
  "lineage.read.columns",
  `select n.id::text, n.path, n.attributes, (
            select array_agg(d.path[1] order by d.path[1]) from lineage.edge e
            join lineage.node d on d.tenant_id = e.tenant_id and d.id = e.dst and d.deleted_at is null
            where e.tenant_id = $1 and e.src = n.id and e.kind = 'HAS_VALUE_DOMAIN'
          ) as value_domains
   from lineage.node n where n.tenant_id = $1 and n.parent_id = $2 and n.kind = 'COLUMN' and n.deleted_at is null
   order by case when jsonb_typeof(n.attributes -> 'position') = 'number' then (n.attributes ->> 'position')::numeric end, n.id
   limit $3`,
);
const COLUMNS_OF_DROPPED = statement<ColumnRow>(
  "lineage.read.columns_of_dropped",
  `select n.id::text, n.path, ${ATTRIBUTES} as attributes, null::text[] as value_domains
   from lineage.node t join lineage.node n on n.tenant_id = $1 and n.parent_id = t.id and n.deleted_at = t.deleted_at
   where t.tenant_id = $1 and t.id = $2 and n.kind = 'COLUMN'
   order by case when jsonb_typeof(n.last_attributes -> 'position') = 'number'
                 then (n.last_attributes ->> 'position')::numeric end, n.id
   limit $3`,
);
/** Those that were dropped with their table: columns that were dropped before it are left out. */
export const readColumnsOfDropped = (db: Db, tenantId: string, tableId: string, limit: number): Promise<ColumnRow[]> =>
  db.read(COLUMNS_OF_DROPPED, [tenantId, tableId, limit]);

/** In the order of the table. */
export const readColumns = (db: Db, tenantId: string, tableId: string, limit: number): Promise<ColumnRow[]> =>
  db.read(COLUMNS, [tenantId, tableId, limit]);

export interface LabelRow {
  id: string;
  kind: "TAG" | "VALUEDOMAIN";
  path: string[];
  attributes: Attributes;
}
const LABELS = statement<LabelRow>(
  "lineage.read.labels",
  `select n.id::text, n.kind, n.path, n.attributes from lineage.edge e
   join lineage.node n on n.tenant_id = e.tenant_id and n.id = e.dst and n.deleted_at is null
   where e.tenant_id = $1 and e.src = $2 and e.kind in ('HAS_TAG', 'HAS_VALUE_DOMAIN') order by n.kind, n.path limit 1000`,
);
/** Its tags and value domains. */
export const readLabels = (db: Db, tenantId: string, id: string): Promise<LabelRow[]> =>
  db.read(LABELS, [tenantId, id]);

export interface NeighbourRow {
  kind: string;
  side: "in" | "out";
  count: number;
}
// Counted up to a bound: a table may be read by a million statements.
const NEIGHBOURS = statement<NeighbourRow>(
  "lineage.read.neighbours",
  `select k.kind, 'out' as side, c.count::int from unnest($3::text[]) k(kind) cross join lateral (
     select count(*) from (
       select from lineage.edge e join lineage.node n on n.tenant_id = e.tenant_id and n.id = e.dst and n.deleted_at is null
       where e.tenant_id = $1 and e.src = $2 and e.kind = k.kind limit $4) x) c
   union all
   select k.kind, 'in', c.count::int from unnest($3::text[]) k(kind) cross join lateral (
     select count(*) from (
       select from lineage.edge e join lineage.node n on n.tenant_id = e.tenant_id and n.id = e.src and n.deleted_at is null
       where e.tenant_id = $1 and e.dst = $2 and e.kind = k.kind limit $4) x) c`,
);
export const readNeighbours = (db: Db, tenantId: string, id: string, kinds: readonly string[], countMax: number) =>
  db.read(NEIGHBOURS, [tenantId, id, kinds, countMax]);

// By way of the names that were renamed to it, of those that became these, and of those that stand for any of them.
const KEYS = statement<{ key: string }>(
  "lineage.read.keys_of_names",
  `with recursive named as (
     select $2::uuid as key
     union
     select f.key from named n cross join lateral (
       select e.key from lineage.ending e where e.tenant_id = $1 and e.to_key = n.key
       union all
       select a.key from lineage.alias a where a.tenant_id = $1 and a.to_key = n.key
     ) f
   )
   select key from named limit 100`,
);
/** The keys of the name that the asset has, and of all that it had or has beside it. */
export const readKeys = async (db: Db, tenantId: string, key: string): Promise<string[]> =>
  (await db.read(KEYS, [tenantId, key])).map((row) => row.key);

// A full sync lists the columns of a table: the one that is asked for may be among them or not.
const DROPS = statement<DropRow>(
  "lineage.read.drops",
  `select e.subject, e.at::text, e.kind = 'dropped' as is_drop, e.kind = 'listed' and $4::text = any(e.columns) as is_there from lineage.ending e
   where e.tenant_id = $1 and ((e.key = any($2::uuid[]) and e.kind = 'dropped') or (e.key = $3::uuid and e.kind = 'listed'))
   order by e.at desc limit 100`,
);
export interface DropRow {
  /** The asset that events mention: of a column its table. */
  subject: string;
  at: string;
  /** False of a full sync. */
  is_drop: boolean;
  /** A full sync has found the column. */
  is_there: boolean;
}
/** When these were dropped, the newest first; and, for a column of the table, what full syncs found of it. */
export const readDrops = (
  db: Db,
  tenantId: string,
  keys: readonly string[],
  column: { table: string; name: string } | null,
): Promise<DropRow[]> => db.read(DROPS, [tenantId, keys, column?.table ?? null, column?.name ?? null]);
