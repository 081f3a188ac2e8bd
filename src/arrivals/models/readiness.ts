/** Readiness over a range of opTimes: what has arrived by table, and the state by model. */
import type { Db } from "../../kernel/data/db.ts";
import { invalid } from "../../kernel/errors.ts";
import { grainOf, opTimesBetween } from "../../kernel/time/op-time.ts";
import type { InstanceState, TaskStatus } from "../runs/states.ts";
import { arrivedOpTimes } from "../store/arrivals.ts";
import { arrivedIn, instancesIn, publishedModels, watchedTables } from "../store/readiness.ts";

export interface Readiness {
  opTimes: string[];
  tables: { table: string; cells: Record<string, { arrivedAt: Date; arrivals: number }> }[];
  models: {
    modelId: string;
    cells: Record<string, { state: InstanceState; generation: number; last: TaskStatus | null }>;
  }[];
  /** There are more tables or models than are listed. */
  partial: boolean;
}

/** As much as a person can read in one grid. */
const OP_TIMES_MAX = 400;
const ROWS_MAX = 500;

export async function readiness(db: Db, from: string, to: string): Promise<Readiness> {
  const opTimes = await opTimesOf(db, from, to);
  if (opTimes.length > OP_TIMES_MAX) {
    const reason = `The range ${from} to ${to} has ${opTimes.length} opTimes, but at most ${OP_TIMES_MAX} are shown at once`;
    throw invalid(reason);
  }
  const [tables, models] = await Promise.all([watchedTables(db, ROWS_MAX + 1), publishedModels(db, ROWS_MAX + 1)]);
  const shownTables = tables.slice(0, ROWS_MAX);
  const shownModels = models.slice(0, ROWS_MAX);
  const [arrived, instances] = await Promise.all([
    arrivedIn(db, opTimes, shownTables),
    instancesIn(db, opTimes, shownModels),
  ]);
  const tableCells = new Map<string, Readiness["tables"][number]["cells"]>(shownTables.map((table) => [table, {}]));
  for (const { table_name, op_time, arrival_time: arrivedAt, arrivals } of arrived) {
    const cells = tableCells.get(table_name);
    if (cells) cells[op_time] = { arrivedAt, arrivals };
  }
  const modelCells = new Map<string, Readiness["models"][number]["cells"]>(shownModels.map((id) => [id, {}]));
  for (const { model_id, op_time, state, generation, last } of instances) {
    const cells = modelCells.get(model_id);
    if (cells) cells[op_time] = { state, generation, last };
  }
  return {
    opTimes,
    tables: [...tableCells].map(([table, cells]) => ({ table, cells })),
    models: [...modelCells].map(([modelId, cells]) => ({ modelId, cells })),
    partial: tables.length > ROWS_MAX || models.length > ROWS_MAX,
  };
}

/** A range of one grain lists all its opTimes, arrived or not; any other lists those that have arrived, in text order. */
async function opTimesOf(db: Db, from: string, to: string): Promise<string[]> {
  const grain = grainOf(from);
  if (grain !== undefined && grain === grainOf(to)) return opTimesBetween(from, to, grain);
  return arrivedOpTimes(db, from, to, OP_TIMES_MAX + 1);
}
