/** What tracking shows on the overview. */
import type { OverviewPart } from "../kernel/overview/part.ts";
import { waitingOf } from "../kernel/overview/waiting-rows.ts";
import { failedStages, waitingShards } from "./store/overview.ts";

export const trackingOverview: OverviewPart = {
  scope: "pipeline:read",
  async now(db) {
    const [failed, waiting] = await Promise.all([failedStages(db), waitingShards(db)]);
    return {
      needs: failed.map(({ stage, shards, filename, last_error, at }) => ({
        about: { kind: "failed-stage", id: stage },
        state: "failed",
        title: stage,
        reason: reasonOf(filename, last_error),
        count: shards,
        at,
      })),
      waiting: waitingOf(waiting),
    };
  },
};

function reasonOf(filename: string | null, error: string | null): string {
  if (filename === null) return "Shards have failed.";
  return error === null ? `A shard of ${filename} has failed.` : `${filename}: ${error}`;
}
