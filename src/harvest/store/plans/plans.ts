/** SQL that makes plans: the trigger, the snapshot, the plan, its slices and their tasks. */
import { toArrays, unnest } from "../../../kernel/data/batch.ts";
import type { Queryable } from "../../../kernel/data/db.ts";
import { statement } from "../../../kernel/data/statement.ts";
import type { Snapshot } from "../../spec/snapshot.ts";
import { AFTER_REWIND } from "../cursors/rewinds.ts";

const LOCK_PARTITION = statement(
  "harvest.partition.lock",
  "select pg_advisory_xact_lock(hashtextextended('harvest.plan ' || $1::text, 0))",
);

/** Plans of one partition are sliced one after the other, so that none counts the queue before another has filled it. */
export async function lockPartition(tx: Queryable, partitionKey: string): Promise<void> {
  await tx.rows(LOCK_PARTITION, [partitionKey]);
}

export interface NewInstance {
  schedule_instance_id: string;
  scheduler_code: string;
  scheduler_job_id: string | null;
  scheduler_log_id: string | null;
  provenance_code: string;
  endpoint_name: string;
  operation_code: string;
  trigger_type_code: string;
  trigger_params: object;
  expr_proto_hash: string | null;
  record_remarks: object;
  created_by: string;
}

const INSERT_INSTANCE = statement<{ schedule_instance_id: string }>(
  "harvest.schedule_instance.insert",
  `insert into harvest.ing_schedule_instance
     (schedule_instance_id, scheduler_code, scheduler_job_id, scheduler_log_id, provenance_code, endpoint_name,
      operation_code, trigger_type_code, trigger_params, expr_proto_hash, record_remarks, created_by)
   values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)
   on conflict on constraint schedule_instance_fire do nothing
   returning schedule_instance_id`,
);

/** False if this trigger was there before. */
export async function insertInstance(tx: Queryable, row: NewInstance): Promise<boolean> {
  const rows = await tx.rows(INSERT_INSTANCE, [
    row.schedule_instance_id,
    row.scheduler_code,
    row.scheduler_job_id,
    row.scheduler_log_id,
    row.provenance_code,
    row.endpoint_name,
    row.operation_code,
    row.trigger_type_code,
    JSON.stringify(row.trigger_params),
    row.expr_proto_hash,
    JSON.stringify(row.record_remarks),
    row.created_by,
  ]);
  return rows.length === 1;
}

/** The slices of one endpoint and operation that share a watermark. */
export interface Namespace {
  endpointId: number;
  operation: string;
  scope: string;
  key: string;
}

// What a slice has completed or is about to, gaps that somebody has accepted, and what an open plan has still to slice. The bound on window_from lets the
// timeline begin shortly before the range. $2 and $3 have the operations and scopes whose slices count.
const MISSING = statement<{ from: Date; to: Date }>(
  "harvest.plan.missing_ranges",
  `with covered as (
     select tstzrange(window_from, window_to) as part from harvest.ing_plan_slice
     where endpoint_id = $1 and operation_code = any($2) and namespace_scope_code = any($3) and namespace_key = $4
       and window_from is not null and window_from < $6 and window_to > $5
       and window_from >= $5::timestamptz - make_interval(secs => $7) 
       and (status_code in ('COMPLETE', 'READY') or accepted_at is not null) and ${AFTER_REWIND}
     union all
     select case when operation_code = 'BACKFILL' then tstzrange(window_from, unsliced_from) else tstzrange(unsliced_from, window_to) end
     from harvest.ing_plan
     where endpoint_id = $1 and operation_code = any($2) and namespace_scope_code = any($3) and namespace_key = $4
       and ended_at is null and status_code = 'PARTIAL' and plan_id <> $8
   )
   select lower(rest) as from, upper(rest) as to
   from unnest(tstzmultirange(tstzrange($5, $6)) - coalesce((select range_agg(part) from covered), '{}')) as rest
   order by 1`,
);

