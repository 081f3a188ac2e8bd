/** The answers of the two graphs: where to start, the walk, and what is shown of what it found. */
import type { Db } from "../../kernel/data/db.ts";
import { invalid } from "../../kernel/errors.ts";
import type { NodeKind } from "../names.ts";
import { type AssetRow, readAssets } from "../store/reads.ts";
import { passagesOf, transformationsOf, walkColumns } from "./columns.ts";
import { assetById, findAsset } from "./find.ts";
import type { Direction, Link } from "./findings.ts";
import { type Walked, walkTables } from "./graph.ts";
import { shown } from "./shown.ts";

export interface GraphAsked {
  node: string;
  direction: Direction | "both";
  depth: number;
  nodesMax: number;
  edgesMax: number;
}

/** A page that takes longer is of no use to whoever waits for it. */
const TIME_MS = 2_000;
/** Where a walk over tables can begin. */
export const TABLE_GRAPH: ReadonlySet<NodeKind> = new Set(["TABLE", "METRIC", "SQL", "JOB"]);
const COLUMN_GRAPH: ReadonlySet<NodeKind> = new Set(["COLUMN", "METRIC", "TABLE"]);

export async function tableGraph(db: Db, tenantId: string, asked: GraphAsked, now: () => number) {
  const started = now();
  const start = await tableStart(db, tenantId, await findAsset(db, tenantId, asked.node));
  const walked = await walkTables(db, tenantId, walkOf(start, asked), now);
  const { rows, links } = await settled(db, tenantId, walked);
  const { distances } = walked.findings;
  return {
    ...told(start, walked),
    nodes: rows.map((row) => ({ ...shown(row), distance: distances.get(row.id) ?? 0 })),
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
  const passages = passagesOf(start.id, walked.findings);
  return {
    ...told(start, walked),
    nodes: rows.map((row) => {
      const { isDirect = false, isMasked = false } = passages.get(row.id) ?? {};
      return { ...shown(row), distance: distances.get(row.id) ?? 0, isDirect, isMasked };
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

/** Of a column, the graph of tables begins with its table. */
async function tableStart(db: Db, tenantId: string, asset: AssetRow): Promise<AssetRow> {
  const start =
    asset.kind === "COLUMN" && asset.parent_id !== null ? await assetById(db, tenantId, asset.parent_id) : asset;
  if (!TABLE_GRAPH.has(start.kind)) throw outside(start, "tables, columns, metrics, statements and jobs");
  return start;
}

export function outside({ id, kind }: AssetRow, inside: string): Error {
  return invalid(`Asset ${id} is a ${kind}, and the graph is one of ${inside}. Ask for one of those`);
}

function walkOf(start: AssetRow, { direction, depth, nodesMax, edgesMax }: GraphAsked) {
  const directions: readonly Direction[] = direction === "both" ? ["up", "down"] : [direction];
  return { start, directions, depth, nodesMax, edgesMax, timeMs: TIME_MS };
}

function told(start: AssetRow, { findings, depthReached }: Walked) {
  const reason = findings.cut() ?? null;
  return { start: start.id, partial: reason !== null, reason, depthReached };
}

/** What may be gone since the walk is left out, with all that leads to it. */
async function settled(db: Db, tenantId: string, { findings }: Walked): Promise<{ rows: AssetRow[]; links: Link[] }> {
  const ids = [...findings.distances.keys()];
  const found = new Map((await readAssets(db, tenantId, ids)).map((row) => [row.id, row]));
  return {
    rows: ids.flatMap((id) => found.get(id) ?? []),
    links: [...findings.links].filter(({ from, to }) => found.has(from) && found.has(to)),
  };
}
