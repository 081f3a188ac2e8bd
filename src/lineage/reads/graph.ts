/**
 * The graph of tables upstream and downstream of an asset, level by level. A level is one hop from table to table, over the
 * statements and jobs that read and write them; metrics depend on the tables of their columns and on other metrics.
 */
import type { Db } from "../../kernel/data/db.ts";
import type { NodeKind } from "../graph/names.ts";
import { createFindings, type Direction, type Findings, type Limits, type Link } from "./findings.ts";
import { readAssets } from "./store/assets.ts";
import {
  type How,
  hasMetrics,
  type MetricRow,
  metricsOfTables,
  type StepRow,
  stepFromTables,
  tablesOfMetrics,
} from "./store/walk.ts";

export interface Walk extends Limits {
  start: { id: string; kind: NodeKind };
  directions: readonly Direction[];
  depth: number;
  /** How many neighbours of an asset are followed, in the order of their ids; all if it is null. */
  fanout: number | null;
  /** One more hop from each of these, if it was found by then. */
  expand: readonly Expansion[];
}
export interface Expansion {
  id: string;
  direction: Direction;
}
export interface Walked {
  findings: Findings;
  depthReached: number;
}

const PROCESSES = ["SQL", "JOB"] as const satisfies readonly NodeKind[];
const METRIC_TO_METRIC = ["DERIVED_FROM", "COMPUTED_FROM"];

/** What is to be looked at next, by kind. */
interface Frontier {
  tables: string[];
  metrics: string[];
  processes: string[];
}

export async function walkTables(db: Db, tenantId: string, walk: Walk, now: () => number): Promise<Walked> {
  const { start, directions, depth, fanout } = walk;
  const findings = createFindings([start.id], walk, now);
  const withMetrics = await hasMetrics(db, tenantId);
  const jobs = new Set(start.kind === "JOB" ? [start.id] : []);
  const every = { db, tenantId, findings, withMetrics, jobs, fanout };
  let frontiers = directions.map((direction) => ({ direction, frontier: frontierOf(start) }));
  let depthReached = 0;
  // Both directions go on in turn, so that neither uses up the limits before the other has begun.
  for (let distance = 1; distance <= depth && frontiers.length > 0; distance += 1) {
    const next: typeof frontiers = [];
    for (const { direction, frontier } of frontiers) {
      if (findings.cut()) return { findings, depthReached };
      const reached = await hop({ ...every, direction, distance }, frontier);
      if (reached.tables.length + reached.metrics.length + reached.processes.length === 0) continue;
      depthReached = distance;
      next.push({ direction, frontier: reached });
    }
    frontiers = next;
  }
  if (walk.expand.length === 0) return { findings, depthReached };
  const opened = await readAssets(db, tenantId, [...new Set(walk.expand.map(({ id }) => id))]);
  for (const { id, kind } of opened) if (kind === "JOB") jobs.add(id);
  const kinds = new Map(opened.map(({ id, kind }) => [id, kind]));
  await expandIn(walk, findings, async ({ id, direction }, distance) => {
    const kind = kinds.get(id);
    if (kind !== undefined) await hop({ ...every, direction, distance }, frontierOf({ id, kind }));
  });
  return { findings, depthReached };
}

/** In their order: what one brings can be expanded by the next. */
export async function expandIn(
  { expand }: Pick<Walk, "expand">,
  findings: Findings,
  hopFrom: (from: Expansion, distance: number) => Promise<void>,
): Promise<void> {
  for (const from of expand) {
    const distance = findings.distances.get(from.id);
    if (findings.cut()) return;
    if (distance !== undefined) await hopFrom(from, distance + 1);
  }
}

function frontierOf({ id, kind }: Walk["start"]): Frontier {
  return {
    tables: kind === "TABLE" ? [id] : [],
    metrics: kind === "METRIC" ? [id] : [],
    processes: kind === "SQL" || kind === "JOB" ? [id] : [],
  };
}

interface Hop {
  db: Db;
  tenantId: string;
  findings: Findings;
  direction: Direction;
  distance: number;
  withMetrics: boolean;
  /** Those of the processes that are no statements: only they may follow one another. */
  jobs: Set<string>;
  fanout: number | null;
}

/** From one level to the next, statements and jobs in between included. */
async function hop(at: Hop, from: Frontier): Promise<Frontier> {
  const isUp = at.direction === "up";
  const [entering, leaving] = isUp ? ["OUTPUT_TO", "INPUT_OF"] : ["INPUT_OF", "OUTPUT_TO"];
  const how = isUp ? "against" : "along";
  const processes = await edges(at, how, { level: from.tables, kinds: [entering], to: PROCESSES }, true);
  const level = [...from.processes, ...processes];
  const written = await edges(at, how, { level, kinds: [leaving], to: ["TABLE"] });
  // A table may derive from another without a job, and a job from a job. Edges of this kind start at the dependent.
  const against = isUp ? "along" : "against";
  const tables = await edges(at, against, { level: from.tables, kinds: ["DERIVES_FROM"], to: ["TABLE"] });
  const followers = level.filter((id) => at.jobs.has(id));
  const jobs = await edges(at, against, { level: followers, kinds: ["DERIVES_FROM"], to: ["JOB"] });
  const reached = { tables: [...written, ...tables], metrics: [], processes: jobs };
  if (!at.withMetrics) return reached;

  const metrics = await edges(at, against, { level: from.metrics, kinds: METRIC_TO_METRIC, to: ["METRIC"] });
  const over = await columns(at, isUp ? from.metrics : from.tables);
  return isUp
    ? { ...reached, tables: [...reached.tables, ...over], metrics }
    : { ...reached, metrics: [...metrics, ...over] };
}

async function edges(
  { db, tenantId, findings, direction, distance, jobs, fanout }: Hop,
  how: How,
  step: { level: readonly string[]; kinds: readonly string[]; to: readonly NodeKind[] },
  half = false,
): Promise<string[]> {
  if (step.level.length === 0) return [];
  const look = async (limit: number) => {
    const rows = await stepFromTables(db, tenantId, how, { ...step, limit, fanout });
    for (const { reached, reached_kind } of rows) if (reached_kind === "JOB") jobs.add(reached);
    return rows.map((row) => ({ link: linkOf(row, direction), reached: row.reached }));
  };
  return findings.gather(look, { direction, distance, half });
}

async function columns(
  { db, tenantId, findings, direction, distance }: Hop,
  level: readonly string[],
): Promise<string[]> {
  if (level.length === 0) return [];
  const look = async (limit: number) => {
    const rows = await (direction === "up" ? tablesOfMetrics : metricsOfTables)(db, tenantId, level, limit);
    return rows.map((row) => ({ link: metricLink(row), reached: direction === "up" ? row.table_id : row.metric_id }));
  };
  return findings.gather(look, { direction, distance });
}

export function linkOf({ at, kind, reached, transformations }: StepRow, direction: Direction): Link {
  const [from, to] = direction === "up" ? [reached, at] : [at, reached];
  return transformations?.length ? { from, to, kind, transformations } : { from, to, kind };
}

function metricLink({ table_id, kind, metric_id, via }: MetricRow): Link {
  return { from: table_id, to: metric_id, kind, via: via.at(-1) ?? "" };
}
