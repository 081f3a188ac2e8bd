/** Reads for the page of one asset, and for lists of assets. */
import type { Db } from "../../kernel/data/db.ts";
import { parseWithin } from "../../kernel/json/complexity.ts";
import { lineageError } from "../catalogue.ts";
import { type NodeKind, ownName } from "../graph/names.ts";
import { dropOf } from "./dropped.ts";
import { eventReply, timeOf } from "./events.ts";
import { assetById, findNamed, isId } from "./find.ts";
import { NEIGHBOUR_COUNT_MAX } from "./neighbours.ts";
import { fullName, type ShownAsset, shown } from "./shown.ts";
import {
  type ColumnRow,
  type DetailRow,
  type LineRow,
  readAbove,
  readColumns,
  readColumnsOfDropped,
  readDetail,
  readKeys,
  readLabels,
  readNeighbours,
} from "./store/asset.ts";
import { type AssetRow, type ListedRow, listAssets, listBelow, type Page } from "./store/assets.ts";
import { listEventsNaming } from "./store/events.ts";

const COLUMNS_MAX = 2_000;
const CHILDREN_MAX = 100;
const HISTORY_MAX = 20;

/** Kinds of edges, by what the asset at the other end is to this one. */
const NEIGHBOURS = [
  { side: "out", kind: "INPUT_OF", as: "readBy" },
  { side: "in", kind: "OUTPUT_TO", as: "writtenBy" },
  { side: "in", kind: "INPUT_OF", as: "reads" },
  { side: "out", kind: "OUTPUT_TO", as: "writes" },
  { side: "out", kind: "DERIVES_FROM", as: "derivesFrom" },
  { side: "in", kind: "DERIVES_FROM", as: "derivedBy" },
  { side: "out", kind: "MEASURES", as: "measures" },
  { side: "in", kind: "MEASURES", as: "measuredBy" },
  { side: "out", kind: "FILTERS_BY", as: "filtersBy" },
  { side: "in", kind: "FILTERS_BY", as: "filteredBy" },
  { side: "out", kind: "DERIVED_FROM", as: "derivedFrom" },
  { side: "in", kind: "DERIVED_FROM", as: "parentOf" },
  { side: "out", kind: "COMPUTED_FROM", as: "computedFrom" },
  { side: "in", kind: "COMPUTED_FROM", as: "partOf" },
  { side: "in", kind: "HAS_TAG", as: "tagged" },
  { side: "in", kind: "HAS_VALUE_DOMAIN", as: "valueDomainOf" },
] as const;
const KINDS = [...new Set(NEIGHBOURS.map(({ kind }) => kind))];

export async function assetDetail(db: Db, tenantId: string, id: string) {
  const row = isId(id) ? await readDetail(db, tenantId, id) : undefined;
  if (!row) throw lineageError("ASSET_NOT_FOUND", { asset: id });
  const above = await readAbove(db, tenantId, id);
  const isDropped = row.deleted_at !== null;
  const columnsOf = isDropped ? readColumnsOfDropped : readColumns;
  const columns = row.kind === "TABLE" ? await columnsOf(db, tenantId, id, COLUMNS_MAX + 1) : [];
  const isTree = !isDropped && (row.kind === "CATALOG" || row.kind === "SCHEMA");
  const children = isTree ? await below(db, tenantId, { parentId: id, kind: null }, CHILDREN_MAX, null) : noChildren;
  // The edges of a dropped asset are deleted.
  const labels = isDropped ? [] : await readLabels(db, tenantId, id);
  const counts = isDropped ? [] : await readNeighbours(db, tenantId, id, KINDS, NEIGHBOUR_COUNT_MAX);
  const keys = await readKeys(db, tenantId, subjectKey(row, above));
  const events = await listEventsNaming(db, tenantId, keys, { after: null, from: null, to: null }, HISTORY_MAX);
  const drop = await dropOf(db, tenantId, row, above);
  const { description } = row.attributes;
  return {
    id: row.id,
    kind: row.kind,
    name: ownName(row),
    fullName: fullName(row),
    path: row.path,
    description: typeof description === "string" ? description : null,
    attributes: row.attributes,
    parents: above.map((one) => ({ id: one.id, kind: one.kind, name: ownName(one) })),
    columns: columns.slice(0, COLUMNS_MAX).map(columnOf),
    hasMoreColumns: columns.length > COLUMNS_MAX,
    children: children.items,
    childrenNext: children.next,
    tags: labels
      .filter(({ kind }) => kind === "TAG")
      .map(({ id: tagId, path }) => ({ id: tagId, name: path[0] ?? "" })),
    valueDomains: labels
      .filter(({ kind }) => kind === "VALUEDOMAIN")
      .map((domain) => ({ id: domain.id, code: domain.path[0] ?? "", attributes: domain.attributes })),
    summary:
      row.summary === null
        ? null
        : { text: row.summary, tags: row.summary_tags ?? [], generatedAt: row.generated_at ?? row.updated_at },
    isEmbedded: row.is_embedded,
    executions: row.executions === null ? 0 : Number(row.executions),
    lastExecutionAt: row.last_execution_at === null ? null : timeOf(row.last_execution_at),
    neighbours: Object.fromEntries(
      NEIGHBOURS.map(({ as, kind, side }): [string, number] => [
        as,
        counts.find((one) => one.kind === kind && one.side === side)?.count ?? 0,
      ]).filter(([, count]) => count > 0),
    ),
    neighbourCountMax: NEIGHBOUR_COUNT_MAX,
    otherNames: keys.length - 1,
    history: events.map(eventReply),
    firstSeenAt: row.created_at,
    lastSeenAt: events[0] ? timeOf(events[0].at) : null,
    updatedAt: row.updated_at,
    ...drop,
  };
}

