/**
 * Accepts the gap of a slice that ended FAILED or INCOMPLETE, or was cancelled without its plan, and stays so, such as a day over the cap
 * of its source. The slice keeps its state and its reason; the watermark passes it, and plans of what is new leave it out. Its
 * window does not land: a table that has arrived is whole.
 */
import { type Actor, audit } from "../../kernel/auth/audit.ts";
import type { Db } from "../../kernel/data/db.ts";
import { UUID } from "../../kernel/ids.ts";
import { type HarvestHints, type HarvestMetrics, harvestError } from "../catalogue.ts";
import { acceptGap, lockGap } from "../store/plans/gaps.ts";
import { findSlice, type SliceRow } from "../store/plans/plan-reads.ts";
import { advanceOver } from "./watermark.ts";

export interface Gaps {
  /** Repeating it is harmless: the first acceptance stays. */
  accept(slice: { planId: string; sliceId: string }, reason: string, actor: Actor): Promise<SliceRow>;
}

const SLICE_ID = /^\d{1,18}$/;

export function createGaps({ db, hints, metrics }: { db: Db; hints: HarvestHints; metrics: HarvestMetrics }): Gaps {
  return {
    async accept({ planId, sliceId }, reason, actor) {
      if (!UUID.test(planId)) throw harvestError("PLAN_NOT_FOUND", { id: planId });
      const unknown = () => harvestError("HARVEST_SLICE_NOT_FOUND", { plan: planId, id: sliceId });
      if (!SLICE_ID.test(sliceId)) throw unknown();
      await db.tx(async (tx) => {
        const gap = await lockGap(tx, planId, sliceId);
        if (!gap) throw unknown();
        if (gap.accepted_at !== null) return;
        const status = gap.status_code;
        if (gap.root_slice_id !== null) {
          throw harvestError("HARVEST_SLICE_IS_PART", { id: sliceId, whole: gap.root_slice_id });
        }
        if (!gap.is_gap) {
          const hint =
            status === "CANCELLED" ? " This one was cancelled with its plan: the next plan takes its window." : "";
          throw harvestError("HARVEST_SLICE_NO_GAP", { id: sliceId, status }, { hint });
        }
        await acceptGap(tx, sliceId, actor.caller.name, reason);
        await audit(tx, actor, "slice.accept", `${planId}/${sliceId}`, { reason, status });
        hints.changed(tx, "plan", planId);
        await advanceOver({ hints, metrics }, tx, { planId, sliceId }, gap);
      });
      const slice = await findSlice(db, planId, sliceId);
      if (!slice) throw unknown();
      return slice;
    },
  };
}
