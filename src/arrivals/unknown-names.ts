/** Answers to names that do not exist, with the one that was probably meant. */

import type { Db, Queryable } from "../kernel/data/db.ts";
import type { ApiError } from "../kernel/errors.ts";
import { cachedFor } from "../kernel/http/cached-for.ts";
import { didYouMean } from "../kernel/nearest.ts";
import { formOf, meantOpTime } from "../kernel/time/op-time.ts";
import { instancesOf } from "./announce.ts";
import { arrivalsError } from "./catalogue.ts";
import { MODEL_STATES } from "./runs/states.ts";
import { allKpiIds } from "./store/kpis.ts";
import { allModelIds, dependentsOf, tablesOfModels } from "./store/models.ts";

export async function unknownModel(db: Queryable, modelId: string): Promise<ApiError> {
  return arrivalsError("MODEL_NOT_FOUND", { modelId }, { hint: didYouMean(modelId, await allModelIds(db)) });
}

export async function unknownKpi(db: Queryable, kpiId: string): Promise<ApiError> {
  return arrivalsError("KPI_NOT_FOUND", { kpiId }, { hint: didYouMean(kpiId, await allKpiIds(db)) });
}

/** Loaders announce thousands of tables that no model uses, so the names that a hint needs are read once for many. */
const NAMES_KEPT_MS = 1_000;
/** A search among 50,000 names takes 1.6 ms, ten times as long as the rest of an announcement, so its result is kept with the names. */
const HINTS_KEPT_MAX = 10_000;

export interface ArrivalHints {
  /** For a table that no model depends on: the one that was probably meant. */
  ofTable(table: string): Promise<string | undefined>;
  /** For an opTime that fits no published model that depends on the table: the forms that do, and the one that was probably meant. */
  ofOpTime(table: string, opTime: string): Promise<string | undefined>;
}

export function createArrivalHints(db: Db): ArrivalHints {
  const tables = cachedFor(NAMES_KEPT_MS, async () => ({
    names: await tablesOfModels(db),
    hints: new Map<string, string>(),
  }));
  return {
    async ofTable(table) {
      const { names, hints } = await tables();
      const hint = hints.get(table) ?? didYouMean(table, names);
      if (hints.size < HINTS_KEPT_MAX) hints.set(table, hint);
      return hint === "" ? undefined : `No model depends on \`${table}\`.${hint}`;
    },
    async ofOpTime(table, opTime) {
      const published = (await dependentsOf(db, [table])).filter(({ state }) => state === MODEL_STATES.published);
      const grains = published.flatMap(({ grain, dependency }) => dependency.grain ?? grain ?? []);
      if (grains.length === 0 || instancesOf(published, opTime).length > 0) return undefined;
      const forms = [...new Set(grains)].map((grain) => `${grain}s (${formOf(grain)})`);
      const meant = grains.map((grain) => meantOpTime(opTime, grain)).find((hint) => hint !== "");
      return `\`${table}\` arrives for ${forms.join(" or ")}, which \`${opTime}\` is not${meant ?? ""}.`;
    },
  };
}
