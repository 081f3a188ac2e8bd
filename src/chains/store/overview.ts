/** SQL for the overview: failed runs that were not repeated, what waits and for what, and finished runs. */
import type { Db } from "../../kernel/data/db.ts";
import { statement } from "../../kernel/data/statement.ts";
import { endedOf } from "../../kernel/overview/ended.ts";
import { ENTRIES_MAX, NEEDED_DAYS } from "../../kernel/overview/part.ts";
import { COUNTED_MAX } from "../../kernel/overview/values.ts";
import { SLOT_OR_PROCESS, type WaitingRow } from "../../kernel/overview/waiting-rows.ts";
import { isServed } from "../../kernel/work/session.ts";

// Runs of other runs are their parents' concern.
export const endedRuns = endedOf({
  name: "chains.overview.ended",
  kind: "run",
  table: "chains.job_run t",
  where: "t.ended_at is not null and t.parent_run_id is null",
  id: "t.run_id::text",
  endedAt: "t.ended_at",
  since: "t.created_at",
  succeeded: "t.status = 'SUCCESS'",
  failed: "t.status = 'FAILED'",
  lane: "t.chain_id::text",
  laneName: "(select d.name from chains.job_chain_definition d where d.chain_id = l.lane::uuid)",
  underWay: `select r.chain_id::text as lane from chains.job_run r
             where r.status in ('RUNNING', 'STOPPING') and r.parent_run_id is null and r.chain_id is not null`,
});

export interface FailedChainRow {
  run_id: string;
  name: string;
  op_time: string | null;
  reason: string | null;
  ended_at: Date;
  runs: number;
}

const FAILED_MAX = 200;
/** How many later runs of the same opTime, or of the same chain, are looked at for a success. */
const LATER_MAX = 50;
const REASON_LETTERS_MAX = 500;
const laterSucceeded = (of: string) =>
  `exists (select from (select s.chain_id, s.op_time, s.status from chains.job_run s
                        where ${of} and s.created_at > r.created_at order by s.created_at desc limit ${LATER_MAX}) s
           where s.status = 'SUCCESS' and s.chain_id = r.chain_id and s.op_time is not distinct from r.op_time)`;
const FAILED = statement<FailedChainRow>(
  "chains.overview.failed",
  `with failed as (
     select r.run_id, r.chain_id, r.job_name, r.op_time, r.reason, r.ended_at
     from (select * from chains.job_run where status = 'FAILED' and created_at > now() - interval '${NEEDED_DAYS} days'
             and parent_run_id is null order by created_at desc limit ${FAILED_MAX}) r
     where case when r.op_time is null then not ${laterSucceeded("s.chain_id = r.chain_id")}
                else not ${laterSucceeded("s.op_time = r.op_time")} end
   )
   select * from (
     select distinct on (f.chain_id) f.run_id, f.job_name as name, f.op_time, left(f.reason, ${REASON_LETTERS_MAX}) as reason, f.ended_at,
            (count(*) over (partition by f.chain_id))::int as runs
     from failed f order by f.chain_id, f.ended_at desc
   ) newest order by ended_at desc limit ${ENTRIES_MAX}`,
);

/** The newest of each chain, with their number; the newest chain first. A run that was repeated with success is left out. */
export function failedChains(db: Db): Promise<FailedChainRow[]> {
  return db.read(FAILED);
}

/** No node has the time from which it was ready: the creation of the oldest run is the nearest that is stored. */
const oldestOf = (runs: string) => `(select min(r.created_at) from chains.job_run r where r.run_id = any(${runs}))`;
const WAITING = statement<WaitingRow>(
  "chains.overview.waiting",
  `(select 'table' as cause, 'node' as kind, w.table_name::text as subject, 'table' as about_kind, w.table_name::text as about_id,
           count(*)::int as count, min(r.created_at) as oldest_at, null::timestamptz as next_at
    from (select * from chains.live_wait limit ${COUNTED_MAX}) w
    cross join lateral (select created_at from chains.job_run where run_id = w.run_id offset 0) r
    group by w.table_name order by count desc limit ${ENTRIES_MAX})
   union all
   (select 'pool', 'node', n.pool, 'pool', n.pool, n.count, ${oldestOf("n.runs")}, null
    from (select p.pool, count(*)::int as count, array_agg(distinct p.run_id) as runs
          from (select pool, run_id from chains.live_node where state = 'ready' and pool is not null limit ${COUNTED_MAX}) p
          group by p.pool order by count(*) desc limit ${ENTRIES_MAX}) n)
   union all
   (select s.cause, 'node', s.subject, null, null, n.count, ${oldestOf("n.runs")}, null
    from (select count(*)::int as count, array_agg(distinct run_id) as runs from (
            select run_id from chains.live_node where state = 'ready' and pool is null limit ${COUNTED_MAX}) n) n,
         (select ${SLOT_OR_PROCESS}) s
    where n.count > 0)
   union all
   (select 'retry', 'node', null, null, null, n.count, null, n.next_at
    from (select count(*)::int as count, min(due_at) as next_at from (
            select due_at from chains.live_node where state = 'delayed' and due_at is not null order by due_at limit ${COUNTED_MAX}) n) n
    where n.count > 0)
   union all
   (select case when ${isServed("scheduler")} then 'limit' else 'process' end, 'run',
           case when ${isServed("scheduler")} then d.name else 'scheduler' end, 'chain', p.chain_id::text, p.count, p.oldest_at, null
    from (select chain_id, count(*)::int as count, min(created_at) as oldest_at
          from (select chain_id, created_at from chains.job_run where status = 'PENDING' limit ${COUNTED_MAX}) p
          group by chain_id order by count(*) desc limit ${ENTRIES_MAX}) p
    join chains.job_chain_definition d on d.chain_id = p.chain_id)
   union all
   (select 'paused', 'schedule', d.name, 'chain', d.chain_id::text, count(*)::int, min(s.updated_at), null
    from chains.schedule s join chains.job_chain_definition d on d.chain_id = s.chain_id
    where s.paused group by d.chain_id, d.name order by count(*) desc limit ${ENTRIES_MAX})`,
);

export function waitingChains(db: Db): Promise<WaitingRow[]> {
  return db.read(WAITING);
}
