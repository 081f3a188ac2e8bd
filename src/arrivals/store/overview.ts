/** SQL for the overview: models that have failed, that ask or that wait, and the runs that have ended. */
import type { Db } from "../../kernel/data/db.ts";
import { statement } from "../../kernel/data/statement.ts";
import { endedOf } from "../../kernel/overview/ended.ts";
import { ENTRIES_MAX, NEEDED_DAYS } from "../../kernel/overview/part.ts";
import { COUNTED_MAX } from "../../kernel/overview/values.ts";
import { SLOT_OR_PROCESS, type WaitingRow } from "../../kernel/overview/waiting-rows.ts";
import type { InstanceKey } from "./instances.ts";

export const endedModels = endedOf({
  name: "arrivals.overview.ended",
  kind: "model",
  table: "arrivals.metrics_task_log t",
  where: "t.end_time is not null",
  // What a page of the model needs to show the run.
  id: "t.op_time",
  endedAt: "t.end_time",
  since: "t.start_time",
  succeeded: "t.status = 'SUCCESS'",
  failed: "t.status = 'FAILED'",
  lane: "t.model_id",
  underWay: "select r.model_id as lane from arrivals.metrics_task_log r where r.status = 'RUNNING'",
});

export interface FailedModelRow extends InstanceKey {
  message: string | null;
  end_time: Date;
  runs: number;
}

const FAILED_MAX = 200;
// A later run of the same opTime decides, whatever became of it. One that is tried again needs nobody yet.
const FAILED = statement<FailedModelRow>(
  "arrivals.overview.failed",
  `with failed as (
     select r.model_id, r.op_time, r.message, r.end_time
     from (select * from arrivals.metrics_task_log where status = 'FAILED' order by id desc limit ${FAILED_MAX}) r
     where r.end_time > now() - interval '${NEEDED_DAYS} days'
       and not exists (select from arrivals.model_instance i
                       where i.model_id = r.model_id and i.op_time = r.op_time
                         and (i.state = 'retrying' or i.state = 'ready' and i.failed_attempts > 0))
       and r.id = (select l.id from arrivals.metrics_task_log l where l.model_id = r.model_id and l.op_time = r.op_time
                   order by l.id desc limit 1)
   )
   select * from (
     select distinct on (f.model_id) f.model_id, f.op_time, f.message, f.end_time, (count(*) over (partition by f.model_id))::int as runs
     from failed f order by f.model_id, f.end_time desc
   ) newest order by end_time desc limit ${ENTRIES_MAX}`,
);

/** The newest of each model, with their number; the newest model first. */
export function failedModels(db: Db): Promise<FailedModelRow[]> {
  return db.read(FAILED);
}

export interface WaitingInstanceRow extends InstanceKey {
  updated_at: Date;
}
const NEWEST_IN = statement<WaitingInstanceRow>(
  "arrivals.overview.instances",
  `select model_id, op_time, updated_at from arrivals.model_instance
   where state = $1 and state in ('waiting', 'asking') order by updated_at desc limit $2`,
);

/** The newest of them. */
export function instancesIn(db: Db, state: "waiting" | "asking", limit: number): Promise<WaitingInstanceRow[]> {
  return db.read(NEWEST_IN, [state, limit]);
}

const WAITING = statement<WaitingRow>(
  "arrivals.overview.waiting",
  `select 'quiet' as cause, 'model' as kind, null as subject, null as about_kind, null as about_id, q.count, null::timestamptz as oldest_at,
          q.next_at
   from (select count(*)::int as count, min(due_at) as next_at from (
           select due_at from arrivals.model_instance where state = 'quiet' order by due_at limit ${COUNTED_MAX}) q) q
   where q.count > 0
   union all
   select 'retry', 'model', null, null, null, b.count, null, b.next_at
   from (select count(*)::int as count, min(due_at) as next_at from (
           select due_at from arrivals.model_instance where state = 'retrying' order by due_at limit ${COUNTED_MAX}) b) b
   where b.count > 0
   union all
   select s.cause, 'model', s.subject, null, null, r.count, r.oldest_at, null
   from (select count(*)::int as count, min(ready_at) as oldest_at from (
           select ready_at from arrivals.model_instance where state in ('ready', 'returned') order by ready_at limit ${COUNTED_MAX}) r) r,
        (select ${SLOT_OR_PROCESS}) s
   where r.count > 0`,
);

/** Models that wait for something else than a table. */
export function waitingModels(db: Db): Promise<WaitingRow[]> {
  return db.read(WAITING);
}
