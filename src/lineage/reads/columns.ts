/** The graph of columns upstream and downstream of one, with how its values are transformed on the way. */
import type { Db } from "../../kernel/data/db.ts";
import { isRecord } from "../../kernel/json/is-record.ts";
import type { NodeKind } from "../graph/names.ts";
import { createFindings, type Direction, type Findings, type Link } from "./findings.ts";
import { expandIn, linkOf, type Walk, type Walked } from "./graph.ts";
import { listBelow } from "./store/assets.ts";
import { stepFromColumns } from "./store/walk.ts";

const KINDS = ["DERIVES_FROM", "MEASURES", "FILTERS_BY"];
/** A table as a whole may depend on a column that it is filtered by. */
const ENDS = ["COLUMN", "METRIC", "TABLE"] as const satisfies readonly NodeKind[];

const STARTS_MAX = 500;

export async function walkColumns(db: Db, tenantId: string, walk: Walk, now: () => number): Promise<Walked> {
  const { directions, depth, fanout } = walk;
  const starts = await startsOf(db, tenantId, walk);
  const findings = createFindings(starts, walk, now);
  async function hop(level: readonly string[], direction: Direction, distance: number): Promise<string[]> {
    // These edges lead from what is derived to what it is derived from.
    const how = direction === "up" ? "along" : "against";
    const look = async (limit: number) => {
      const rows = await stepFromColumns(db, tenantId, how, { level, kinds: KINDS, to: ENDS, limit, fanout });
      return rows.map((row) => ({ link: linkOf(row, direction), reached: row.reached }));
    };
    return findings.gather(look, { direction, distance });
  }
  let levels = directions.map((direction) => ({ direction, level: starts }));
  let depthReached = 0;
  for (let distance = 1; distance <= depth && levels.length > 0; distance += 1) {
    const next: typeof levels = [];
    for (const { direction, level } of levels) {
      if (findings.cut()) return { findings, depthReached };
      const fresh = await hop(level, direction, distance);
      if (fresh.length === 0) continue;
      depthReached = distance;
      next.push({ direction, level: fresh });
    }
    levels = next;
  }
  await expandIn(walk, findings, async ({ id, direction }, distance) => void (await hop([id], direction, distance)));
  return { findings, depthReached };
}

/** Of a table all its columns as well, as far as there is room: each has a lineage of its own. */
async function startsOf(db: Db, tenantId: string, { start, nodesMax }: Walk): Promise<string[]> {
  if (start.kind !== "TABLE") return [start.id];
  const limit = Math.min(STARTS_MAX, nodesMax - 1);
  const columns = await listBelow(db, tenantId, { parentId: start.id, kind: "COLUMN" }, { after: null, limit });
  return [start.id, ...columns.map(({ id }) => id)];
}

export interface Transformation {
  type: string;
  subtype?: string;
  description?: string;
  masking?: boolean;
}

/** As they are stored, each as JSON. */
export function transformationsOf({ transformations = [] }: Link): Transformation[] {
  return transformations.map((text) => {
    const value: unknown = JSON.parse(text);
    return isRecord(value) && typeof value["type"] === "string"
      ? (value as unknown as Transformation)
      : { type: "UNKNOWN" };
  });
}

export interface Passage {
  /** On one way at least, values come through step by step; else they decide only which rows there are, or their order. */
  isDirect: boolean;
  /** On every way that they come through, something masks them; where they come through on none, on every way at all. */
  isMasked: boolean;
}

/** What becomes of values between where the walk began and everything else that was found. */
export function passagesOf(findings: Findings): Map<string, Passage> {
  const links = [...findings.links];
  const starts = [...findings.distances].flatMap(([id, distance]) => (distance === 0 ? [id] : []));
  const reach = (passes: (link: Link) => boolean) => reachable(starts, links.filter(passes));
  const direct = reach(isDirect);
  const clear = reach((link) => !isMasking(link));
  const directAndClear = reach((link) => isDirect(link) && !isMasking(link));
  const passageOf = (id: string): Passage => ({
    isDirect: direct.has(id),
    isMasked: !(direct.has(id) ? directAndClear : clear).has(id),
  });
  return new Map([...findings.distances.keys()].map((id) => [id, passageOf(id)]));
}

/** An edge without transformations counts as one that passes the value on. */
function isDirect(link: Link): boolean {
  if (link.kind === "FILTERS_BY") return false;
  const transformations = transformationsOf(link);
  return transformations.length === 0 || transformations.some(({ type }) => type === "DIRECT");
}

function isMasking(link: Link): boolean {
  const transformations = transformationsOf(link);
  const direct = transformations.filter(({ type }) => type === "DIRECT");
  const deciding = direct.length > 0 ? direct : transformations;
  return deciding.length > 0 && deciding.every(({ masking }) => masking === true);
}

/** Up from where the walk began and down from there; not up and down again, which leads to siblings. */
function reachable(starts: readonly string[], links: readonly Link[]): Set<string> {
  const reached = new Set<string>();
  for (const direction of ["up", "down"] as const satisfies readonly Direction[]) {
    const next = new Map<string, string[]>();
    for (const { from, to } of links) {
      const [near, far] = direction === "up" ? [to, from] : [from, to];
      const known = next.get(near);
      if (known) known.push(far);
      else next.set(near, [far]);
    }
    const side = new Set(starts);
    for (const id of side) for (const far of next.get(id) ?? []) side.add(far); // A set hands out what is added meanwhile.
    for (const id of side) reached.add(id);
  }
  return reached;
}
