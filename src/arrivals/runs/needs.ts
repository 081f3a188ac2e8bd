/** Reads the facts for `decide`, for many instances at once: what models need for their opTimes, and what has arrived. */
import type { Queryable } from "../../kernel/data/db.ts";
import { deadlineOf } from "../models/deadline.ts";
import { neededOpTimes, type OpTimeMapping } from "../models/mapping.ts";
import { findArrivals } from "../store/arrivals.ts";
import type { InstanceKey } from "../store/instances.ts";
import { type DependencyRow, dependenciesOf, type FactsWithDependency, type ModelFacts } from "../store/models.ts";
import { type Arrived, keyOf, type Need } from "./decide.ts";

export interface KnownModel extends ModelFacts {
  dependencies: DependencyRow[];
}

/** By id, without models that do not exist or have no dependency. */
export async function knownModels(db: Queryable, modelIds: Iterable<string>): Promise<Map<string, KnownModel>> {
  const models = new Map<string, KnownModel>();
  for (const { dependency, ...facts } of await dependenciesOf(db, [...new Set(modelIds)])) {
    const known = models.get(facts.model_id);
    if (known) known.dependencies.push(dependency);
    else models.set(facts.model_id, { ...facts, dependencies: [dependency] });
  }
  return models;
}

export function mappingOf({ grain }: Pick<ModelFacts, "grain">, dependency: DependencyRow): OpTimeMapping {
  return { modelGrain: grain ?? undefined, grain: dependency.grain ?? undefined, offset: dependency.shift };
}

export function needsOf(model: KnownModel, opTime: string): Need[] {
  return model.dependencies.flatMap((dependency) => {
    const { dependency_table_name: table, optional, quiet_seconds: quietSeconds } = dependency;
    const deadlineMs = lateFrom(model, dependency, opTime) ?? null;
    return neededOpTimes(mappingOf(model, dependency), opTime).map((needed) => ({
      table,
      opTime: needed,
      optional,
      deadlineMs,
      quietSeconds,
    }));
  });
}

/** When a dependency is late for an opTime of its model; undefined if it never is. */
function lateFrom(
  { grain, time_zone: timeZone }: FactsWithDependency | KnownModel,
  { deadline }: DependencyRow,
  opTime: string,
): number | undefined {
  return grain === null || deadline === null ? undefined : deadlineOf({ grain, timeZone, deadline }, opTime);
}

/** Which of the needs have arrived, by `keyOf`. */
export async function arrivedOf(db: Queryable, needs: readonly Need[]): Promise<Map<string, Arrived>> {
  const wanted = new Map(needs.map((need) => [keyOf(need), { table_name: need.table, op_time: need.opTime }]));
  const rows = wanted.size > 0 ? await findArrivals(db, [...wanted.values()]) : [];
  return new Map(
    rows.map(({ table_name, op_time, sequence, arrival_time, announced_by: by }) => [
      keyOf({ table: table_name, opTime: op_time }),
      { sequence, atMs: arrival_time.getTime(), by },
    ]),
  );
}

/** The needs of each instance whose model is in `models`, and which of them have arrived. */
export async function readNeeds(
  db: Queryable,
  keys: readonly InstanceKey[],
  models: ReadonlyMap<string, KnownModel>,
): Promise<{ needs: Map<InstanceKey, Need[]>; arrived: Map<string, Arrived> }> {
  const needs = new Map<InstanceKey, Need[]>();
  for (const key of keys) {
    const model = models.get(key.model_id);
    if (model) needs.set(key, needsOf(model, key.op_time));
  }
  return { needs, arrived: await arrivedOf(db, [...needs.values()].flat()) };
}
