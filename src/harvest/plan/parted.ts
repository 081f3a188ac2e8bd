/**
 * Ends the slices whose last part has ended, in the transaction of that part. A slice is COMPLETE when each part is, no record came
 * in two of them, and together they have what the source announced for the whole: then the parts were disjoint and left nothing
 * out. Otherwise it is INCOMPLETE with the reason, and the watermark does not pass it.
 */
import type { Tx } from "../../kernel/data/db.ts";
import type { ServiceLog } from "../../kernel/work/service.ts";
import type { Landing } from "../landing/landing.ts";
import { lockGap } from "../store/plans/gaps.ts";
import { countIdsOfParts, type EndedParts, endedParts, endParted } from "../store/plans/parts.ts";
import { advanceOver, type WatermarkDeps } from "./watermark.ts";

export interface PartedDeps extends WatermarkDeps {
  landing: Pick<Landing, "wantEnded">;
  log: Pick<ServiceLog, "warn">;
}

/** Call it before the plans are locked: it locks watermarks and windows. */
export async function settleParted(deps: PartedDeps, tx: Tx, planIds: readonly string[]): Promise<void> {
  for (const ended of await endedParts(tx, planIds)) {
    const { slice_id: sliceId, plan_id: planId } = ended;
    const slice = await lockGap(tx, planId, sliceId);
    if (!slice) throw new Error(`slice ${sliceId} has parts, and is not there`);
    const reason = await gapOf(tx, ended, slice.window?.tolerance ?? 0);
    await endParted(tx, sliceId, reason === undefined ? "COMPLETE" : "INCOMPLETE", reason ?? null);
    if (reason === undefined) await advanceOver(deps, tx, { planId, sliceId }, slice);
    else tx.afterCommit(() => deps.log.warn({ planId, sliceId, reason }, "a window is not complete"));
    const { endpoint_id, window_from } = slice;
    if (window_from) await deps.landing.wantEnded(tx, [{ plan_id: planId, endpoint_id, window_from }]);
  }
}

/** Why the parts are not the whole. */
async function gapOf(
  tx: Tx,
  { slice_id, expected, parts, gaps, first_reason, by_pages }: EndedParts,
  tolerance: number,
): Promise<string | undefined> {
  if (gaps > 0)
    return `${gaps} of ${parts} parts ${gaps === 1 ? "is" : "are"} not complete. The first: ${first_reason}`;
  const { ids, ofParts } = await countIdsOfParts(tx, slice_id);
  if (ofParts > ids && !by_pages) {
    return `${ofParts - ids} records came in more than one of ${parts} parts, so their dimension does not divide them`;
  }
  if (expected - ids > tolerance) return `the source announced ${expected} records, and its ${parts} parts have ${ids}`;
  return undefined;
}
