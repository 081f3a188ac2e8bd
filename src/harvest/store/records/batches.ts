/** SQL that commits a page: its batch, the progress of its slice, what was quarantined, and the requests that failed. */
import { toArrays, unnest } from "../../../kernel/data/batch.ts";
import type { Queryable } from "../../../kernel/data/db.ts";
import { statement } from "../../../kernel/data/statement.ts";
import type { RecordCounts, RecordOrigin } from "./records.ts";

export interface NewBatch extends RecordOrigin {
  runId: string;
  taskId: string;
  planId: string;
  exprHash: string;
  /** 1 for the page of a list, 2 for the records of ids that a list named. */
  phase: 1 | 2;
  pageNo: number;
  pageSize: number;
  beforeToken: string | null;
  afterToken: string | null;
  nextUrl: string | null;
  request: object;
  responseDigest: object;
  stats: object;
  credentialVersion: number | null;
  bodyHash: string | null;
  idHashes: Buffer;
  /** What the page added to its slice. */
  counts: RecordCounts & { received: number; quarantined: number; missing: number };
  /** What the source announced, if it did. */
  expected: number | null;
  /** Where the next page begins. */
  position: unknown;
}

const COMMIT = statement<{ batches: number }>(
  "harvest.batch.commit",
  `with batch as (
     insert into harvest.ing_task_run_batch
       (plan_month, slice_id, generation, batch_no, run_id, task_id, plan_id, endpoint_id, expr_hash, phase, page_no, page_size,
        before_token, after_token, next_url, request, response_digest, stats, credential_version, body_hash, id_hashes,
        fetched_at)
     values ($1::date, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $31)
   )
   update harvest.ing_plan_slice s
   set batches = $4, position = $22, position_at = now(), expected = coalesce($23, s.expected), received = s.received + $24,
       inserted = s.inserted + $25, updated = s.updated + $26, unchanged = s.unchanged + $27, deleted = s.deleted + $28,
       quarantined = s.quarantined + $29, missing = s.missing + $30
   where s.slice_id = $2 and s.generation = $3 and s.batches = $4 - 1 and s.status_code = 'READY'
   returning s.batches`,
);

/** False if the slice is no longer where the caller left it, so the transaction has to be rolled back. */
export async function commitBatch(tx: Queryable, batch: NewBatch): Promise<boolean> {
  const { counts } = batch;
  const rows = await tx.rows(COMMIT, [
    batch.planMonth,
    batch.sliceId,
    batch.generation,
    batch.batchNo,
    batch.runId,
    batch.taskId,
    batch.planId,
    batch.endpointId,
    batch.exprHash,
    batch.phase,
    batch.pageNo,
    batch.pageSize,
    batch.beforeToken,
    batch.afterToken,
    batch.nextUrl,
    JSON.stringify(batch.request),
    JSON.stringify(batch.responseDigest),
    JSON.stringify(batch.stats),
    batch.credentialVersion,
    batch.bodyHash,
    batch.idHashes,
    JSON.stringify(batch.position),
    batch.expected,
    counts.received,
    counts.inserted,
    counts.updated,
    counts.unchanged,
    counts.deleted,
    counts.quarantined,
    counts.missing,
    batch.fetchedAt ?? null,
  ]);
  return rows.length === 1;
}

export interface Quarantined {
  item_key: string | null;
  reason_code: string;
  reason: string;
  expression: string | null;
  fragment: string;
}

const QUARANTINED = { item_key: "text", reason_code: "text", reason: "text", expression: "text", fragment: "text" };
const QUARANTINE = statement(
  "harvest.quarantine.insert",
  `insert into harvest.quarantine
     (endpoint_id, plan_month, slice_id, generation, batch_no, expr_proto_hash, item_key, reason_code, reason, expression, fragment)
   select $1, $2::date, $3, $4, $5, $6, i.* from ${unnest(QUARANTINED, "i", 7)}`,
);

/** `exprProtoHash` is that of the plan. */
export async function quarantine(
  tx: Queryable,
  { endpointId, planMonth, sliceId, generation, batchNo }: RecordOrigin,
  exprProtoHash: string,
  items: readonly Quarantined[],
): Promise<void> {
  if (items.length === 0) return;
  const page = [endpointId, planMonth, sliceId, generation, batchNo, exprProtoHash];
  await tx.rows(QUARANTINE, [...page, ...toArrays(QUARANTINED, items)]);
}

const ID_HASHES = statement<{ id_hashes: Buffer }>(
  "harvest.batch.id_hashes",
  `select id_hashes from harvest.ing_task_run_batch
   where plan_month = $1::date and slice_id = $2 and generation = $3 order by batch_no`,
);

/** The ids of the batches so far, so that a run that continues recognises repeats. */
export async function readIdHashes(
  db: Queryable,
  { planMonth, sliceId, generation }: Pick<RecordOrigin, "planMonth" | "sliceId" | "generation">,
): Promise<Buffer[]> {
  return (await db.rows(ID_HASHES, [planMonth, sliceId, generation])).map(({ id_hashes }) => id_hashes);
}

export interface RequestFailure {
  failure_no: number;
  request: object;
  status: number | null;
  action_code: string;
  reason: string;
  body_hash: string | null;
}

const FAILURE = {
  failure_no: "int4",
  request: "jsonb",
  status: "int4",
  action_code: "text",
  reason: "text",
  body_hash: "text",
};
const RECORD_FAILURES = statement(
  "harvest.request_failure.insert",
  `insert into harvest.request_failure (run_id, failure_no, request, status, action_code, reason, body_hash)
   select $1, i.* from ${unnest(FAILURE, "i", 2)} on conflict do nothing`,
);

export async function recordFailures(tx: Queryable, runId: string, failures: readonly RequestFailure[]): Promise<void> {
  if (failures.length > 0) await tx.rows(RECORD_FAILURES, [runId, ...toArrays(FAILURE, failures)]);
}
