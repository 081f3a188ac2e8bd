/** The expected answer of `/metrics/summary`, counted from the rows. */
import { STAGES, STATUSES, type Status } from "../../src/tracking/states.ts";
import type { Row } from "./ledger.ts";

type StatusColumn = Extract<keyof Row, `${string}_status`>;

export function countedSummary(rows: readonly Row[]) {
  const shards = [...new Set(rows.map(({ shard }) => shard))].sort((a, b) => a - b);
  return {
    total: rows.length,
    by_stage: Object.fromEntries(
      STAGES.map((stage) => {
        const prefix = stage.replace("-", "_");
        const counts = STATUSES.map((status) => [status, count(rows, `${prefix}_status` as StatusColumn, status)]);
        return [prefix, Object.fromEntries(counts)];
      }),
    ),
    by_shard: shards.map((shard) => {
      const ofShard = rows.filter((row) => row.shard === shard);
      return {
        shard,
        total: ofShard.length,
        done: count(ofShard, "mysql_sender_status", "done"),
        failed: count(ofShard, "mysql_sender_status", "failed"),
      };
    }),
  };
}

function count(rows: readonly Row[], column: StatusColumn, status: Status): number {
  return rows.filter((row) => row[column] === status).length;
}