/** The parts of the range that no slice has completed and no open plan takes, besides `planId`. For BACKFILL, slices of HARVEST count too. */
export function missingRanges(
  tx: Queryable,
  { endpointId, operation, scope, key }: Namespace,
  range: { from: Date; to: Date; widestMs: number },
  planId: string,
): Promise<{ from: Date; to: Date }[]> {
  const { from, to, widestMs } = range;
  const [operations, scopes] =
    operation === "BACKFILL"
      ? [
          ["HARVEST", operation],
          ["EXPR", scope],
        ]
      : [[operation], [scope]];
  return tx.rows(MISSING, [endpointId, operations, scopes, key, from, to, widestMs / 1_000, planId]);
}

/** For ranges that no plan has a part in yet. */
export const NO_PLAN = "00000000-0000-0000-0000-000000000000";

const OPEN_PLAN = statement<{ plan_id: string }>(
  "harvest.plan.open_of",
  `select plan_id from harvest.ing_plan
   where endpoint_id = $1 and operation_code = $2 and namespace_scope_code = $3 and namespace_key = $4 and ended_at is null
   limit 1`,
);

/** A plan that has not ended. */
export async function openPlan(tx: Queryable, namespace: Namespace): Promise<string | undefined> {
  const { endpointId, operation, scope, key } = namespace;
  return (await tx.rows(OPEN_PLAN, [endpointId, operation, scope, key]))[0]?.plan_id;
}

const INSERT_SNAPSHOT = statement(
  "harvest.snapshot.insert",
  `insert into harvest.snapshot (spec_fingerprint, snapshot, origins) values ($1, $2, $3)
   on conflict (spec_fingerprint) do nothing`,
);
const SET_PARTITION = statement(
  "harvest.partition.set",
  `insert into harvest.ing_partition as p (partition_key, concurrency) values ($1, $2)
   on conflict (partition_key) do update set concurrency = excluded.concurrency
   where p.concurrency <> excluded.concurrency`,
);
const INSERT_PLAN = statement(
  "harvest.plan.insert",
  `insert into harvest.ing_plan
     (plan_id, schedule_instance_id, provenance_code, endpoint_id, endpoint_name, operation_code, window_from, window_to,
      plan_strategy, spec_fingerprint, expr_proto_hash, namespace_scope_code, namespace_key, priority, planned_at, plan_month,
      record_remarks)
   values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15::timestamptz,
           date_trunc('month', $15::timestamptz at time zone 'UTC')::date, $16)`,
);

/**
 * TIME takes every slice of the window, MISSING those that are not complete, and WHOLE is one slice without a window. An update takes
 * ids that it was given (IDS) or that are quarantined (QUARANTINE), or ranges of those that are known (RANGE).
 */
export type PlanStrategy = "TIME" | "MISSING" | "WHOLE" | "IDS" | "QUARANTINE" | "RANGE";

export interface NewPlan extends Namespace {
  planId: string;
  scheduleInstanceId: string;
  source: string;
  endpoint: string;
  window: { from: Date; to: Date } | null;
  strategy: PlanStrategy;
  specFingerprint: string;
  exprProtoHash: string;
  snapshot: Snapshot;
  origins: object;
  partitionKey: string;
  priority: number;
  plannedAt: Date;
  remarks: object;
}

/** Half for the operations that make way for HARVEST: what they have under way when it comes, it waits for. */
function concurrencyOf(operation: string, declared: number): number {
  return operation === "HARVEST" ? declared : Math.max(1, Math.floor(declared / 2));
}

export async function insertPlan(tx: Queryable, plan: NewPlan): Promise<void> {
  const { snapshot, window } = plan;
  await Promise.all([
    tx.rows(INSERT_SNAPSHOT, [plan.specFingerprint, JSON.stringify(snapshot), JSON.stringify(plan.origins)]),
    tx.rows(SET_PARTITION, [plan.partitionKey, concurrencyOf(plan.operation, snapshot.spec.budget.concurrency)]),
    tx.rows(INSERT_PLAN, [
      plan.planId,
      plan.scheduleInstanceId,
      plan.source,
      plan.endpointId,
      plan.endpoint,
      plan.operation,
      window?.from ?? null,
      window?.to ?? null,
      plan.strategy,
      plan.specFingerprint,
      plan.exprProtoHash,
      plan.scope,
      plan.key,
      plan.priority,
      plan.plannedAt,
      JSON.stringify(plan.remarks),
    ]),
  ]);
}

