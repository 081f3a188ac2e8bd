/** SQL for the overview: shards that no daemon has claimed, failed shards, and shards whose worker is lost or takes too long. */
import type { Db } from "../../kernel/data/db.ts";
import { statement } from "../../kernel/data/statement.ts";
import { COUNTED_MAX } from "../../kernel/overview/values.ts";
import type { WaitingRow } from "../../kernel/overview/waiting-rows.ts";
import { QUEUE_STAGES, type QueueStage, STAGES, type Stage, stageBefore } from "../states.ts";
import { ANY_STATUS, statusColumn, TABLE } from "../store.ts";
import { STARTED_LONG } from "./stuck.ts";

const WAITING = statement<WaitingRow>(
  "tracking.overview.waiting",
  QUEUE_STAGES.map(
    (
      stage,
    ) => `select 'claim' as cause, 'shard' as kind, '${stage}' as subject, 'stage' as about_kind, '${stage}' as about_id, q.count,
            q.oldest_at, null::timestamptz as next_at
     from (select count(*)::int as count, min(created_at) as oldest_at from (
             select created_at from ${TABLE} where ${statusColumn(stageBefore(stage))} = 'done' and ${statusColumn(stage)} = 'new'
             order by created_at limit ${COUNTED_MAX}) q) q
     where q.count > 0`,
  ).join("\n   union all\n   "),
);

/** What no daemon has claimed yet, by stage. */
export function waitingShards(db: Db): Promise<WaitingRow[]> {
  return db.read(WAITING);
}

export interface FailedStageRow {
  stage: Stage;
  shards: number;
  /** Null if no shard of the stage is among those that were read. */
  filename: string | null;
  last_error: string | null;
  at: Date | null;
}
// The counts are those of the tally. The newest is exact up to the limit; beyond it, it is the newest of the last files by name,
// which is the order of the index of failed shards.
const FAILED = statement<FailedStageRow>(
  "tracking.overview.failed",
  `with failed as materialized (
     select filename, last_error, updated_at, ${ANY_STATUS} from ${TABLE} where 'failed' in (${ANY_STATUS})
     order by filename desc, shard desc limit ${COUNTED_MAX}
   )
   ${STAGES.map(
     (stage) => `select '${stage}' as stage, t.shards, f.filename, f.last_error, f.updated_at as at
     from (select sum(n)::int as shards from tracking.status_tally where ${statusColumn(stage)} = 'failed') t
     left join lateral (select * from failed where ${statusColumn(stage)} = 'failed' order by updated_at desc limit 1) f on true
     where t.shards > 0`,
   ).join("\n   union all\n   ")}`,
);

/** The newest of each stage, with their number. A shard that has failed in two stages counts in both. */
export function failedStages(db: Db): Promise<FailedStageRow[]> {
  return db.read(FAILED);
}

export interface StuckStageRow {
  stage: QueueStage;
  shards: number;
  reason: "lease_expired" | "started_long";
  filename: string;
  worker: string | null;
  since: Date;
}
/** Expired leases are normally reclaimed within seconds; only those that are older count as stuck. */
const EXPIRED_SECONDS = 60;
// By the indexes of leases and of shards that were started without one: the cost follows the shards that are in work.
const STUCK = statement<StuckStageRow>(
  "tracking.overview.stuck",
  `with stuck as materialized (
     (select filename, worker, leased_until as since, 'lease_expired' as reason, ${ANY_STATUS} from ${TABLE}
      where leased_until <= now() - interval '${EXPIRED_SECONDS} s' order by leased_until limit ${COUNTED_MAX})
     union all
     (select t.filename, t.worker, t.updated_at, 'started_long', ${ANY_STATUS} from ${TABLE} t
      where ${STARTED_LONG} limit ${COUNTED_MAX})
   )
   ${QUEUE_STAGES.map(
     (stage) => `select '${stage}' as stage, s.shards, o.reason, o.filename, o.worker, o.since
     from (select count(*)::int as shards from stuck where ${statusColumn(stage)} = 'started') s
     cross join lateral (select * from stuck where ${statusColumn(stage)} = 'started' order by since limit 1) o`,
   ).join("\n   union all\n   ")}`,
);

/** By stage, each with its oldest shard. */
export function stuckStages(db: Db): Promise<StuckStageRow[]> {
  return db.read(STUCK);
}
