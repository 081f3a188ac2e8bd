/**
 * Keeps the times in a live view from going backwards. What goes on is measured with our clock and what has ended with the
 * server's, and the news of an end take a moment to arrive: what was drawn with 1.2s would end with 1.1s.
 */
import type { Run, RunNode } from "./api.ts";
import { goesOn } from "./words.ts";

/** The same run or node as it is to be drawn now: its end is not before the time up to which it was drawn already. */
type Steady<Item> = (id: string, item: Item, now: number) => Item;

export function createSteadyTimes<Item extends Run | RunNode>(): Steady<Item> {
  const drawn = new Map<string, { startedAt: string; until: number }>();
  return (id, item, now) => {
    const { status, startedAt, endedAt } = item;
    if (startedAt === null) return item;
    if (endedAt === null) {
      if (goesOn(status)) drawn.set(id, { startedAt, until: now });
      return item;
    }
    const before = drawn.get(id);
    // Each attempt begins anew.
    if (before?.startedAt !== startedAt || before.until <= Date.parse(endedAt)) return item;
    return { ...item, endedAt: new Date(before.until).toISOString() };
  };
}
