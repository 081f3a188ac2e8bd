/** The values of indicators over a range of opTimes, one line for each set of dimensions, as a plot needs them. */
import type { Db } from "../../kernel/data/db.ts";
import { existingModels } from "../store/models.ts";
import { type KpiRow, kpisOf, seriesOf } from "../store/series.ts";
import { unknownKpi, unknownModel } from "../unknown-names.ts";
import { numberOf } from "./exact-value.ts";
import type { Dimensions } from "./formula.ts";

export interface SeriesQuery {
  kpiId?: string;
  /** The indicators that the model feeds. */
  modelId?: string;
  from: string;
  to: string;
}

export interface Series {
  kpis: {
    kpiId: string;
    name: string;
    modelId: string | null;
    lines: { dimensions: Dimensions; opTimes: string[]; values: (number | null)[] }[];
    /** Sets of dimensions that are not among the lines. */
    moreLines: number;
  }[];
  /** Indicators of the model that are not listed. */
  moreKpis: number;
}

/** As many as a person can tell apart. */
const LINES_MAX = 8;
const KPIS_MAX = 4;
/** Of one indicator: the newest. */
const VALUES_MAX = 10_000;

export async function readSeries(db: Db, { kpiId, modelId, from, to }: SeriesQuery): Promise<Series> {
  const found = await kpisOf(db, { kpiId: kpiId ?? null, modelId: modelId ?? null });
  if (found.length === 0 && kpiId !== undefined) throw await unknownKpi(db, kpiId);
  if (found.length === 0 && modelId !== undefined && (await existingModels(db, [modelId])).length === 0) {
    throw await unknownModel(db, modelId);
  }
  const kpis = found.slice(0, KPIS_MAX);
  const values = await seriesOf(db, { kpiIds: kpis.map(({ kpi_id }) => kpi_id), from, to, each: VALUES_MAX });
  return { kpis: kpis.map((kpi) => linesOf(kpi, values)), moreKpis: found.length - kpis.length };
}

type Values = Awaited<ReturnType<typeof seriesOf>>;

/** The values come newest first; the lines of the largest values at the end of the range are shown. */
function linesOf({ kpi_id: kpiId, name, model_id: modelId }: KpiRow, values: Values): Series["kpis"][number] {
  const lines = new Map<string, Series["kpis"][number]["lines"][number]>();
  for (const { kpi_id, op_time, dimension_key, dimensions, value } of values) {
    if (kpi_id !== kpiId) continue;
    const line = lines.get(dimension_key) ?? { dimensions, opTimes: [], values: [] };
    line.opTimes.push(op_time);
    line.values.push(numberOf(value));
    lines.set(dimension_key, line);
  }
  const sorted = [...lines.values()].toSorted((a, b) => (b.values[0] ?? 0) - (a.values[0] ?? 0));
  return {
    kpiId,
    name,
    modelId,
    lines: sorted
      .slice(0, LINES_MAX)
      .map((line) => ({ ...line, opTimes: line.opTimes.toReversed(), values: line.values.toReversed() })),
    moreLines: Math.max(0, sorted.length - LINES_MAX),
  };
}
