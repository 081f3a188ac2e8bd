/** SQL for the overview: plans that have ended, tasks that wait, how the sources answer, and how far cursors were. */
import type { Db } from "../../../kernel/data/db.ts";
import { statement } from "../../../kernel/data/statement.ts";
import { endedOf } from "../../../kernel/overview/ended.ts";
import { ENTRIES_MAX } from "../../../kernel/overview/part.ts";
import { COUNTED_MAX } from "../../../kernel/overview/values.ts";
import { SLOT_OR_PROCESS, type WaitingRow } from "../../../kernel/overview/waiting-rows.ts";
import type { CursorRow } from "../cursors/cursor-reads.ts";
import { isPartitionPaused } from "../queue/pauses.ts";

export const endedPlans = endedOf({
  name: "harvest.overview.ended",
  kind: "plan",
  table: "harvest.ing_plan t",
  where: "t.ended_at is not null",
  id: "t.plan_id::text",
  endedAt: "t.ended_at",
  since: "t.created_at",
  succeeded: "t.status_code = 'COMPLETE'",
  failed: "t.status_code = 'FAILED'",
  lane: "t.provenance_code",
  underWay: "select r.provenance_code as lane from harvest.ing_plan r where r.ended_at is null",
});

const WAITING = statement<WaitingRow>(
  "harvest.overview.waiting",
  `with queued as materialized (
     select wait_gate, provenance_code, scheduled_at, created_at, ${isPartitionPaused("partition_key")} as is_paused
     from harvest.ing_task where status_code = 'QUEUED' limit ${COUNTED_MAX}
   )
   (select 'gate' as cause, 'task' as kind, wait_gate as subject, 'source' as about_kind, min(provenance_code) as about_id, count(*)::int as count,
           min(created_at) as oldest_at, min(scheduled_at) as next_at
    from queued where wait_gate is not null and not is_paused group by wait_gate order by count(*) desc limit ${ENTRIES_MAX})
   union all
   (select 'retry', 'task', provenance_code, 'source', provenance_code, count(*)::int, min(created_at), min(scheduled_at)
    from queued where wait_gate is null and scheduled_at > now() and not is_paused group by provenance_code order by count(*) desc limit ${ENTRIES_MAX})
   union all
   (select s.cause, 'task', s.subject, null, null, q.count, q.oldest_at, null
    from (select count(*)::int as count, min(created_at) as oldest_at from queued
          where wait_gate is null and scheduled_at <= now() and not is_paused) q,
         (select ${SLOT_OR_PROCESS}) s
    where q.count > 0)
   union all
   (select 'paused', 'task', provenance_code, 'source', provenance_code, count(*)::int, min(created_at), null
    from queued where is_paused group by provenance_code order by count(*) desc limit ${ENTRIES_MAX})
   union all
   (select 'paused', 'schedule', provenance_code, 'source', provenance_code, count(*)::int, min(paused_at), null
    from harvest.ing_schedule where paused_at is not null group by provenance_code order by count(*) desc limit ${ENTRIES_MAX})`,
);

export function waitingTasks(db: Db): Promise<WaitingRow[]> {
  return db.read(WAITING);
}

export interface SourceRow {
  source: string;
  name: string;
  requests: number;
  failed: number;
  refusals: number;
  wait_ms: number;
  answer_ms: number;
  /** The time of its runs; of those under way, that of their requests. */
  busy_ms: number;
  usual_requests: number;
  usual_answer_ms: number;
  held_back: number;
  held_by: string | null;
  /** Millrace has paused an endpoint of it. */
  is_refused: boolean;
  /** The gate of its newest plan that lets the least through. */
  slowest_gate: string | null;
  last_success_at: Date | null;
}

