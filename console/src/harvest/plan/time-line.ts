/**
 * Runs as bars on a line of time, in as few lanes as they need. Time without a run is folded to a small width, so that a task that
 * waited for an hour does not squash the runs into a pixel.
 */
export interface Span {
  fromMs: number;
  toMs: number;
}

export interface Bar<Item> {
  item: Item;
  lane: number;
  /** Shares of the width, from 0 to 1. */
  left: number;
  width: number;
}

export interface Fold {
  left: number;
  width: number;
  ms: number;
}

export interface Drawn<Item> {
  lanes: number;
  bars: readonly Bar<Item>[];
  folds: readonly Fold[];
}

/** A pause is folded if it is longer than this share of the time of the runs. */
const FOLD_FROM = 0.15;
const FOLD_WIDTH = 0.03;

/** Items in the order of their beginning. */
export function drawn<Item extends Span>(items: readonly Item[]): Drawn<Item> {
  const ordered = items.toSorted((a, b) => a.fromMs - b.fromMs);
  const pauses = pausesOf(ordered);
  const [first] = ordered;
  if (!first) return { lanes: 0, bars: [], folds: [] };
  const endMs = ordered.reduce((latest, { toMs }) => Math.max(latest, toMs), first.toMs);
  const pausedMs = pauses.reduce((sum, { fromMs, toMs }) => sum + toMs - fromMs, 0);
  const busyMs = Math.max(1, endMs - first.fromMs - pausedMs);
  const folded = pauses.filter(({ fromMs, toMs }) => toMs - fromMs > FOLD_FROM * busyMs);
  const foldedMs = folded.reduce((sum, { fromMs, toMs }) => sum + toMs - fromMs, 0);
  const foldMs = FOLD_WIDTH * busyMs;
  const wholeMs = Math.max(1, endMs - first.fromMs - foldedMs + folded.length * foldMs);
  const place = (atMs: number) => {
    const before = folded.filter(({ toMs }) => toMs <= atMs);
    const lostMs = before.reduce((sum, { fromMs, toMs }) => sum + toMs - fromMs, 0);
    return (atMs - first.fromMs - lostMs + before.length * foldMs) / wholeMs;
  };
  const { lanes, laneOf } = packed(ordered);
  return {
    lanes,
    bars: ordered.map((item, index) => ({
      item,
      lane: laneOf[index] ?? 0,
      left: place(item.fromMs),
      width: place(item.toMs) - place(item.fromMs),
    })),
    folds: folded.map(({ fromMs, toMs }) => ({
      left: place(fromMs),
      width: foldMs / wholeMs,
      ms: toMs - fromMs,
    })),
  };
}

/** When nothing ran. */
function pausesOf(ordered: readonly Span[]): Span[] {
  const pauses: Span[] = [];
  let busyUntil = Number.POSITIVE_INFINITY;
  for (const { fromMs, toMs } of ordered) {
    if (fromMs > busyUntil) pauses.push({ fromMs: busyUntil, toMs: fromMs });
    busyUntil = busyUntil === Number.POSITIVE_INFINITY ? toMs : Math.max(busyUntil, toMs);
  }
  return pauses;
}

/** Each in the first lane that is free. */
function packed(ordered: readonly Span[]): { lanes: number; laneOf: number[] } {
  const freeFrom: number[] = [];
  const laneOf = ordered.map(({ fromMs, toMs }) => {
    const free = freeFrom.findIndex((at) => at <= fromMs);
    const lane = free < 0 ? freeFrom.length : free;
    freeFrom[lane] = toMs;
    return lane;
  });
  return { lanes: freeFrom.length, laneOf };
}
