/** SQL for looking up assets. All reads for people use the read-only pool. */
import type { Db } from "../../../kernel/data/db.ts";
import { statement } from "../../../kernel/data/statement.ts";
import type { Attributes } from "../../graph/facts.ts";
import type { NodeKind } from "../../graph/names.ts";

export interface AssetRow {
  id: string;
  kind: NodeKind;
  path: string[];
  parent_id: string | null;
  description: string | null;
  /** As it is in the events: a text, or a list of texts or of `{name}`. */
  owners: Attributes[string] | null;
}
// A statement has neither, and what it has is long: to look into it means to read it whole.
export const ASSET = `n.id::text, n.kind, n.path, n.parent_id::text,
  case when n.kind <> 'SQL' then n.attributes ->> 'description' end as description,
  case when n.kind <> 'SQL' then coalesce(n.attributes -> 'owners', n.attributes -> 'creator') end as owners`;

const BY_IDS = statement<AssetRow>(
  "lineage.read.assets",
  `select ${ASSET} from lineage.node n where n.tenant_id = $1 and n.id = any($2::int8[]) and n.deleted_at is null`,
);
export const readAssets = (db: Db, tenantId: string, ids: readonly string[]): Promise<AssetRow[]> =>
  ids.length === 0 ? Promise.resolve([]) : db.read(BY_IDS, [tenantId, ids]);

const BY_KEYS = statement<AssetRow>(
  "lineage.read.assets_by_key",
  `select ${ASSET} from lineage.node n
   where n.tenant_id = $1 and n.key = any($2::uuid[]) and n.deleted_at is null order by n.id`,
);
export const readAssetsByKey = (db: Db, tenantId: string, keys: readonly string[]): Promise<AssetRow[]> =>
  db.read(BY_KEYS, [tenantId, keys]);

const BY_NAME = statement<AssetRow>(
  "lineage.read.assets_by_name",
  `select ${ASSET} from lineage.node n
   where n.tenant_id = $1 and n.kind = any($2::text[]) and left(n.name, 128) = any($3::text[]) and n.deleted_at is null
   order by n.kind, left(n.name, 128), n.id limit $4`,
);
/** `names` as people write them: an index holds their beginnings only. */
export const readAssetsByName = (
  db: Db,
  tenantId: string,
  kinds: readonly NodeKind[],
  names: readonly string[],
  limit: number,
): Promise<AssetRow[]> => db.read(BY_NAME, [tenantId, kinds, names.map((name) => name.slice(0, 128)), limit]);

export interface Page {
  after: { kind: string; name: string; id: string } | null;
  limit: number;
}
export type ListedRow = AssetRow & { indexed_name: string };

// The order of the index. The first page comes after what is less than any kind.
const LIST = statement<ListedRow>(
  "lineage.read.list",
  `select ${ASSET}, left(n.name, 128) as indexed_name from lineage.node n
   where n.tenant_id = $1 and n.deleted_at is null and (n.kind, left(n.name, 128), n.id) > ($2, $3, $4::int8)
   order by n.kind, left(n.name, 128), n.id limit $5`,
);
const LIST_KIND = statement<ListedRow>(
  "lineage.read.list_kind",
  `select ${ASSET}, left(n.name, 128) as indexed_name from lineage.node n
   where n.tenant_id = $1 and n.deleted_at is null and n.kind = $5 and (left(n.name, 128), n.id) > ($2, $3::int8)
   order by left(n.name, 128), n.id limit $4`,
);
export function listAssets(
  db: Db,
  tenantId: string,
  kind: NodeKind | null,
  { after, limit }: Page,
): Promise<ListedRow[]> {
  const { kind: afterKind, name, id } = after ?? { kind: "", name: "", id: "0" };
  if (kind === null) return db.read(LIST, [tenantId, afterKind, name, id, limit]);
  return db.read(LIST_KIND, [tenantId, name, id, limit, kind]);
}

const LIST_BELOW = statement<ListedRow>(
  "lineage.read.list_below",
  `select ${ASSET}, left(n.name, 128) as indexed_name from lineage.node n
   where n.tenant_id = $1 and n.parent_id = $6 and n.deleted_at is null and ($7::text is null or n.kind = $7)
     and (n.kind, left(n.name, 128), n.id) > ($2, $3, $4::int8)
   order by n.kind, left(n.name, 128), n.id limit $5`,
);
export function listBelow(
  db: Db,
  tenantId: string,
  below: { parentId: string; kind: NodeKind | null },
  { after, limit }: Page,
): Promise<ListedRow[]> {
  const { kind, name, id } = after ?? { kind: "", name: "", id: "0" };
  return db.read(LIST_BELOW, [tenantId, kind, name, id, limit, below.parentId, below.kind]);
}
