/**
 * Which opTimes of a table a model waits for. Mostly the table's opTime is the model's own; a dependency may also want the
 * previous day (`offset`), or all 24 hours of the day (a finer `grain`). Both ways round, since an arrival asks backwards.
 */
import { GRAINS, type Grain, grainOf, movedOpTime, opTimeAround, opTimesWithin } from "../../kernel/time/op-time.ts";

export interface OpTimeMapping {
  /** Without it an opTime is a name, so the table's must be the same. */
  modelGrain?: Grain | undefined;
  /** The dependency's own; the model's if not given. */
  grain?: Grain | undefined;
  /** In grains of the model: -1 is the previous one. */
  offset?: number | undefined;
}

/** So far a dependency may look back or ahead: nearly three years of days. */
const OFFSET_MAX = 1_000;

/** What is wrong with the mapping, as a sentence that lacks its full stop like every reason of VALIDATION_FAILED. */
export function checkMapping({ modelGrain, grain, offset = 0 }: OpTimeMapping): string | undefined {
  if (!Number.isInteger(offset) || Math.abs(offset) > OFFSET_MAX) {
    return `An \`offset\` is a whole number from -${OFFSET_MAX} to ${OFFSET_MAX}, not ${offset}`;
  }
  if (modelGrain === undefined) {
    if (grain === undefined && offset === 0) return undefined;
    const field = grain === undefined ? "an `offset`" : "a `grain`";
    return `A dependency has ${field} only where the model has a \`grain\`: give the model one of ${GRAINS.join(", ")}`;
  }
  if (grain === undefined || GRAINS.indexOf(grain) <= GRAINS.indexOf(modelGrain)) return undefined;
  return `A dependency's grain cannot be coarser than the model's: no ${grain} fits into one ${modelGrain}`;
}

/**
 * The opTimes of the table that the model needs for its `modelOpTime`, in order; at least one, always. One that is not of the
 * model's grain, left from a time before the model had it, is a name and needs the same name.
 */
export function neededOpTimes({ modelGrain, grain, offset = 0 }: OpTimeMapping, modelOpTime: string): string[] {
  if (modelGrain === undefined || grainOf(modelOpTime) !== modelGrain) return [modelOpTime];
  const moved = movedOpTime(modelOpTime, modelGrain, offset);
  // The day after 99991231 must not be no need at all, which is met at once. No table can arrive for this one.
  if (moved === undefined) return [`${modelOpTime}${offset > 0 ? "+" : ""}${offset}`];
  return opTimesWithin(moved, grain ?? modelGrain);
}

/** The opTimes of the model that need the table's `tableOpTime`: one, or none if that is not of the dependency's grain. */
export function concernedOpTimes({ modelGrain, grain, offset = 0 }: OpTimeMapping, tableOpTime: string): string[] {
  if (modelGrain === undefined) return [tableOpTime];
  if (grainOf(tableOpTime) !== (grain ?? modelGrain)) return [];
  const concerned = movedOpTime(opTimeAround(tableOpTime, modelGrain), modelGrain, -offset);
  return concerned === undefined ? [] : [concerned];
}
