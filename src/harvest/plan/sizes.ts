/**
 * What a plan may expect of its windows before anything is asked: what they had when they were harvested before, or what windows near them
 * had in the same time. Where the first answer of a slice will not tell its size either, slices are made so narrow that they are expected
 * to have what one slice should.
 */
import type { Queryable } from "../../kernel/data/db.ts";
import { type Estimate, estimateOf, isMeasured, limitOf, widthFor } from "../slice/estimate.ts";
import type { Snapshot } from "../spec/snapshot.ts";
import { type EarlierSlice, earlierSlices, recordsPerMs } from "../store/plans/estimates.ts";
import type { Namespace } from "../store/plans/plans.ts";
import { firstOf, isTooMany, type Piece, windowsOf } from "./slices.ts";
import type { Range } from "./window.ts";

/** Of a plan. */
export interface Sizes {
  /** Of all windows together. */
  estimate: Estimate | undefined;
  /** What slices have at most; unset: `maxWindow`. */
  widthMs: number | undefined;
  of(piece: Piece): Estimate | undefined;
  /** The newest slice that had this window. */
  earlier(piece: Piece): EarlierSlice | undefined;
}

/** Windows that are looked up one by one; those behind them have what others had. */
const LOOKED_UP = 1_000;

const UNKNOWN: Sizes = {
  estimate: undefined,
  widthMs: undefined,
  of: () => undefined,
  earlier: () => undefined,
};

export async function sizesOf(
  reader: Queryable,
  snapshot: Snapshot,
  namespace: Pick<Namespace, "endpointId" | "key">,
  ranges: readonly Range[],
): Promise<Sizes> {
  const last = ranges.at(-1);
  if (!snapshot.spec.window || snapshot.spec.slicing?.ids || !last) return UNKNOWN;
  const perMs = await recordsPerMs(reader, namespace, last.to);
  const widthMs = widthOf(snapshot, ranges, perMs);
  const first = [...firstOf(windowsOf(snapshot, ranges, widthMs), LOOKED_UP)].filter(isRange);
  const found = await earlierSlices(reader, namespace, first);
  const earlier = new Map(
    found.flatMap((slice) => {
      const window = first[slice.no - 1];
      return window ? [[keyOf(window), slice] as const] : [];
    }),
  );
  const historyOf = (window: Range) =>
    earlier.get(keyOf(window))?.records ?? (perMs === undefined ? undefined : Math.round(perMs * lengthOf(window)));
  return {
    widthMs,
    estimate: estimateOf({ history: sumOf(ranges, first, historyOf, perMs) }),
    of: (piece) => (isRange(piece) ? estimateOf({ history: historyOf(piece) }) : undefined),
    earlier: (piece) => (isRange(piece) ? earlier.get(keyOf(piece)) : undefined),
  };
}

/** Undefined for `maxWindow`. */
function widthOf(snapshot: Snapshot, ranges: readonly Range[], perMs: number | undefined): number | undefined {
  const { spec } = snapshot;
  const limit = limitOf(spec);
  if (!spec.window || perMs === undefined || limit === undefined || isMeasured(spec)) return undefined;
  const widthMs = widthFor(spec.window, perMs, limit);
  // An estimate refuses no plan.
  return widthMs < spec.window.maxWindowMs && !isTooMany(snapshot, ranges, widthMs) ? widthMs : undefined;
}

/** Undefined unless something is known of every window. */
function sumOf(
  ranges: readonly Range[],
  first: readonly Range[],
  historyOf: (window: Range) => number | undefined,
  perMs: number | undefined,
): number | undefined {
  let sum = 0;
  let restMs = ranges.reduce((all, range) => all + lengthOf(range), 0);
  for (const window of first) {
    const records = historyOf(window);
    if (records === undefined) return undefined;
    sum += records;
    restMs -= lengthOf(window);
  }
  if (restMs > 0 && perMs === undefined) return undefined;
  return sum + Math.round(restMs * (perMs ?? 0));
}

function isRange(piece: Piece): piece is Range {
  return piece !== null && "from" in piece;
}

function keyOf({ from, to }: Range): string {
  return `${from.getTime()} ${to.getTime()}`;
}

function lengthOf({ from, to }: Range): number {
  return to.getTime() - from.getTime();
}
