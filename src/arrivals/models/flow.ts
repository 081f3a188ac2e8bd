/** The tables that models make out of others, looked at as a whole: no table may wait for itself, or feed itself for ever. */
import { drawCycle, findCycle } from "../../kernel/cycle.ts";
import type { ModelFlow } from "../store/models.ts";

/** What is wrong with the flow, as a sentence that lacks its full stop. */
export function circleOf(flow: readonly ModelFlow[]): string | undefined {
  // A table of an earlier period may well be the model's own; one of the same or a later period cannot be.
  const waiting = cycleIn(flow, ({ shift }) => shift >= 0);
  if (waiting) return `The tables would wait for themselves: ${waiting}`;
  const feeding = cycleIn(selfFeeding(flow), ({ optional }) => !optional);
  if (feeding) return `Once begun, the tables would feed themselves from period to period for ever: ${feeding}`;
  return undefined;
}

function cycleIn(
  flow: readonly ModelFlow[],
  counts: (need: ModelFlow["needs"][number]) => boolean,
): string | undefined {
  const sources = new Map<string, string[]>();
  for (const { produces, needs } of flow) {
    const from = needs.filter(counts).map(({ table }) => table);
    sources.set(produces, [...(sources.get(produces) ?? []), ...from]);
  }
  const cycle = findCycle(sources);
  return cycle && drawCycle(cycle);
}

/** Models that need nothing but what such models make: no arrival from outside would ever stop them. */
function selfFeeding(flow: readonly ModelFlow[]): ModelFlow[] {
  let left = [...flow];
  for (;;) {
    const made = new Set(left.map(({ produces }) => produces));
    const closed = left.filter(({ needs }) => needs.every(({ table, optional }) => optional || made.has(table)));
    if (closed.length === left.length) return left;
    left = closed;
  }
}
