/** SQL of slices that are divided into parts: how they are divided, and how they end when the last part has. */
import { toArrays, unnest } from "../../../kernel/data/batch.ts";
import type { Queryable } from "../../../kernel/data/db.ts";
import { statement } from "../../../kernel/data/statement.ts";

export interface NewPart {
  slice_spec: object;
  slice_signature_hash: string;
  expr_hash: string;
  expr_snapshot: object;
  idempotent_key: string;
  part: object;
  expected: number;
}

const PART = {
  slice_spec: "jsonb",
  slice_signature_hash: "text",
  expr_hash: "text",
  expr_snapshot: "jsonb",
  idempotent_key: "text",
  part: "jsonb",
  expected: "int8",
};
const LOCK_PLAN = statement(
  "harvest.plan.lock_to_divide",
  "select from harvest.ing_plan where plan_id = $1 for no key update",
);
// The parts take the numbers behind the last slice of the plan. The lock of the plan keeps two divisions apart.
const INSERT = statement<{ slice_id: string }>(
  "harvest.part.insert",
  `with parent as (
     select s.*, (select max(slice_no) from harvest.ing_plan_slice where plan_id = s.plan_id) as last_no
     from harvest.ing_plan_slice s where s.slice_id = $1
   ),
   item as (select *, row_number() over ()::int4 as no from ${unnest(PART, "u", 3)}),
   child as (
     insert into harvest.ing_plan_slice
       (plan_id, parent_slice_id, root_slice_id, slice_no, provenance_code, endpoint_id, operation_code, namespace_scope_code,
        namespace_key, slice_spec, slice_signature_hash, expr_hash, expr_snapshot, part, expected, status_code)
     select p.plan_id, p.slice_id, coalesce(p.root_slice_id, p.slice_id), p.last_no + i.no, p.provenance_code, p.endpoint_id,
            p.operation_code, p.namespace_scope_code, p.namespace_key, i.slice_spec, i.slice_signature_hash, i.expr_hash,
            i.expr_snapshot, i.part, i.expected, 'READY'
     from parent p, item i
     returning slice_id, slice_signature_hash, expr_hash
   )
   insert into harvest.ing_task
     (schedule_instance_id, plan_id, slice_id, provenance_code, operation_code, partition_key, credential_id, params, expr_hash,
      idempotent_key, priority, scheduled_at)
   select t.schedule_instance_id, t.plan_id, c.slice_id, t.provenance_code, t.operation_code, t.partition_key, t.credential_id,
          t.params, c.expr_hash, i.idempotent_key, t.priority, now()
   from child c join item i on i.slice_signature_hash = c.slice_signature_hash, harvest.ing_task t
   where t.task_id = $2 order by i.no
   returning slice_id::text`,
);

/** Inserts the parts of a slice with their tasks. */
export async function insertParts(
  tx: Queryable,
  parent: { planId: string; sliceId: string; taskId: string },
  parts: readonly NewPart[],
): Promise<void> {
  await tx.rows(LOCK_PLAN, [parent.planId]);
  await tx.rows(INSERT, [parent.sliceId, parent.taskId, ...toArrays(PART, parts)]);
}

const WAIT = statement(
  "harvest.slice.wait_for_parts",
  `update harvest.ing_plan_slice set is_parted = true, expected = $3, reason = $4, received = 0, quarantined = 0, missing = 0
   where slice_id = $1 and generation = $2 and status_code = 'READY'`,
);

/** The slice is READY until its parts have ended. `total` is what they have to add up to. */
export async function waitForParts(
  tx: Queryable,
  { sliceId, generation }: { sliceId: string; generation: number },
  { total, reason }: { total: number; reason: string },
): Promise<void> {
  await tx.rows(WAIT, [sliceId, generation, total, reason]);
}

const LOCK_ROOT = statement(
  "harvest.part.lock_root",
  "select from harvest.ing_plan_slice where slice_id = any($1::int8[]) order by slice_id for no key update",
);

/** Of two parts that end at the same time, the second one finds no other that is open. Call it before the plan is locked. */
export async function lockRoots(tx: Queryable, sliceIds: readonly string[]): Promise<void> {
  if (sliceIds.length > 0) await tx.rows(LOCK_ROOT, [sliceIds]);
}