const SOURCES_MAX = 200;
const PLANS_READ = 50;
/** Of each partition: the newest are enough to tell how a source answers, and an hour may have thousands. */
const TASKS_READ = 50;
const RUNS_READ = 5;
const BATCHES_READ = 50;
const INT8_MAX = "9223372036854775807";
const sum = (what: string, condition: string) => `coalesce(sum(${what}) filter (where ${condition}), 0)::float8`;
const figure = (name: string) => `(r.stats ->> '${name}')::float8`;
const IS_RECENT = "m.at > now() - interval '1 hour'";
// Runs that have ended know their sums; of those under way, the newest pages. The partition is a range for the reason that is
// given at the list of tasks.
const SOURCES = statement<SourceRow>(
  "harvest.overview.sources",
  `with held as materialized (
     select t.provenance_code, count(*)::int as held_back, min(t.wait_gate) as held_by
     from (select provenance_code, wait_gate from harvest.ing_task where wait_gate is not null and status_code = 'QUEUED'
           limit ${COUNTED_MAX}) t
     group by t.provenance_code
   )
   select s.provenance_code as source, s.name, coalesce(a.requests, 0)::int as requests, coalesce(a.failed, 0)::int as failed,
          coalesce(a.refusals, 0)::int as refusals, coalesce(a.wait_ms, 0) as wait_ms, coalesce(a.answer_ms, 0) as answer_ms,
          coalesce(a.busy_ms, 0) as busy_ms,
          coalesce(a.usual_requests, 0) as usual_requests, coalesce(a.usual_answer_ms, 0) as usual_answer_ms,
          coalesce(held.held_back, 0) as held_back, held.held_by,
          exists (select from harvest.pause z where z.provenance_code = s.provenance_code and z.is_automatic) as is_refused, plans.last_success_at, gate.key as slowest_gate
   from harvest.reg_provenance s
   left join lateral (
     select ${sum("m.requests", IS_RECENT)} as requests, ${sum("m.failed", IS_RECENT)} as failed,
            ${sum("m.refusals", IS_RECENT)} as refusals, ${sum("m.wait_ms", IS_RECENT)} as wait_ms,
            ${sum("m.answer_ms", IS_RECENT)} as answer_ms, ${sum("m.busy_ms", IS_RECENT)} as busy_ms,
            ${sum("m.requests", `not ${IS_RECENT}`)} as usual_requests,
            ${sum("m.answer_ms", `not ${IS_RECENT}`)} as usual_answer_ms
     from harvest.ing_partition p
     cross join lateral (
       select r.ended_at as at, ${figure("reqCount")} as requests, ${figure("failed")} as failed, ${figure("429Count")} as refusals,
              ${figure("waitTotalMs")} as wait_ms, ${figure("avgLatencyMs")} * ${figure("reqCount")} as answer_ms,
              extract(epoch from r.ended_at - r.started_at) * 1000 as busy_ms
       from (select task_id from harvest.ing_task t
             where t.partition_key >= p.partition_key and (t.partition_key, t.task_id) < (p.partition_key, ${INT8_MAX})
             order by t.partition_key desc, t.task_id desc limit ${TASKS_READ}) t
       cross join lateral (select stats, started_at, ended_at from harvest.ing_task_run where task_id = t.task_id
                           order by attempt_no desc limit ${RUNS_READ}) r
       where r.ended_at is not null
       union all
       select b.created_at, 1 + (b.stats ->> 'retries')::float8, (b.stats ->> 'retries')::float8, 0,
              (b.response_digest #>> '{rate,waitMs}')::float8, (b.stats ->> 'latencyMs')::float8,
              (b.response_digest #>> '{rate,waitMs}')::float8 + (b.stats ->> 'latencyMs')::float8
       from (select task_id from harvest.ing_task where status_code = 'EXECUTING' and partition_key = p.partition_key
             limit ${TASKS_READ}) t
       cross join lateral (select run_id from harvest.ing_task_run where task_id = t.task_id order by attempt_no desc limit 1) r
       cross join lateral (select created_at, stats, response_digest from harvest.ing_task_run_batch where run_id = r.run_id
                           order by batch_no desc limit ${BATCHES_READ}) b
     ) m
     where split_part(p.partition_key, '/', 1) = s.provenance_code
   ) a on true
   left join held on held.provenance_code = s.provenance_code
   cross join lateral (
     select max(p.ended_at) filter (where p.status_code = 'COMPLETE') as last_success_at,
            (array_agg(p.spec_fingerprint order by p.plan_id desc))[1] as newest
     from (select plan_id, ended_at, status_code, spec_fingerprint from harvest.ing_plan
           where provenance_code = s.provenance_code order by plan_id desc limit ${PLANS_READ}) p
   ) plans
   left join lateral (
     select g.key from harvest.snapshot n
     cross join lateral jsonb_array_elements_text(n.snapshot #> '{spec,rateLimit,keys}') k(key)
     join kernel.rate_gate g on g.key in (k.key, k.key || ':key')
     where n.spec_fingerprint = plans.newest
     order by g.share * coalesce(g.header_rate_per_sec, g.rate_per_sec), g.key limit 1
   ) gate on true
   order by s.provenance_code limit ${SOURCES_MAX}`,
);

export function sourcesNow(db: Db): Promise<SourceRow[]> {
  return db.read(SOURCES);
}

export interface AdvanceRow {
  /** The place of its cursor in the list that was asked for, from 1. */
  cursor: number;
  created_at: Date;
  prev_instant: Date | null;
  new_instant: Date | null;
}
const ADVANCES_READ = 2_000;
const ADVANCES = statement<AdvanceRow>(
  "harvest.overview.advances",
  `select c.n::int as cursor, e.created_at, e.prev_instant, e.new_instant
   from unnest($1::text[], $2::text[], $3::text[], $4::text[]) with ordinality as c(source, operation, scope, namespace, n)
   cross join lateral (
     select created_at, prev_instant, new_instant from harvest.ing_cursor_event
     where provenance_code = c.source and operation_code = c.operation and namespace_scope_code = c.scope and namespace_key = c.namespace
       and created_at >= $5
     order by created_at desc limit ${ADVANCES_READ}
   ) e
   order by c.n, e.created_at`,
);

/** How the cursors have moved since a time, in the order of time. */
export function advancesOf(db: Db, cursors: readonly CursorRow[], since: Date): Promise<AdvanceRow[]> {
  return db.read(ADVANCES, [
    cursors.map((cursor) => cursor.provenance_code),
    cursors.map((cursor) => cursor.operation_code),
    cursors.map((cursor) => cursor.namespace_scope_code),
    cursors.map((cursor) => cursor.namespace_key),
    since,
  ]);
}
