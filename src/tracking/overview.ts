/** What tracking shows on the overview. */
import type { Need, OverviewPart } from "../kernel/overview/part.ts";
import { waitingOf } from "../kernel/overview/waiting-rows.ts";
import { failedStages, type StuckStageRow, stuckStages, waitingShards } from "./store/overview.ts";

export const trackingOverview: OverviewPart = {
  scope: "pipeline:read",
  async now(db) {
    const [failed, stuck, waiting] = await Promise.all([failedStages(db), stuckStages(db), waitingShards(db)]);
    return {
      needs: [
        ...failed.map(
          ({ stage, shards, filename, last_error, at }): Need => ({
            about: { kind: "failed-stage", id: stage },
            state: "failed",
            title: stage,
            reason: reasonOf(filename, last_error),
            count: shards,
            at,
          }),
        ),
        ...stuck.map(
          (row): Need => ({
            about: { kind: "stuck-stage", id: row.stage },
            state: "stuck",
            title: row.stage,
            reason: whyStuck(row),
            count: row.shards,
            at: row.since,
          }),
        ),
      ],
      waiting: waitingOf(waiting),
    };
  },
};

function reasonOf(filename: string | null, error: string | null): string {
  if (filename === null) return "Shards have failed.";
  return error === null ? `A shard of ${filename} has failed.` : `${filename}: ${error}`;
}

function whyStuck({ reason, filename, worker }: StuckStageRow): string {
  const of = worker === null ? "" : ` of worker ${worker}`;
  return reason === "lease_expired"
    ? `${filename}: the lease${of} has expired, and the shard was not reclaimed.`
    : `${filename}: the shard was started more than an hour ago without a lease and is not finished.`;
}
