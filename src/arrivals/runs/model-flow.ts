/** What a model's run read and wrote, for lineage: from tables to indicators, and from those to computed ones. */
import type { Queryable } from "../../kernel/data/db.ts";
import { findKpis, type KpiWrite } from "../store/kpis.ts";
import type { ModelRow } from "../store/models.ts";

/** A run that has ended. */
export interface ModelEnd {
  model: ModelRow;
  opTime: string;
  generation: number;
  /** Why it failed; null if it did not. */
  failure: string | null;
  /** The indicators that the model feeds, and those that were computed from them. */
  kpis: readonly string[];
  computed: readonly string[];
}

export interface ModelFlow {
  /** The same for every attempt at the run, and unique to the run. */
  runKey: string;
  modelId: string;
  name: string;
  description: string | null;
  statement: { sql: string; engine: string } | null;
  opTime: string;
  timeZone: string;
  failure: string | null;
  inputs: readonly string[];
  produces: string | null;
  kpis: readonly IndicatorFlow[];
  computed: readonly (IndicatorFlow & { formula: string; parts: readonly string[] })[];
}
export interface IndicatorFlow {
  kpiId: string;
  name: string;
}

/** Has the creation time, because the generations of a model that was deleted and created again restart at 1. */
function runKeyOf({ model_id, created_at }: ModelRow, opTime: string, generation: number): string {
  return `model ${model_id} ${opTime} ${generation} ${created_at.getTime()}`;
}

export async function describeRun(tx: Queryable, end: ModelEnd): Promise<ModelFlow> {
  const { model, opTime, generation, failure } = end;
  const rows = await findKpis(tx, [...end.kpis, ...end.computed]);
  const known = new Map(rows.map((row) => [row.kpi_id, row]));
  return {
    runKey: runKeyOf(model, opTime, generation),
    modelId: model.model_id,
    name: model.name,
    description: model.description,
    statement: model.sql !== null && model.engine !== null ? { sql: model.sql, engine: model.engine } : null,
    opTime,
    timeZone: model.time_zone,
    failure,
    inputs: [...new Set(model.dependencies.map(({ dependency_table_name: table }) => table))],
    produces: model.produces,
    kpis: end.kpis.map((kpiId) => indicatorOf(kpiId, known.get(kpiId))),
    computed: end.computed.map((kpiId) => {
      const row = known.get(kpiId);
      return { ...indicatorOf(kpiId, row), formula: row?.expression ?? "", parts: row?.depends_on ?? [] };
    }),
  };
}

function indicatorOf(kpiId: string, row: KpiWrite | undefined): IndicatorFlow {
  return { kpiId, name: row?.name ?? kpiId };
}
