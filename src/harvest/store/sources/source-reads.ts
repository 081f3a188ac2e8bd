/** SQL for pages about sources: the last plan, what waits, how far the watermarks are, and the limits that its plans declare. */
import type { Db } from "../../../kernel/data/db.ts";
import { filtered } from "../../../kernel/data/filtered.ts";
import { statement } from "../../../kernel/data/statement.ts";
import type { RateLimitSpec, WindowSpec } from "../../spec/snapshot.ts";
import type { PlanState } from "../../states.ts";

export interface SummaryRow {
  provenance_code: string;
  name: string;
  revision: number;
  updated_at: Date;
  endpoints: number;
  /** When a schedule fires next. */
  next_at: Date | null;
  open_plans: number;
  /** Of the newest plan; null where there is none. */
  plan_id: string | null;
  status_code: PlanState | null;
  endpoint_name: string | null;
  window_from: Date | null;
  window_to: Date | null;
  created_at: Date | null;
  ended_at: Date | null;
  reason: string | null;
  /** What most of the queued tasks wait for. */
  wait_reason: string | null;
  wait_tasks: number | null;
  wait_until: Date | null;
}

export interface SummaryFilter {
  /** Part of the code or the name. */
  q: string | undefined;
  source: string | undefined;
}

const conditions = {
  q: (parameter: string) =>
    `(position(lower(${parameter}) in p.provenance_code) > 0 or position(lower(${parameter}) in lower(p.name)) > 0)`,
  source: (parameter: string) => `p.provenance_code = ${parameter}`,
};
const list = filtered<SummaryFilter, SummaryRow>({
  name: "harvest.source.summaries",
  conditions,
  emptyIsNone: true,
  text: (where, parameter) =>
    `select p.provenance_code, p.name, p.revision, p.updated_at,
            (select count(*)::int4 from harvest.reg_prov_endpoint_def e
             where e.provenance_code = p.provenance_code and e.removed_at is null) as endpoints,
            (select min(s.next_at) from harvest.ing_schedule s
             where s.provenance_code = p.provenance_code and s.paused_at is null) as next_at,
            (select count(*)::int4 from harvest.reg_prov_endpoint_def e
             join harvest.ing_plan o on o.endpoint_id = e.endpoint_id and o.ended_at is null
             where e.provenance_code = p.provenance_code) as open_plans,
            last.*, wait.*
     from (select * from harvest.reg_provenance p where ${where} order by p.provenance_code
           limit ${parameter(0)} offset ${parameter(1)}) p
     left join lateral (
       select l.plan_id, l.status_code, l.endpoint_name, l.window_from, l.window_to, l.created_at, l.ended_at,
              l.record_remarks ->> 'reason' as reason
       from harvest.ing_plan l where l.provenance_code = p.provenance_code order by l.plan_id desc limit 1
     ) last on true
     left join lateral (
       select t.wait_reason, count(*)::int4 as wait_tasks, min(t.scheduled_at) as wait_until
       from harvest.ing_partition k
       join harvest.ing_task t on t.partition_key = k.partition_key and t.status_code = 'QUEUED'
       where split_part(k.partition_key, '/', 1) = p.provenance_code and t.wait_reason is not null
       group by t.wait_reason order by 2 desc limit 1
     ) wait on true
     order by p.provenance_code`,
});
const count = filtered<SummaryFilter, { total: number }>({
  name: "harvest.source.summary_count",
  conditions,
  emptyIsNone: true,
  text: (where) => `select count(*)::int4 as total from harvest.reg_provenance p where ${where}`,
});

export async function listSummaries(
  db: Db,
  filter: SummaryFilter,
  { size, offset }: { size: number; offset: number },
): Promise<{ rows: SummaryRow[]; total: number }> {
  const one = list(filter);
  const all = count(filter);
  const [rows, [counted]] = await Promise.all([
    db.read(one.statement, [...one.values, size, offset]),
    db.read(all.statement, all.values),
  ]);
  return { rows, total: counted?.total ?? 0 };
}

export interface WatermarkRow {
  provenance_code: string;
  namespace_key: string;
  normalized_instant: Date;
  /** That of the plan that moved it last. */
  window: WindowSpec | null;
}

// Those of whole endpoints: what parameters select is somebody's own question.
const WATERMARKS = statement<WatermarkRow>(
  "harvest.source.watermarks",
  `select c.provenance_code, c.namespace_key, c.normalized_instant, s.snapshot #> '{spec,window}' as window
   from harvest.ing_cursor c
   join harvest.ing_plan p on p.plan_id = c.plan_id and p.endpoint_name = c.namespace_key
   join harvest.snapshot s on s.spec_fingerprint = p.spec_fingerprint
   where c.provenance_code = any($1) and c.operation_code = 'HARVEST' and c.normalized_instant is not null
   order by 1, 2 limit $2`,
);

export function watermarksOf(db: Db, sources: readonly string[], limit: number): Promise<WatermarkRow[]> {
  return db.read(WATERMARKS, [sources, limit]);
}

export interface SourceLimits {
  provenance_code: string;
  endpoint_name: string;
  list: RateLimitSpec;
  detail: RateLimitSpec | null;
}

// `offset 0` keeps the lookup of one plan for each endpoint, whatever the statistics say.
const LIMITS = statement<SourceLimits>(
  "harvest.source.newest_limits",
  `select e.provenance_code, e.endpoint_name, s.snapshot #> '{spec,rateLimit}' as list,
          s.snapshot #> '{detail,rateLimit}' as detail
   from harvest.reg_prov_endpoint_def e
   cross join lateral (select p.spec_fingerprint from harvest.ing_plan p
                       where p.endpoint_id = e.endpoint_id order by p.plan_id desc limit 1 offset 0) p
   join harvest.snapshot s on s.spec_fingerprint = p.spec_fingerprint
   where e.provenance_code = any($1) and e.removed_at is null order by e.endpoint_id limit $2`,
);

/** What the newest plan of each endpoint declares. */
export function limitsOf(db: Db, sources: readonly string[], limit: number): Promise<SourceLimits[]> {
  return db.read(LIMITS, [sources, limit]);
}

const WAITING = statement<{ wait_gate: string; tasks: number }>(
  "harvest.task.waiting_for_gates",
  `select wait_gate, count(*)::int4 as tasks from harvest.ing_task where wait_gate = any($1) group by wait_gate`,
);

/** How many tasks gave their place back because of each gate. */
export async function waitingForGates(db: Db, keys: readonly string[]): Promise<Map<string, number>> {
  const rows = await db.read(WAITING, [keys]);
  return new Map(rows.map(({ wait_gate, tasks }) => [wait_gate, tasks]));
}