const QUEUED = statement<{ n: number }>(
  "harvest.task.queued",
  `select count(*)::int4 as n
   from (select from harvest.ing_task where partition_key = $1 and status_code = 'QUEUED' limit $2) queued`,
);

/** How many tasks of the partition are queued, counted up to `limit`. */
export async function queuedTasks(tx: Queryable, partitionKey: string, limit: number): Promise<number> {
  return (await tx.rows(QUEUED, [partitionKey, limit]))[0]?.n ?? 0;
}

const BEGIN_SLICING = statement<{ plan_id: string }>(
  "harvest.plan.begin_slicing",
  `update harvest.ing_plan set status_code = 'SLICING', unsliced_from = null
   where plan_id = $1 and status_code in ('DRAFT', 'PARTIAL') returning plan_id`,
);
const END_SLICING = statement<{ plan_id: string }>(
  "harvest.plan.end_slicing",
  `update harvest.ing_plan
   set status_code = case when $2::timestamptz is null then 'READY' else 'PARTIAL' end, unsliced_from = $2
   where plan_id = $1 and status_code = 'SLICING' returning plan_id`,
);

const GIVE_UP_SLICING = statement(
  "harvest.plan.give_up_slicing",
  `update harvest.ing_plan
   set status_code = 'READY', unsliced_from = null,
       record_remarks = record_remarks || jsonb_build_object('unsliced', jsonb_build_object('from', unsliced_from, 'reason', $2::text))
   where plan_id = $1 and status_code = 'PARTIAL'`,
);

/** PARTIAL -> READY with the reason: what is sliced goes on, and then the plan is FAILED. */
export async function giveUpSlicing(tx: Queryable, planId: string, reason: string): Promise<void> {
  await tx.rows(GIVE_UP_SLICING, [planId, reason]);
}

/** DRAFT or PARTIAL -> SLICING. False if the plan is in another state. */
export async function beginSlicing(tx: Queryable, planId: string): Promise<boolean> {
  return (await tx.rows(BEGIN_SLICING, [planId])).length === 1;
}

/** SLICING -> READY, or PARTIAL with what is left from `unslicedFrom` on, for BACKFILL before it. */
export async function endSlicing(tx: Queryable, planId: string, unslicedFrom: Date | null): Promise<boolean> {
  return (await tx.rows(END_SLICING, [planId, unslicedFrom])).length === 1;
}

export interface NewSlice {
  slice_no: number;
  window_from: Date | null;
  window_to: Date | null;
  /** Of the ids, if slices are made of them. */
  part: object | null;
  slice_spec: object;
  slice_signature_hash: string;
  expr_hash: string;
  expr_snapshot: object;
  idempotent_key: string;
}

