/** SQL that deletes old runs, with their nodes, attempts, checkpoints, logs and events. */
import type { Db } from "../../kernel/data/db.ts";
import { statement } from "../../kernel/data/statement.ts";
import { lockRuns } from "./live.ts";

// A child run is deleted after its parent run, whose retry may need it.
const OLD = statement<{ run_id: string }>(
  "chains.retention.old",
  `select run_id from chains.job_run r
   where created_at < now() - make_interval(days => $1) and ended_at < now() - make_interval(days => $1)
     and not exists (select from chains.job_run p where p.run_id = r.parent_run_id)
   order by created_at limit $2`,
);
const DELETE = statement<{ run_id: string }>(
  "chains.retention.delete",
  `with gone as (delete from chains.job_run where run_id = any($1) and ended_at is not null returning run_id),
        logs as (delete from chains.job_run_log where run_id in (select run_id from gone)),
        events as (delete from chains.job_run_event where run_id in (select run_id from gone)),
        checkpoints as (delete from chains.job_run_checkpoint where run_id in (select run_id from gone)),
        attempts as (delete from chains.job_run_attempt where run_id in (select run_id from gone)),
        nodes as (delete from chains.job_run_node where run_id in (select run_id from gone))
   select run_id from gone`,
);

/** Deletes at most `limit` runs. Returns how many it found. */
export async function deleteOldRuns(db: Db, keepDays: number, limit: number): Promise<number> {
  const old = (await db.read(OLD, [keepDays, limit])).map(({ run_id }) => run_id);
  if (old.length === 0) return 0;
  await db.tx(async (tx) => {
    await lockRuns(tx, old); // A run that is revived meanwhile is no longer ended, and stays.
    await tx.rows(DELETE, [old]);
  });
  return old.length;
}
