/** Everything that would feel a change of an asset, as a list to work through: nearest first, with the way to each. */
import type { Db } from "../../kernel/data/db.ts";
import { type AssetRow, readAssets } from "../store/reads.ts";
import { walkColumns } from "./columns.ts";
import { csvOf } from "./csv.ts";
import type { CutReason, Findings, Limits } from "./findings.ts";
import { walkTables } from "./graph.ts";
import { outside, TABLE_GRAPH } from "./graph-reply.ts";
import { fullName, type ShownAsset, shown } from "./shown.ts";

export interface Affected extends ShownAsset {
  distance: number;
  /** What lies between, from the asset that would change to this one. */
  via: string[];
}
export interface Impact {
  items: Affected[];
  reason: CutReason | null;
}

const LIMITS: Limits = { nodesMax: 10_000, edgesMax: 50_000, timeMs: 5_000 };
/** No chain of tables is that long; one that goes round in a circle ends by itself. */
const DEPTH = 100;
/** Of one way. */
const VIA_MAX = 50;

export async function impactOf(db: Db, tenantId: string, start: AssetRow, now: () => number): Promise<Impact> {
  const walk = walkFor(start);
  const { findings } = await walk(db, tenantId, { ...LIMITS, start, directions: ["down"], depth: DEPTH }, now);
  const ids = [...findings.distances.keys()].filter((id) => id !== start.id);
  const rows = new Map((await readAssets(db, tenantId, ids)).map((row) => [row.id, row]));
  const items = ids.flatMap((id): Affected[] => {
    const row = rows.get(id);
    if (!row) return []; // Gone since the walk.
    return [{ ...shown(row), distance: findings.distances.get(id) ?? 0, via: wayTo(id, start.id, findings, rows) }];
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

/** Not by the language of whoever asks: a list that is compared with last week's has the same order. */
function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

export function impactCsv({ items }: Impact): string {
  const header = ["distance", "kind", "id", "name", "owner", "via", "description"];
  return csvOf(
    header,
    items.map(({ distance, kind, id, fullName: name, owner, via, description }) => [
      distance,
      kind,
      id,
      name,
      owner,
      via.join(" > "),
      description,
    ]),
  );
}
