/** What chains show on the overview. */
import type { OverviewPart } from "../kernel/overview/part.ts";
import { waitingOf } from "../kernel/overview/waiting-rows.ts";
import { endedRuns, failedChains, waitingChains } from "./store/overview.ts";

export const chainsOverview: OverviewPart = {
  scope: "run:read",
  async now(db) {
    const [failed, waiting] = await Promise.all([failedChains(db), waitingChains(db)]);
    return {
      needs: failed.map(({ run_id, name, op_time, reason, ended_at, runs }) => ({
        about: { kind: "run", id: run_id, ...(op_time !== null && { opTime: op_time }) },
        state: "failed",
        title: name,
        reason: reason ?? "It has failed.",
        count: runs,
        at: ended_at,
      })),
      waiting: waitingOf(waiting),
    };
  },
  activity: async (db, range) => ({ ended: [await endedRuns(db, range)] }),
};
