/** The paths of data between two assets: found by one walk up from the later one, the shortest first. */
import type { Db } from "../../kernel/data/db.ts";
import { invalid } from "../../kernel/errors.ts";
import { walkColumns } from "./columns.ts";
import { findAsset } from "./find.ts";
import type { CutReason, Findings, Limits, Link } from "./findings.ts";
import { walkTables } from "./graph.ts";
import { outside, TABLE_GRAPH, tableOf } from "./graph-reply.ts";
import { shown } from "./shown.ts";
import { type AssetRow, readAssets } from "./store/assets.ts";

const LIMITS: Limits = { nodesMax: 10_000, edgesMax: 50_000, timeMs: 5_000 };
const DEPTH = 100;
/** A count that is equal to it means: at least so many. */
const PATH_COUNT_MAX = 1_000;
/** Steps of the search for paths: circles may make it look at many that lead nowhere. */
const STEPS_MAX = 200_000;

export interface PathsAsked {
  from: string;
  to: string;
  limit: number;
}

/** Data may go from the first to the second, or the other way: `direction` says which was found. */
export async function pathsBetween(db: Db, tenantId: string, asked: PathsAsked, now: () => number) {
  const ends = [await findAsset(db, tenantId, asked.from), await findAsset(db, tenantId, asked.to)] as const;
  const isOfColumns = ends.some(({ kind }) => kind === "COLUMN") && ends.every(({ kind }) => COLUMN_ENDS.has(kind));
  const [from, to] = isOfColumns
    ? ends
    : [await tableEnd(db, tenantId, ends[0]), await tableEnd(db, tenantId, ends[1])];
  if (from.id === to.id) throw invalid("`from` and `to` are the same asset. Ask for two different ones");
  const walk = isOfColumns ? walkColumns : walkTables;
  const upFrom = async (start: AssetRow) =>
    (await walk(db, tenantId, { ...LIMITS, start, directions: ["up"], depth: DEPTH, fanout: null, expand: [] }, now))
      .findings;

  let reason: CutReason | null = null;
  for (const [first, last, direction] of [
    [from, to, "down"],
    [to, from, "up"],
  ] as const) {
    const findings = await upFrom(last);
    reason ??= findings.cut() ?? null;
    if (!findings.distances.has(first.id)) continue;
    const { isCut, ...found } = shortestPaths(withoutShortcuts([...findings.links]), first.id, last.id, {
      limit: asked.limit,
      countMax: PATH_COUNT_MAX,
      stepsMax: STEPS_MAX,
    });
    return {
      ...answerOf(from, to, reason ?? (isCut ? "STEPS" : null)),
      direction,
      ...found,
      ...(await drawn(db, tenantId, found.paths, findings)),
    };
  }
  return { ...answerOf(from, to, reason), direction: null, paths: [], pathCount: 0, nodes: [], edges: [] };
}

const COLUMN_ENDS: ReadonlySet<string> = new Set(["COLUMN", "METRIC"]);

/** Beside a table, a column stands for its table. */
async function tableEnd(db: Db, tenantId: string, asset: AssetRow): Promise<AssetRow> {
  const end = await tableOf(db, tenantId, asset);
  if (!TABLE_GRAPH.has(end.kind)) throw outside(end, "tables, columns, metrics, statements and jobs");
  return end;
}

function answerOf(from: AssetRow, to: AssetRow, reason: CutReason | "STEPS" | null) {
  return { from: from.id, to: to.id, partial: reason !== null, reason, pathCountMax: PATH_COUNT_MAX };
}

async function drawn(db: Db, tenantId: string, paths: readonly (readonly string[])[], { links }: Findings) {
  const steps = new Set(paths.flatMap((path) => path.slice(1).map((to, index) => `${path[index]} ${to}`)));
  const rows = await readAssets(db, tenantId, [...new Set(paths.flat())]);
  const there = new Set(rows.map(({ id }) => id));
  return {
    nodes: rows.map(shown),
    edges: [...links]
      .filter(({ from, to }) => steps.has(`${from} ${to}`) && there.has(from) && there.has(to))
      .map(({ from, to, kind, via }) => (via === undefined ? { from, to, kind } : { from, to, kind, via })),
  };
}

