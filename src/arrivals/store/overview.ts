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

// Each cause is about the model whose turn comes first: the map has no filter for states.
const waitingIn = (cause: string, subject: string, states: string, time: "due_at" | "ready_at") =>
  `select ${cause} as cause, 'model' as kind, ${subject} as subject, 'model' as about_kind, w.models[1] as about_id, w.op_times[1] as about_op_time, w.count,
          ${time === "ready_at" ? "w.first" : "null::timestamptz"} as oldest_at, ${time === "due_at" ? "w.first" : "null::timestamptz"} as next_at
   from (select count(*)::int as count, min(i.${time}) as first, array_agg(i.model_id order by i.${time}) as models,
                array_agg(i.op_time order by i.${time}) as op_times
         from (select model_id, op_time, ${time} from arrivals.model_instance where state in (${states})
               order by ${time} limit ${COUNTED_MAX}) i) w,
        (select ${SLOT_OR_PROCESS}) s
   where w.count > 0`;
const WAITING = statement<WaitingRow>(
  "arrivals.overview.waiting",
  `${waitingIn("'quiet'", "null", "'quiet'", "due_at")}
   union all
   ${waitingIn("'retry'", "null", "'retrying'", "due_at")}
   union all
   ${waitingIn("s.cause", "s.subject", "'ready', 'returned'", "ready_at")}`,
);

/** Models that wait for something else than a table. */
export function waitingModels(db: Db): Promise<WaitingRow[]> {
  return db.read(WAITING);
}
