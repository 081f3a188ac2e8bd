/**
 * Which opTimes of a table a model waits for. Usually the table's opTime is the model's own; a dependency may also need the
 * previous day (`offset`), or all 24 hours of the day (a finer `grain`). An arrival needs the inverse mapping.
 */
import { GRAINS, type Grain, grainOf, movedOpTime, opTimeAround, opTimesWithin } from "../../kernel/time/op-time.ts";

export interface OpTimeMapping {
  /** Without it an opTime is only a name, and the table needs the same one. */
  modelGrain?: Grain | undefined;
  /** The grain of the dependency; the model's if not given. */
  grain?: Grain | undefined;
  /** In periods of the model: -1 is the previous one. */
  offset?: number | undefined;
}

/** Nearly three years of days. */
const OFFSET_MAX = 1_000;

/** The problem as a sentence without its full stop, like every reason of VALIDATION_FAILED. */
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
 * The opTimes of the table that the model needs for its `modelOpTime`, in order; always at least one. An opTime that is not
 * of the model's grain (it is older than the grain) is only a name and needs the same name.
 */
export function neededOpTimes({ modelGrain, grain, offset = 0 }: OpTimeMapping, modelOpTime: string): string[] {
  if (modelGrain === undefined || grainOf(modelOpTime) !== modelGrain) return [modelOpTime];
  const moved = movedOpTime(modelOpTime, modelGrain, offset);
  // For the day after 99991231 an empty list would count as met. No table can arrive for this opTime.
  if (moved === undefined) return [`${modelOpTime}${offset > 0 ? "+" : ""}${offset}`];
  return opTimesWithin(moved, grain ?? modelGrain);
}

/** The opTimes of the model that need the table's `tableOpTime`: one, or none if that is not of the dependency's grain. */
export function affectedOpTimes({ modelGrain, grain, offset = 0 }: OpTimeMapping, tableOpTime: string): string[] {
  if (modelGrain === undefined) return [tableOpTime];
  if (grainOf(tableOpTime) !== (grain ?? modelGrain)) return [];
  const affected = movedOpTime(opTimeAround(tableOpTime, modelGrain), modelGrain, -offset);
  return affected === undefined ? [] : [affected];
}
