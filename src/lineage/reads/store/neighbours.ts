/** SQL for the direct neighbours of assets: their number, and pages of them. */
import type { Db } from "../../../kernel/data/db.ts";
import { statement } from "../../../kernel/data/statement.ts";
import type { NodeKind } from "../../graph/names.ts";
import { ASSET, type AssetRow } from "./assets.ts";
import type { How } from "./walk.ts";

export interface CountRow {
  id: string;
  kind: string;
  count: number;
}
const counting = (name: string, [near, far]: ["src", "dst"] | ["dst", "src"]) =>
  statement<CountRow>(
    name,
    `select f.id::text, k.kind, c.count::int
     from unnest($2::int8[]) f(id) cross join unnest($3::text[]) k(kind) cross join lateral (
       select count(*) from (
         select from lineage.edge e join lineage.node n on n.tenant_id = $1 and n.id = e.${far}
         where e.tenant_id = $1 and e.${near} = f.id and e.kind = k.kind and n.deleted_at is null
           and (n.kind = any($4::text[]) or k.kind in ('MEASURES', 'FILTERS_BY'))
         limit $5) x) c
     where c.count > 0`,
  );
const COUNTS = {
  along: counting("lineage.neighbours.count_along", ["src", "dst"]),
  against: counting("lineage.neighbours.count_against", ["dst", "src"]),
};

export interface Counted {
  ids: readonly string[];
  kinds: readonly string[];
  /** What counts at the other end; columns count for the metrics that measure or filter by them. */
  to: readonly NodeKind[];
  /** Of one asset by one kind of edges; as many means: at least so many. */
  countMax: number;
}
export const countNeighbours = (db: Db, tenantId: string, how: How, { ids, kinds, to, countMax }: Counted) =>
  db.read(COUNTS[how], [tenantId, ids, kinds, to, countMax]);

export interface NeighbourRow extends AssetRow {
  edge_kind: string;
  executions: string | null;
  last_execution_at: string | null;
}
export interface EdgePlace {
  kind: string;
  id: string;
}

// A name is looked for in as many as the scan may read, so a page may hold fewer than were asked for and not be the last.
const LIST = statement<(NeighbourRow | { id: null }) & { scanned: number; end_kind: string; end_id: string }>(
  "lineage.neighbours.list",
  `with scanned as materialized (
     (select e.kind, e.dst as far from lineage.edge e
      where e.tenant_id = $1 and e.src = $2 and e.kind = any($3::text[]) and (e.kind, e.dst) > ($5, $6::int8)
      order by e.kind, e.dst limit $8)
     union all
     (select e.kind, e.src from lineage.edge e
      where e.tenant_id = $1 and e.dst = $2 and e.kind = any($4::text[]) and (e.kind, e.src) > ($5, $6::int8)
      order by e.kind, e.src limit $8)
     order by 1, 2 limit $8
   ), last as (
     select count(*)::int as scanned, (array_agg(s.kind))[count(*)] as end_kind, (array_agg(s.far))[count(*)]::text as end_id
     from scanned s
   )
   select m.*, l.scanned, l.end_kind, l.end_id from last l left join (
     select ${ASSET}, s.kind as edge_kind, x.executions::text, x.last_at::text as last_execution_at
     from scanned s join lineage.node n on n.tenant_id = $1 and n.id = s.far and n.deleted_at is null
     left join lineage.execution_count x on x.tenant_id = $1 and x.node_id = n.id
     where $7::text is null or strpos(lower(array_to_string(n.path, '.')), lower($7)) > 0
     order by s.kind, s.far limit $9
   ) m on true`,
);
const SCANNED_MAX = 20_000;

export interface NeighboursAsked {
  id: string;
  along: readonly string[];
  against: readonly string[];
  q: string | null;
  after: EdgePlace | null;
  limit: number;
}
export interface ScannedNeighbours {
  rows: NeighbourRow[];
  /** The last that was looked at, if there may be more behind it. */
  end: EdgePlace | null;
}

/** In the order of the kind of edges and of ids. */
export async function listNeighbours(
  db: Db,
  tenantId: string,
  { id, along, against, q, after, limit }: NeighboursAsked,
): Promise<ScannedNeighbours> {
  const scanMax = q === null ? limit + 1 : SCANNED_MAX;
  const place = after ?? { kind: "", id: "0" };
  const values = [tenantId, id, along, against, place.kind, place.id, q, scanMax, limit + 1];
  const rows = await db.read(LIST, values);
  const found = rows.filter((row): row is (typeof rows)[number] & NeighbourRow => row.id !== null);
  const items = found.slice(0, limit);
  const last = items.at(-1);
  if (found.length > limit && last) return { rows: items, end: { kind: last.edge_kind, id: last.id } };
  const [{ scanned, end_kind, end_id } = { scanned: 0, end_kind: "", end_id: "0" }] = rows;
  return { rows: items, end: scanned === scanMax ? { kind: end_kind, id: end_id } : null };
}

const LAST_RUNS = statement<{ id: string; last_at: string }>(
  "lineage.neighbours.last_runs",
  `select x.node_id::text as id, x.last_at::text from lineage.execution_count x
   where x.tenant_id = $1 and x.node_id = any($2::int8[])`,
);
/** When statements and jobs ran last, in microseconds, by id. */
export const readLastRuns = async (db: Db, tenantId: string, ids: readonly string[]): Promise<Map<string, string>> =>
  new Map((await db.read(LAST_RUNS, [tenantId, ids])).map(({ id, last_at }) => [id, last_at]));