/** Events name tables, so the events of a column are those of its table. */
function subjectKey({ kind, key }: DetailRow, above: readonly LineRow[]): string {
  return kind === "COLUMN" ? (above.at(-1)?.key ?? key) : key;
}

/** The keys of all names of an asset, as events use them. */
export async function keysOf(db: Db, tenantId: string, id: string): Promise<string[]> {
  const row = isId(id) ? await readDetail(db, tenantId, id) : undefined;
  if (!row) throw lineageError("ASSET_NOT_FOUND", { asset: id });
  const above = row.kind === "COLUMN" ? await readAbove(db, tenantId, id) : [];
  return readKeys(db, tenantId, subjectKey(row, above));
}

function columnOf(row: ColumnRow) {
  return {
    id: row.id,
    name: row.path.at(-1) ?? "",
    attributes: row.attributes,
    valueDomains: row.value_domains ?? [],
  };
}

export interface AssetsQuery {
  kind: NodeKind | null;
  name: string | null;
  parent: string | null;
  limit: number;
  after: Page["after"];
}
export interface AssetList {
  items: ShownAsset[];
  next: string | null;
}
const noChildren: AssetList = { items: [], next: null };

/** By name, those that lie in another, or all; in the order of kind and name. */
export async function listed(db: Db, tenantId: string, query: AssetsQuery): Promise<AssetList> {
  const { kind, name, parent, limit, after } = query;
  if (name !== null) {
    const named = await findNamed(db, tenantId, kind, name, limit);
    return { items: named.filter((row) => parent === null || row.parent_id === parent).map(shown), next: null };
  }
  if (parent !== null) {
    const { id } = await assetById(db, tenantId, parent);
    return below(db, tenantId, { parentId: id, kind }, limit, after);
  }
  return pageOf(await listAssets(db, tenantId, kind, { after, limit: limit + 1 }), limit);
}

async function below(
  db: Db,
  tenantId: string,
  where: { parentId: string; kind: NodeKind | null },
  limit: number,
  after: Page["after"],
): Promise<AssetList> {
  return pageOf(await listBelow(db, tenantId, where, { after, limit: limit + 1 }), limit);
}

function pageOf(rows: readonly ListedRow[], limit: number): AssetList {
  const items = rows.slice(0, limit);
  const last = rows.length > limit ? items.at(-1) : undefined;
  return { items: items.map((row: AssetRow) => shown(row)), next: last ? cursorOf(last) : null };
}

function cursorOf({ kind, indexed_name, id }: ListedRow): string {
  return Buffer.from(JSON.stringify([kind, indexed_name, id])).toString("base64url");
}

/** Nothing if the text is none of ours. */
export function afterOf(cursor: string): Page["after"] {
  try {
    const value: unknown = parseWithin(Buffer.from(cursor, "base64url").toString());
    if (!Array.isArray(value) || value.length !== 3) return null;
    const [kind, name, id] = value as unknown[];
    if (typeof kind !== "string" || typeof name !== "string" || typeof id !== "string" || !isId(id)) return null;
    return name.isWellFormed() && !name.includes("\0") && !kind.includes("\0") && kind.isWellFormed()
      ? { kind, name, id }
      : null;
  } catch {
    return null;
  }
}
