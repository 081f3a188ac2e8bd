/**
 * Keeps the durations in a live view from going backwards. A running node is measured with this machine's clock and an ended one
 * with the server's, and an end is seen with a delay: a node shown with 1.2s could otherwise end with 1.1s.
 */
import type { Run, RunNode } from "./api.ts";
import { isInProgress } from "./run-text.ts";

/** The run or node with an end that is not before the time that was already shown. */
type Monotonic<Item> = (id: string, item: Item, now: number) => Item;

export function createMonotonicTimes<Item extends Run | RunNode>(): Monotonic<Item> {
  const drawn = new Map<string, { startedAt: string; until: number }>();
  return (id, item, now) => {
    const { status, startedAt, endedAt } = item;
    if (startedAt === null) return item;
    if (endedAt === null) {
      if (isInProgress(status)) drawn.set(id, { startedAt, until: now });
      return item;
    }
    const before = drawn.get(id);
    // Each attempt starts from zero.
    if (before?.startedAt !== startedAt || before.until <= Date.parse(endedAt)) return item;
    return { ...item, endedAt: new Date(before.until).toISOString() };
  };
}
