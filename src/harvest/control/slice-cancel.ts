/**
 * Cancels one slice, or the task that executes it, and leaves the rest of the plan alone. A part is cancelled with the slice that it
 * is a part of. Its window stays missing: the plan ends FAILED, the watermark does not pass it, and the next plan of what is new
 * takes it, unless somebody accepts the gap.
 */
import { type Actor, audit } from "../../kernel/auth/audit.ts";
import type { Db } from "../../kernel/data/db.ts";
import { UUID } from "../../kernel/ids.ts";
import type { Wake } from "../../kernel/work/wake.ts";
import { harvestError } from "../catalogue.ts";
import type { Landing } from "../landing/landing.ts";
import type { Settle } from "../plan/settle.ts";
import { cancelSlice, sliceOfTask } from "../store/plans/plan-ends.ts";
import { findSlice, type SliceRow } from "../store/plans/plan-reads.ts";
import { TASKS_TOPIC } from "../topics.ts";

export interface SliceCancel {
  slice(slice: SliceId, actor: Actor): Promise<SliceRow>;
  task(taskId: string, actor: Actor): Promise<SliceRow>;
}
interface SliceId {
  planId: string;
  sliceId: string;
}

const NUMBER = /^\d{1,18}$/;

export function createSliceCancel(deps: {
  db: Db;
  wake: Wake;
  settle: Settle;
  landing: Pick<Landing, "wantCancelled">;
}): SliceCancel {
  const { db, wake, settle, landing } = deps;

  async function found({ planId, sliceId }: SliceId): Promise<SliceRow> {
    const slice = UUID.test(planId) && NUMBER.test(sliceId) ? await findSlice(db, planId, sliceId) : undefined;
    if (!slice) throw harvestError("HARVEST_SLICE_NOT_FOUND", { plan: planId, id: sliceId });
    return slice;
  }

  async function cancel(slice: SliceId, actor: Actor): Promise<SliceRow> {
    await found(slice);
    const { planId, sliceId } = slice;
    const cancelled = await db.tx(async (tx) => {
      const done = await cancelSlice(tx, slice, `cancelled by ${actor.caller.name}`);
      if (!done) return undefined;
      await audit(tx, actor, "slice.cancel", `${planId}/${done.sliceId}`);
      await settle(tx, [planId]);
      tx.afterCommit(() => wake.hint(TASKS_TOPIC)); // Its place in the partition is free.
      return done;
    });
    if (!cancelled) {
      const { status_code: status } = await found(slice);
      const hint = status === "SPLIT" ? " Its parts have slices of their own." : "";
      throw harvestError("HARVEST_SLICE_ENDED", { id: sliceId, status }, { hint });
    }
    await landing.wantCancelled(planId, cancelled.changed);
    return found({ planId, sliceId: cancelled.sliceId });
  }

  return {
    slice: cancel,
    async task(taskId, actor) {
      const task = NUMBER.test(taskId) ? await sliceOfTask(db, taskId) : undefined;
      if (!task) throw harvestError("HARVEST_TASK_NOT_FOUND", { id: taskId });
      const { status } = task;
      if (status !== "QUEUED" && status !== "EXECUTING")
        throw harvestError("HARVEST_TASK_ENDED", { id: taskId, status });
      return cancel(task, actor);
    },
  };
}
