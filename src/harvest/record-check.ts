/**
 * The doctor's check of the record feed. Its order is that of transaction ids, which begin again in another cluster: after a dump
 * is restored there, records may have ids that the cluster has yet to give.
 */
import type { DoctorCheck } from "../kernel/doctor.ts";
import { changesAhead } from "./store/records/record-feed.ts";

export const recordCheck: DoctorCheck = {
  name: "record feed",
  async look(db) {
    const ahead = await changesAhead(db);
    if (ahead === undefined) return { verdict: "ok", found: "All changes of records are in the past of this cluster." };
    const { changeXid, nextXid } = ahead;
    return {
      verdict: "broken",
      found: `Records have changes of transaction ${changeXid}, and the next one of this cluster is ${nextXid}: the feed holds them back.`,
      advice:
        "The database was restored into a new cluster. Advance its transaction id beyond that number (pg_resetwal -x and -e), and let whoever follows the feed start again without `after`.",
    };
  },
};
