/** Explains a table for an opTime: whether it has arrived, by whom, when it usually does, and what its models make of it. */
import type { Db } from "../../kernel/data/db.ts";
import { keyOf } from "../runs/decide.ts";
import { mappingOf } from "../runs/needs.ts";
import { type InstanceState, MODEL_STATES, type TaskStatus } from "../runs/states.ts";
import { type ArrivalListed, listArrivals } from "../store/arrivals.ts";
import { dependentsOf } from "../store/models.ts";
import { instancesIn } from "../store/readiness.ts";
import { deadlineOf } from "./deadline.ts";
import { affectedOpTimes } from "./mapping.ts";
import { usualTimes } from "./usual-time.ts";

export interface TableExplanation {
  table: string;
  opTime: string;
  arrival: ArrivalListed | null;
  usualAt: Date | null;
  models: {
    modelId: string;
    opTime: string;
    optional: boolean;
    deadline: Date | null;
    state: InstanceState;
    last: TaskStatus | null;
  }[];
  /** Models that depend on it and are not listed. */
  more: number;
}

const MODELS_SHOWN = 50;

export async function explainTable(db: Db, table: string, opTime: string): Promise<TableExplanation> {
  const [{ items }, dependents] = await Promise.all([
    listArrivals(db, { table, opTime, page: 1, size: 1 }),
    dependentsOf(db, [table]),
  ]);
  const published = dependents.filter(({ state }) => state === MODEL_STATES.published);
  // The first that needs this opTime: a day can be part of one month only, but a day is needed by several with an offset.
  const needed = published
    .flatMap((model) => {
      const [affected] = affectedOpTimes(mappingOf(model, model.dependency), opTime);
      return affected === undefined ? [] : [{ model, opTime: affected }];
    })
    .toSorted((a, b) => (a.model.model_id < b.model.model_id ? -1 : 1));
  const shown = needed.slice(0, MODELS_SHOWN);
  const opTimes = [...new Set(shown.map((one) => one.opTime))];
  const instances = await instancesIn(db, opTimes, [...new Set(shown.map(({ model }) => model.model_id))]);
  const timeZone = published[0]?.time_zone ?? "UTC";
  const usual = await usualTimes(db, [{ table, opTime }], timeZone);
  return {
    table,
    opTime,
    arrival: items[0] ?? null,
    usualAt: usual.get(keyOf({ table, opTime })) ?? null,
    models: shown.map(({ model: { model_id: modelId, grain, time_zone, dependency }, opTime: affected }) => {
      const instance = instances.find((one) => one.model_id === modelId && one.op_time === affected);
      const spec = grain === null || dependency.deadline === null ? undefined : { grain, timeZone: time_zone };
      const lateMs = spec && deadlineOf({ ...spec, deadline: dependency.deadline ?? "" }, affected);
      return {
        modelId,
        opTime: affected,
        optional: dependency.optional,
        deadline: lateMs === undefined ? null : new Date(lateMs),
        state: instance?.state ?? "idle",
        last: instance?.last ?? null,
      };
    }),
    more: needed.length - shown.length,
  };
}
