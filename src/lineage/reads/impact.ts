/** Everything downstream of an asset that a change of it affects, as a list: nearest first, with the path to each. */
import type { Db } from "../../kernel/data/db.ts";
import { type Transformation, transformationsOf, walkColumns } from "./columns.ts";
import { csvOf } from "./csv.ts";
import { timeOf } from "./events.ts";
import type { CutReason, Findings, Limits } from "./findings.ts";
import { walkTables } from "./graph.ts";
import { outside, TABLE_GRAPH } from "./graph-reply.ts";
import { fullName, type ShownAsset, shown } from "./shown.ts";
import { type AssetRow, readAssets } from "./store/assets.ts";
import { readLastRuns } from "./store/neighbours.ts";

export interface Affected extends ShownAsset {
  distance: number;
  /** What lies between, from the asset that would change to this one. */
  via: string[];
  /** What becomes of the values of a column on the last step. */
  transformations: Transformation[];
  /** Of the statement or job itself, or of the one that writes it. */
  lastRunAt: string | null;
}
export interface Impact {
  items: Affected[];
  reason: CutReason | null;
}

const LIMITS: Limits = { nodesMax: 10_000, edgesMax: 50_000, timeMs: 5_000 };
/** No path of tables is that long; a cycle ends when it reaches a known table. */
const DEPTH = 100;
/** Of one way. */
const VIA_MAX = 50;

export async function impactOf(db: Db, tenantId: string, start: AssetRow, now: () => number): Promise<Impact> {
  const walk = walkFor(start);
  const asked = { ...LIMITS, start, directions: ["down"] as const, depth: DEPTH, fanout: null, expand: [] };
  const { findings } = await walk(db, tenantId, asked, now);
  const ids = [...findings.distances.keys()].filter((id) => id !== start.id);
  const rows = new Map((await readAssets(db, tenantId, ids)).map((row) => [row.id, row]));
  const tables = await tablesOf(db, tenantId, rows);
  const runs = await readLastRuns(db, tenantId, ids);
  const items = ids.flatMap((id): Affected[] => {
    const row = rows.get(id);
    if (!row) return []; // Gone since the walk.
    const link = findings.foundBy.get(id);
    const ranAt = runs.get(id) ?? runs.get(link?.from ?? "");
    return [
      {
        ...shown(row.owners === null ? { ...row, owners: tables.get(row.parent_id ?? "")?.owners ?? null } : row),
        distance: findings.distances.get(id) ?? 0,
        via: wayTo(id, start.id, findings, rows),
        transformations: link ? transformationsOf(link) : [],
        lastRunAt: ranAt === undefined ? null : timeOf(ranAt),
      },
    ];
  });
  items.sort(
    (a, b) =>
      a.distance - b.distance || compare(a.kind, b.kind) || compare(a.fullName, b.fullName) || compare(a.id, b.id),
  );
  return { items, reason: findings.cut() ?? null };
}

/** Of a column, the columns and metrics that come from it: its table is read by much that does not use it. */
function walkFor(start: AssetRow): typeof walkTables {
  if (start.kind === "COLUMN") return walkColumns;
  if (!TABLE_GRAPH.has(start.kind)) throw outside(start, "tables, columns, metrics, statements and jobs");
  return walkTables;
}

/** The tables of columns: the owner of a table is the owner of its columns. */
async function tablesOf(db: Db, tenantId: string, rows: ReadonlyMap<string, AssetRow>): Promise<Map<string, AssetRow>> {
  const ids = [...rows.values()].flatMap(({ kind, parent_id }) =>
    kind === "COLUMN" && parent_id !== null ? [parent_id] : [],
  );
  return new Map((await readAssets(db, tenantId, [...new Set(ids)])).map((row) => [row.id, row]));
}

function wayTo(id: string, start: string, { foundBy }: Findings, rows: ReadonlyMap<string, AssetRow>): string[] {
  const way: string[] = [];
  for (
    let at = foundBy.get(id)?.from;
    at !== undefined && at !== start && way.length < VIA_MAX;
    at = foundBy.get(at)?.from
  ) {
    const row = rows.get(at);
    if (row) way.push(fullName(row));
  }
  return way.toReversed();
}

/** Independent of the locale, so that lists of different days can be compared. */
function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

export function impactCsv({ items }: Impact): string {
  const header = ["distance", "kind", "id", "name", "owner", "via", "description", "transformations", "lastRunAt"];
  return csvOf(
    header,
    items.map(({ distance, kind, id, fullName: name, owner, via, description, transformations, lastRunAt }) => [
      distance,
      kind,
      id,
      name,
      owner,
      via.join(" > "),
      description,
      transformations.map(({ type, subtype }) => (subtype === undefined ? type : `${type} ${subtype}`)).join("; "),
      lastRunAt,
    ]),
  );
}
