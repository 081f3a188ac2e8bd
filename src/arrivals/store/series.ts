/** SQL for the values of indicators over a range of opTimes. */
import type { Db } from "../../kernel/data/db.ts";
import { statement } from "../../kernel/data/statement.ts";
import type { Dimensions } from "../kpis/formula.ts";

export interface KpiRow {
  kpi_id: string;
  name: string;
  model_id: string | null;
}

const OF_MODEL = statement<KpiRow>(
  "arrivals.series.of_model",
  `select k.kpi_id, k.name, f.model_id from arrivals.metrics_model_kpi f join arrivals.metrics_kpi k on k.kpi_id = f.kpi_id
   where f.model_id = $1 order by k.kpi_id`,
);
const ONE = statement<KpiRow>(
  "arrivals.series.of_kpi",
  `select k.kpi_id, k.name, f.model_id from arrivals.metrics_kpi k
   left join arrivals.metrics_model_kpi f on f.kpi_id = k.kpi_id where k.kpi_id = $1`,
);

export async function kpisOf(db: Db, which: { kpiId: string | null; modelId: string | null }): Promise<KpiRow[]> {
  return which.kpiId === null ? db.read(OF_MODEL, [which.modelId]) : db.read(ONE, [which.kpiId]);
}

const VALUES = statement<{
  kpi_id: string;
  op_time: string;
  dimension_key: string;
  dimensions: Dimensions;
  value: string;
}>(
  "arrivals.series.values",
  `select d.* from unnest($1::text[]) as k(kpi_id), lateral (
     select v.kpi_id, v.op_time, v.dimension_key, v.dimensions, v.value::text as value from arrivals.metrics_kpi_data v
     where v.kpi_id = k.kpi_id and v.op_time >= $2 and v.op_time <= $3
     order by v.op_time desc, v.dimension_key desc limit $4
   ) d`,
);

/** The newest opTimes first. */
export function seriesOf(db: Db, range: { kpiIds: readonly string[]; from: string; to: string; each: number }) {
  return db.read(VALUES, [range.kpiIds, range.from, range.to, range.each]);
}