const SLICE = {
  slice_no: "int4",
  window_from: "timestamptz",
  window_to: "timestamptz",
  part: "jsonb",
  slice_spec: "jsonb",
  slice_signature_hash: "text",
  expr_hash: "text",
  expr_snapshot: "jsonb",
  idempotent_key: "text",
};
const INSERT_SLICES = statement<{ task_id: string }>(
  "harvest.slice.insert",
  `with plan as (select * from harvest.ing_plan where plan_id = $1 and status_code = 'SLICING'),
   item as (select * from ${unnest(SLICE, "u", 5)}),
   slice as (
     insert into harvest.ing_plan_slice
       (plan_id, slice_no, provenance_code, endpoint_id, operation_code, namespace_scope_code, namespace_key, window_from,
        window_to, part, slice_spec, slice_signature_hash, expr_hash, expr_snapshot, status_code)
     select p.plan_id, i.slice_no, p.provenance_code, p.endpoint_id, p.operation_code, p.namespace_scope_code,
            p.namespace_key, i.window_from, i.window_to, i.part, i.slice_spec, i.slice_signature_hash, i.expr_hash, i.expr_snapshot,
            'READY'
     from plan p, item i order by i.slice_no
     on conflict (plan_id, slice_signature_hash) do nothing
     returning slice_id, slice_signature_hash, expr_hash
   )
   insert into harvest.ing_task
     (schedule_instance_id, plan_id, slice_id, provenance_code, operation_code, partition_key, credential_id, params,
      expr_hash, idempotent_key, priority, scheduled_at)
   select p.schedule_instance_id, p.plan_id, s.slice_id, p.provenance_code, p.operation_code, $2,
          (select c.credential_id from harvest.reg_prov_credential c
           where c.provenance_code = p.provenance_code and c.credential_name = $3),
          $4::jsonb, s.expr_hash, i.idempotent_key, p.priority, now()
   from plan p, slice s join item i on i.slice_signature_hash = s.slice_signature_hash
   order by s.slice_id
   on conflict (idempotent_key) do nothing
   returning task_id::text`,
);

export interface TaskFields {
  partitionKey: string;
  /** The name of the credential, if requests have one. */
  credential: string | null;
  params: object;
}

/** Inserts slices with one task each. A slice that the plan has, or a task that this trigger has made, is left out. */
export async function insertSlices(
  tx: Queryable,
  planId: string,
  task: TaskFields,
  slices: readonly NewSlice[],
): Promise<number> {
  const { partitionKey, credential, params } = task;
  const values = [planId, partitionKey, credential, JSON.stringify(params), ...toArrays(SLICE, slices)];
  return (await tx.rows(INSERT_SLICES, values)).length;
}

export interface PartialPlan extends Namespace {
  plan_id: string;
  schedule_instance_id: string;
  plan_strategy: PlanStrategy;
  expr_proto_hash: string;
  snapshot: Snapshot;
  unsliced_from: Date;
  window_from: Date;
  window_to: Date;
}

// The first of each partition: those behind it wait for it. The subquery is the index of plans that are not sliced.
const PARTIAL = statement<{ plan_id: string; partition_key: string }>(
  "harvest.plan.partial",
  `select distinct on (partition_key) plan_id, partition_key
   from (select plan_id, priority, created_at, concat_ws('/', provenance_code, endpoint_name, operation_code) as partition_key
         from harvest.ing_plan where status_code in ('DRAFT', 'SLICING', 'PARTIAL') order by priority, created_at limit $1) p
   order by partition_key, priority, created_at`,
);

export function partialPlans(db: Queryable, limit: number): Promise<{ plan_id: string; partition_key: string }[]> {
  return db.rows(PARTIAL, [limit]);
}

const LOCK_PARTIAL = statement<PartialPlan>(
  "harvest.plan.lock_partial",
  `select p.plan_id, p.schedule_instance_id, p.plan_strategy, p.expr_proto_hash, p.endpoint_id as "endpointId",
          p.operation_code as operation, p.namespace_scope_code as scope, p.namespace_key as key, s.snapshot, p.unsliced_from,
          p.window_from, p.window_to
   from harvest.ing_plan p join harvest.snapshot s on s.spec_fingerprint = p.spec_fingerprint
   where p.plan_id = $1 and p.status_code = 'PARTIAL' for update of p skip locked`,
);

/** Undefined if another process has it, or it is no longer PARTIAL. */
export async function lockPartial(tx: Queryable, planId: string): Promise<PartialPlan | undefined> {
  return (await tx.rows(LOCK_PARTIAL, [planId]))[0];
}

const LAST_SLICE = statement<{ n: number }>(
  "harvest.slice.last_no",
  "select coalesce(max(slice_no), 0) as n from harvest.ing_plan_slice where plan_id = $1",
);

export async function lastSliceNo(tx: Queryable, planId: string): Promise<number> {
  return (await tx.rows(LAST_SLICE, [planId]))[0]?.n ?? 0;
}
