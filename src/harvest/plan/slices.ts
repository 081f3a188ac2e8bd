/** The slices of a plan with their tasks, as rows, in batches for the database. */
import { invalid } from "../../kernel/errors.ts";
import { fingerprint } from "../../kernel/json/canonical.ts";
import type { Estimate } from "../slice/estimate.ts";
import { type Part, piecesOf } from "../slice/parts.ts";
import { type SliceBounds, sliceOf } from "../spec/hashes.ts";
import type { Snapshot } from "../spec/snapshot.ts";
import { telemetryOf } from "../store/plans/estimates.ts";
import type { NewSlice } from "../store/plans/plans.ts";
import { type Range, slicesBackwards, slicesOf } from "./window.ts";

/** Slices of one plan: 20 years of days are 7,300, and 10 years of hours 87,600. */
const PLAN_SLICES_MAX = 100_000;

const BATCH = 1_000;

export interface ToSlice {
  /** What is expected of a slice, for people. */
  sizes?: { of(piece: Piece): Estimate | undefined };
  snapshot: Snapshot;
  exprProtoHash: string;
  scheduleInstanceId: string;
}

/** What a slice takes: a window, a part of the ids, or all of an endpoint that knows no time. */
export type Piece = Range | { part: Part } | null;

/** The pieces of the slices, in the order of time, or for BACKFILL against it, or of ids. `ranges` are in the order of time. */
export function* windowsOf(
  { operation, spec }: Snapshot,
  ranges: readonly Range[],
  /** Unset: `maxWindow`. */
  widthMs?: number,
): Generator<Piece> {
  const { landing, slicing } = spec;
  const window = spec.window && widthMs !== undefined ? { ...spec.window, maxWindowMs: widthMs } : spec.window;
  if (slicing?.ids) for (const part of piecesOf(slicing.ids, slicing.size)) yield { part };
  else if (!window) yield null;
  else if (operation === "BACKFILL") {
    for (const range of ranges.toReversed()) yield* slicesBackwards(window, range, landing?.grain);
  } else for (const range of ranges) yield* slicesOf(window, range, landing?.grain);
}

/** What is left of a window where its slices end at `at`: what is later, or for BACKFILL what is earlier. */
export function restOf(operation: Snapshot["operation"], window: Range, at: Date): Range {
  return operation === "BACKFILL" ? { from: window.from, to: at } : { from: at, to: window.to };
}

/** At most this many slices, or one more for each range, without cutting them: to refuse a plan before its work. */
function sliceCountMax({ spec }: Snapshot, ranges: readonly Range[], maxWindowMs = spec.window?.maxWindowMs): number {
  const grainMs = spec.landing ? { hour: 3_600_000, day: 82_800_000 }[spec.landing.grain] : Number.POSITIVE_INFINITY;
  const widthMs = Math.min(maxWindowMs ?? grainMs, grainMs);
  return ranges.reduce((sum, { from, to }) => sum + Math.ceil((to.getTime() - from.getTime()) / widthMs), 0);
}

/** Whether slices of this width would be more than a plan may have. */
export function isTooMany(snapshot: Snapshot, ranges: readonly Range[], widthMs?: number): boolean {
  return sliceCountMax(snapshot, ranges, widthMs) > PLAN_SLICES_MAX;
}

/** Throws VALIDATION_FAILED. */
export function refuseTooMany(snapshot: Snapshot, ranges: readonly Range[]): void {
  if (!isTooMany(snapshot, ranges)) return;
  throw invalid(
    `The window would have more than ${PLAN_SLICES_MAX} slices: take a shorter one, or a longer \`maxWindow\``,
  );
}

/** Rows with the numbers after `lastNo`, a thousand at a time. */
export function* sliceBatches(plan: ToSlice, windows: Iterable<Piece>, lastNo: number): Generator<NewSlice[]> {
  let batch: NewSlice[] = [];
  let no = lastNo;
  for (const window of windows) {
    no += 1;
    batch.push(sliceRow(plan, window, no));
    if (batch.length < BATCH) continue;
    yield batch;
    batch = [];
  }
  if (batch.length > 0) yield batch;
}

function sliceRow(plan: ToSlice, piece: Piece, sliceNo: number): NewSlice {
  const part = piece && "part" in piece ? piece.part : null;
  const window = piece && "from" in piece ? piece : null;
  const bounds: SliceBounds = part
    ? { dimension: "PART", time: null, part }
    : window
      ? { dimension: "TIME", time: window }
      : { dimension: "NONE" };
  const slice = sliceOf(plan, bounds);
  const estimate = plan.sizes?.of(piece);
  return {
    slice_no: sliceNo,
    window_from: window?.from ?? null,
    window_to: window?.to ?? null,
    part,
    slice_spec: { ...slice.sliceSpec, ...(estimate ? telemetryOf(estimate) : {}) },
    slice_signature_hash: slice.sliceSignatureHash,
    expr_hash: slice.exprHash,
    expr_snapshot: slice.exprSnapshot,
    idempotent_key: taskKey(plan, slice),
  };
}

/** The same trigger makes the same slice into one task, however often it is repeated. */
export function taskKey(
  { snapshot, scheduleInstanceId }: Pick<ToSlice, "snapshot" | "scheduleInstanceId">,
  { sliceSignatureHash, exprHash }: { sliceSignatureHash: string; exprHash: string },
): string {
  const { operation, params } = snapshot;
  return fingerprint([sliceSignatureHash, exprHash, operation, scheduleInstanceId, params]);
}

export function* firstOf<Item>(items: Iterator<Item>, limit: number): Generator<Item> {
  for (let taken = 0; taken < limit; taken += 1) {
    const { done, value } = items.next();
    if (done) return;
    yield value;
  }
}
