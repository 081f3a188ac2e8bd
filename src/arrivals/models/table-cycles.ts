/** Finds cycles among the tables that models produce from others: a table that waits for itself, or triggers itself endlessly. */
import { drawCycle, findCycle } from "../../kernel/cycle.ts";
import type { ProducingModel } from "../store/models.ts";

/** The problem as a sentence without its full stop. */
export function cycleProblem(models: readonly ProducingModel[]): string | undefined {
  // A model may need its own table of an earlier period, but not of the same or a later one.
  const waiting = cycleIn(models, ({ shift }) => shift >= 0);
  if (waiting) return `The tables would wait for themselves: ${waiting}`;
  const feeding = cycleIn(selfFeeding(models), ({ optional }) => !optional);
  if (feeding)
    return `Once started, the models would trigger each other for period after period without end: ${feeding}`;
  return undefined;
}

function cycleIn(
  models: readonly ProducingModel[],
  counts: (need: ProducingModel["needs"][number]) => boolean,
): string | undefined {
  const sources = new Map<string, string[]>();
  for (const { produces, needs } of models) {
    const from = needs.filter(counts).map(({ table }) => table);
    sources.set(produces, [...(sources.get(produces) ?? []), ...from]);
  }
  const cycle = findCycle(sources);
  return cycle && drawCycle(cycle);
}

/** Models that need only tables of such models: once started they run endlessly, without any arrival from outside. */
function selfFeeding(models: readonly ProducingModel[]): ProducingModel[] {
  let left = [...models];
  for (;;) {
    const made = new Set(left.map(({ produces }) => produces));
    const closed = left.filter(({ needs }) => needs.every(({ table, optional }) => optional || made.has(table)));
    if (closed.length === left.length) return left;
    left = closed;
  }
}