/**
 * A table that derives from another directly has that edge beside the statement that writes it: the same path once more.
 * Where there is such a statement the edge is left out.
 */
export function withoutShortcuts(links: readonly Link[]): Link[] {
  const written = new Map<string, Set<string>>();
  for (const { from, to, kind } of links)
    if (kind === "OUTPUT_TO") written.set(from, (written.get(from) ?? new Set()).add(to));
  const overStatements = new Set<string>();
  for (const { from, to, kind } of links)
    if (kind === "INPUT_OF") for (const table of written.get(to) ?? []) overStatements.add(`${from} ${table}`);
  return links.filter(({ from, to, kind }) => kind !== "DERIVES_FROM" || !overStatements.has(`${from} ${to}`));
}

interface PathEnd {
  id: string;
  before: PathEnd | undefined;
  length: number;
}

/**
 * The shortest paths without a circle, and how many there are. Paths are lengthened in the order of the length that they have at
 * the end at least, so the first one costs as many steps as it has assets. `isCut`: the search stopped at its limit of steps.
 */
export function shortestPaths(
  links: readonly Link[],
  from: string,
  to: string,
  { limit, countMax, stepsMax }: { limit: number; countMax: number; stepsMax: number },
): { paths: string[][]; pathCount: number; isCut: boolean } {
  const left = distancesTo(to, links);
  const next = new Map<string, Set<string>>();
  for (const link of links) {
    if (!left.has(link.to)) continue;
    next.set(link.from, (next.get(link.from) ?? new Set()).add(link.to));
  }
  const open: PathEnd[][] = [];
  const push = (end: PathEnd) => {
    const whole = end.length + (left.get(end.id) ?? 0);
    open[whole] = open[whole] ?? [];
    open[whole].push(end);
  };
  const paths: string[][] = [];
  let pathCount = 0;
  let steps = 0;
  if (left.has(from)) push({ id: from, before: undefined, length: 0 });
  for (let whole = 0; whole < open.length && pathCount < countMax; whole += 1) {
    // Those of this length are added meanwhile.
    for (let end = open[whole]?.pop(); end !== undefined; end = open[whole]?.pop()) {
      if (pathCount >= countMax) return { paths, pathCount, isCut: false };
      if (steps >= stepsMax) return { paths, pathCount, isCut: true };
      steps += 1;
      if (end.id === to) {
        pathCount += 1;
        if (paths.length < limit) paths.push(idsOf(end));
      } else
        for (const id of next.get(end.id) ?? []) if (!isOn(end, id)) push({ id, before: end, length: end.length + 1 });
    }
  }
  return { paths, pathCount, isCut: false };
}

function distancesTo(to: string, links: readonly Link[]): Map<string, number> {
  const before = new Map<string, string[]>();
  for (const link of links) {
    const known = before.get(link.to);
    if (known) known.push(link.from);
    else before.set(link.to, [link.from]);
  }
  const distances = new Map([[to, 0]]);
  // A map hands out what is added meanwhile.
  for (const [id, distance] of distances)
    for (const one of before.get(id) ?? []) if (!distances.has(one)) distances.set(one, distance + 1);
  return distances;
}

function idsOf(end: PathEnd): string[] {
  const ids: string[] = [];
  for (let at: PathEnd | undefined = end; at !== undefined; at = at.before) ids.push(at.id);
  return ids.toReversed();
}

function isOn(end: PathEnd, id: string): boolean {
  for (let at: PathEnd | undefined = end; at !== undefined; at = at.before) if (at.id === id) return true;
  return false;
}
