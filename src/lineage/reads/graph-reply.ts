/** Replies of the graphs of tables and of columns: resolves the start, walks, and shows the result. */
import type { Db } from "../../kernel/data/db.ts";
import { invalid } from "../../kernel/errors.ts";
import type { NodeKind } from "../graph/names.ts";
import { passagesOf, transformationsOf, walkColumns } from "./columns.ts";
import { assetById, findAsset } from "./find.ts";
import type { Direction, Link } from "./findings.ts";
import { type Expansion, type Walked, walkTables } from "./graph.ts";
import { leftOut, type More } from "./neighbours.ts";
import { shown } from "./shown.ts";
import { type AssetRow, readAssets } from "./store/assets.ts";

export interface GraphAsked {
  node: string;
  direction: Direction | "both";
  depth: number;
  nodesMax: number;
  edgesMax: number;
  fanout?: number;
  expand?: readonly Expansion[];
}

/** Nobody waits longer for a page. */
const TIME_MS = 2_000;
/** Where a walk over tables can begin. */
export const TABLE_GRAPH: ReadonlySet<NodeKind> = new Set(["TABLE", "METRIC", "SQL", "JOB"]);
const COLUMN_GRAPH: ReadonlySet<NodeKind> = new Set(["COLUMN", "METRIC", "TABLE"]);
const NONE_LEFT_OUT = () => ({});

export async function tableGraph(db: Db, tenantId: string, asked: GraphAsked, now: () => number) {
  const started = now();
  const start = await tableStart(db, tenantId, await findAsset(db, tenantId, asked.node));
  const walked = await walkTables(db, tenantId, walkOf(start, asked), now);
  const { rows, links } = await settled(db, tenantId, walked);
  const { distances } = walked.findings;
  const more = await moreOf(db, tenantId, asked, rows, links, TABLE_GRAPH);
  return {
    ...extentOf(start, walked),
    nodes: rows.map((row) => ({ ...shown(row), distance: distances.get(row.id) ?? 0, ...more(row.id) })),
    edges: links.map(({ from, to, kind, via }) => (via === undefined ? { from, to, kind } : { from, to, kind, via })),
    tookMs: now() - started,
  };
}

export async function columnGraph(db: Db, tenantId: string, asked: GraphAsked, now: () => number) {
  const started = now();
  const start = await findAsset(db, tenantId, asked.node);
  if (!COLUMN_GRAPH.has(start.kind)) throw outside(start, "columns, metrics and tables");
  const walked = await walkColumns(db, tenantId, walkOf(start, asked), now);
  const { rows, links } = await settled(db, tenantId, walked);
  const { distances } = walked.findings;
  const passages = passagesOf(walked.findings);
  const more = await moreOf(db, tenantId, asked, rows, links, COLUMN_GRAPH);
  return {
    ...extentOf(start, walked),
    nodes: rows.map((row) => {
      const { isDirect = false, isMasked = false } = passages.get(row.id) ?? {};
      return { ...shown(row), distance: distances.get(row.id) ?? 0, isDirect, isMasked, ...more(row.id) };
    }),
    edges: links.map((link) => ({
      from: link.from,
      to: link.to,
      kind: link.kind,
      transformations: transformationsOf(link),
    })),
    tookMs: now() - started,
  };
}

/** Counted only where the walk leaves out some: who asks for everything gets it. */
async function moreOf(
  db: Db,
  tenantId: string,
  { fanout }: GraphAsked,
  rows: readonly AssetRow[],
  links: readonly Link[],
  kinds: ReadonlySet<NodeKind>,
): Promise<(id: string) => Partial<More>> {
  if (fanout === undefined) return NONE_LEFT_OUT;
  return leftOut(
    db,
    tenantId,
    rows.map(({ id }) => id),
    links,
    [...kinds],
  );
}

/** Of a column its table, else the asset itself. */
export async function tableOf(db: Db, tenantId: string, asset: AssetRow): Promise<AssetRow> {
  return asset.kind === "COLUMN" && asset.parent_id !== null ? assetById(db, tenantId, asset.parent_id) : asset;
}

/** Of a column, the graph of tables begins with its table. */
async function tableStart(db: Db, tenantId: string, asset: AssetRow): Promise<AssetRow> {
  const start = await tableOf(db, tenantId, asset);
  if (!TABLE_GRAPH.has(start.kind)) throw outside(start, "tables, columns, metrics, statements and jobs");
  return start;
}

export function outside({ id, kind }: AssetRow, inside: string): Error {
  return invalid(`Asset ${id} is a ${kind}, and the graph is one of ${inside}. Ask for one of those`);
}

function walkOf(start: AssetRow, { direction, depth, nodesMax, edgesMax, fanout, expand = [] }: GraphAsked) {
  const directions: readonly Direction[] = direction === "both" ? ["up", "down"] : [direction];
  return { start, directions, depth, nodesMax, edgesMax, timeMs: TIME_MS, fanout: fanout ?? null, expand };
}

function extentOf(start: AssetRow, { findings, depthReached }: Walked) {
  const reason = findings.cut() ?? null;
  return { start: start.id, partial: reason !== null, reason, depthReached };
}

/** Assets that were deleted since the walk are left out, with their edges. */
async function settled(db: Db, tenantId: string, { findings }: Walked): Promise<{ rows: AssetRow[]; links: Link[] }> {
  const ids = [...findings.distances.keys()];
  const found = new Map((await readAssets(db, tenantId, ids)).map((row) => [row.id, row]));
  return {
    rows: ids.flatMap((id) => found.get(id) ?? []),
    links: [...findings.links].filter(({ from, to }) => found.has(from) && found.has(to)),
  };
}
