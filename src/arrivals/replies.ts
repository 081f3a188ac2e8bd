/** Rows as the API shows them. */
import { numberOf } from "./kpis/exact-value.ts";
import type { ArrivalListed } from "./store/arrivals.ts";
import type { KpiRow, ValueListed } from "./store/kpis.ts";
import type { ModelRow } from "./store/models.ts";
import type { TaskRow } from "./store/tasks.ts";

export function modelReply(row: ModelRow) {
  const { model_id, time_zone, timeout_seconds, allow_empty, created_at, updated_at, dependencies, ...same } = row;
  return {
    ...same,
    modelId: model_id,
    timeZone: time_zone,
    timeoutSeconds: timeout_seconds,
    allowEmpty: allow_empty,
    createdAt: created_at,
    updatedAt: updated_at,
    dependencies: dependencies.map(({ dependency_table_name, optional, quiet_seconds, deadline, grain, shift }) => ({
      table: dependency_table_name,
      optional,
      quietSeconds: quiet_seconds,
      deadline,
      grain,
      offset: shift,
    })),
  };
}

export function kpiReply({ kpi_id, depends_on, model_id, created_at, updated_at, ...same }: KpiRow) {
  return {
    ...same,
    kpiId: kpi_id,
    dependsOn: depends_on,
    modelId: model_id,
    createdAt: created_at,
    updatedAt: updated_at,
  };
}

export function valueReply({ kpi_id, op_time, model_id, updated_at, value, ...same }: ValueListed) {
  return {
    ...same,
    value: numberOf(value),
    valueText: value,
    kpiId: kpi_id,
    opTime: op_time,
    modelId: model_id,
    updatedAt: updated_at,
  };
}

export function taskReply(row: TaskRow) {
  const { model_id, op_time, start_time, end_time, compute_count, storage_count, caused_by, chain_run_id, ...others } =
    row;
  const { retry_at, ...same } = others;
  return {
    ...same,
    modelId: model_id,
    opTime: op_time,
    startTime: start_time,
    endTime: end_time,
    computeCount: compute_count,
    storageCount: storage_count,
    causedBy: caused_by,
    chainRunId: chain_run_id,
    retryAt: retry_at,
  };
}

export function arrivalReply(row: ArrivalListed) {
  const {
    table_name,
    op_time,
    arrival_time,
    first_time,
    arrivals,
    sequence,
    announced_by,
    retracted_at,
    retracted_by,
  } = row;
  return {
    table: table_name,
    opTime: op_time,
    arrivalTime: arrival_time,
    firstTime: first_time,
    arrivals,
    sequence,
    announcedBy: announced_by,
    retractedAt: retracted_at,
    retractedBy: retracted_by,
  };
}