/** A slice whose parts have all ended. */
export interface EndedParts {
  slice_id: string;
  plan_id: string;
  generation: number;
  expected: number;
  parts: number;
  /** Those that are not complete, with the reason of the first. */
  gaps: number;
  first_reason: string | null;
  /** Ranges of pages may share records, where the list moves while it is read. */
  by_pages: boolean;
}

// Whoever has locked the slice ends it.
const ENDED = statement<EndedParts>(
  "harvest.part.ended",
  `select s.slice_id::text, s.plan_id, s.generation, s.expected::float8, p.*
   from (select * from harvest.ing_plan_slice
         where plan_id = any($1::uuid[]) and is_parted and status_code = 'READY' for no key update skip locked) s
   cross join lateral (
     select count(*) filter (where p.status_code = 'READY')::int4 as open,
            count(*) filter (where p.status_code <> 'SPLIT')::int4 as parts,
            count(*) filter (where p.status_code not in ('COMPLETE', 'SPLIT'))::int4 as gaps,
            (array_agg(coalesce(p.reason, 'it was cancelled') order by p.slice_id)
               filter (where p.status_code not in ('COMPLETE', 'SPLIT')))[1] as first_reason,
            bool_or(p.part ? 'pages') as by_pages
     from harvest.ing_plan_slice p where p.root_slice_id = s.slice_id
   ) p
   where p.open = 0 and p.parts > 0`,
);

/** The slices of these plans that wait for no part any more. */
export function endedParts(tx: Queryable, planIds: readonly string[]): Promise<EndedParts[]> {
  return tx.rows(ENDED, [planIds]);
}

// The ids of the lists: with two phases, those of the details come again. `of_parts` counts an id once for each part that has it.
const COUNT_IDS = statement<{ ids: number; of_parts: number }>(
  "harvest.part.count_ids",
  `select count(distinct i.id)::float8 as ids, count(distinct (b.slice_id, i.id))::float8 as of_parts
   from harvest.ing_plan_slice p
   join harvest.ing_plan l on l.plan_id = p.plan_id
   join harvest.ing_task_run_batch b
     on b.plan_month = l.plan_month and b.slice_id = p.slice_id and b.generation = p.generation and b.phase = 1
   cross join lateral (select substring(b.id_hashes from n * 8 + 1 for 8) as id
                       from generate_series(0, length(b.id_hashes) / 8 - 1) as n) i
   where p.root_slice_id = $1 and p.status_code <> 'SPLIT'`,
);

/** The distinct ids of all parts together, and the sum of those of each. */
export async function countIdsOfParts(tx: Queryable, sliceId: string): Promise<{ ids: number; ofParts: number }> {
  const [row] = await tx.rows(COUNT_IDS, [sliceId]);
  return { ids: row?.ids ?? 0, ofParts: row?.of_parts ?? 0 };
}

const END = statement(
  "harvest.slice.end_parted",
  `update harvest.ing_plan_slice s
   set status_code = $2, reason = $3, ended_at = now(), received = p.received, quarantined = p.quarantined, missing = p.missing,
       inserted = s.inserted + p.inserted, updated = s.updated + p.updated, unchanged = s.unchanged + p.unchanged,
       deleted = s.deleted + p.deleted
   from (select coalesce(sum(received) filter (where status_code <> 'SPLIT'), 0) as received,
                coalesce(sum(quarantined) filter (where status_code <> 'SPLIT'), 0) as quarantined,
                coalesce(sum(missing) filter (where status_code <> 'SPLIT'), 0) as missing,
                coalesce(sum(inserted), 0) as inserted, coalesce(sum(updated), 0) as updated,
                coalesce(sum(unchanged), 0) as unchanged, coalesce(sum(deleted), 0) as deleted
         from harvest.ing_plan_slice where root_slice_id = $1) p
   where s.slice_id = $1 and s.status_code = 'READY'`,
);

/** READY -> COMPLETE or INCOMPLETE, with what its parts brought. */
export async function endParted(
  tx: Queryable,
  sliceId: string,
  state: "COMPLETE" | "INCOMPLETE",
  reason: string | null,
): Promise<void> {
  await tx.rows(END, [sliceId, state, reason]);
}
