/** The totals of the pipeline: shards by stage and status, and by shard number. */
import type { Db } from "../kernel/data/db.ts";
import { STAGES, STATUSES, type Status } from "./states.ts";
import { columnPrefix, totals } from "./store.ts";

export async function summary(db: Db) {
  const { by_status, by_shard } = await totals(db);
  const none = () => Object.fromEntries(STATUSES.map((status) => [status, 0])) as Record<Status, number>;
  const byStage = Object.fromEntries(STAGES.map((stage) => [columnPrefix(stage), none()]));
  for (const row of by_status) {
    for (const [prefix, counts] of Object.entries(byStage)) counts[row[`${prefix}_status`] as Status] += row.n;
  }
  return {
    total: by_status.reduce((sum, { n }) => sum + n, 0),
    by_stage: byStage,
    by_shard, // Done and failed count the last stage.
  };
}
