/** SQL for a batch of tasks: the present state of its assets, and its results. */
import { guardedUpdate, itemsByKey, toArrays } from "../../../kernel/data/batch.ts";
import type { Queryable } from "../../../kernel/data/db.ts";
import { statement } from "../../../kernel/data/statement.ts";
import type { Attributes } from "../../graph/facts.ts";
import type { NodeKind } from "../../graph/names.ts";
import type { TaskStatus } from "../states.ts";

export interface AssetRow {
  id: string;
  kind: NodeKind;
  path: string[];
  attributes: Attributes;
}

/** An asset with what it has of a model. */
export interface AssetAtWork extends AssetRow {
  embedding_fingerprint: string | null;
  embedding_hash: string | null;
  summary_fingerprint: string | null;
  summary_hash: string | null;
  summary: string | null;
  /** The database's time at which all this was so. */
  read_at: string;
}

const AT_WORK = statement<AssetAtWork>(
  "lineage.task.assets",
  `select n.id, n.kind, n.path, n.attributes, e.model_fingerprint as embedding_fingerprint,
          e.content_hash as embedding_hash, s.model_fingerprint as summary_fingerprint, s.content_hash as summary_hash,
          s.summary, now()::text as read_at
   from lineage.node n
   left join lineage.embedding e on e.tenant_id = n.tenant_id and e.node_id = n.id
   left join lineage.summary s on s.tenant_id = n.tenant_id and s.node_id = n.id
   where n.tenant_id = $1 and n.id = any($2::bigint[]) and n.deleted_at is null`,
);

/** Without those that are gone. */
export function assetsAtWork(db: Queryable, tenantId: string, ids: readonly string[]): Promise<AssetAtWork[]> {
  return db.rows(AT_WORK, [tenantId, ids]);
}

const AFTER = statement<AssetRow>(
  "lineage.task.assets_after",
  `select id, kind, path, attributes from lineage.node
   where tenant_id = $1 and id > $2 and kind = any($3::text[]) and deleted_at is null order by id limit $4`,
);

/** A tenant's assets of some kinds, a step at a time. */
export function assetsAfter(
  db: Queryable,
  tenantId: string,
  page: { after: string; kinds: readonly NodeKind[]; limit: number },
): Promise<AssetRow[]> {
  return db.rows(AFTER, [tenantId, page.after, page.kinds, page.limit]);
}

/** Where a result belongs: it is written only while its task is claimed, and never over one that was read later. */
interface Written {
  tenantId: string;
  batchNo: string;
  readAt: string;
  modelFingerprint: string;
}
const KEY = { node_id: "int8" };
const RESULT = { task_id: "int8", content_hash: "text" };
// A guard inside coalesce leads the planner to no partial index, whose size today says nothing about tomorrow.
const held = (values: Record<string, string>) => `from ${itemsByKey(KEY, { ...RESULT, ...values }, 5)}
   join lineage.ol_async_task t on t.id = i.task_id
     and coalesce(t.tenant_id = $1 and t.status = 'RUNNING' and t.claim_token = $2, false)
   join lineage.node n on n.tenant_id = $1 and n.id = i.node_id
   order by i.node_id for key share of n`;

export interface EmbeddingResult {
  task_id: string;
  node_id: string;
  content_hash: string;
  vector: readonly number[];
}

const EMBEDDING = { vector: "text" };
const UPSERT_EMBEDDINGS = statement<{ node_id: string }>(
  "lineage.embedding.upsert",
  `insert into lineage.embedding as e
     (tenant_id, node_id, model_fingerprint, content_hash, dimension, vector, provider, updated_at)
   select $1, i.node_id, $4, i.content_hash, cardinality(i.vector::real[]), i.vector::real[], split_part($4, ':', 1),
          $3::timestamptz
   ${held(EMBEDDING)}
   on conflict (tenant_id, node_id) do update
   set model_fingerprint = excluded.model_fingerprint, content_hash = excluded.content_hash,
       dimension = excluded.dimension, vector = excluded.vector, provider = excluded.provider,
       updated_at = excluded.updated_at
   where e.updated_at <= excluded.updated_at
   returning node_id`,
);

/** Answers the assets that have it now. */
export async function upsertEmbeddings(tx: Queryable, written: Written, results: readonly EmbeddingResult[]) {
  if (results.length === 0) return [];
  const { tenantId, batchNo, readAt, modelFingerprint } = written;
  // An array of arrays would be one of two dimensions, which unfolds into numbers.
  const items = results.map(({ vector, ...rest }) => ({ ...rest, vector: `{${vector.join(",")}}` }));
  const arrays = toArrays({ ...KEY, ...RESULT, ...EMBEDDING }, items);
  const rows = await tx.rows(UPSERT_EMBEDDINGS, [tenantId, batchNo, readAt, modelFingerprint, ...arrays]);
  return rows.map(({ node_id }) => node_id);
}

export interface SummaryResult {
  task_id: string;
  node_id: string;
  content_hash: string;
  summary: string;
  tags: readonly string[];
}

const SUMMARY = { summary: "text", tags: "jsonb" };
const UPSERT_SUMMARIES = statement<{ node_id: string }>(
  "lineage.summary.upsert",
  `insert into lineage.summary as s (tenant_id, node_id, model_fingerprint, content_hash, summary, tags, generated_at)
   select $1, i.node_id, $4, i.content_hash, i.summary,
          array(select jsonb_array_elements_text(i.tags)), $3::timestamptz
   ${held(SUMMARY)}
   on conflict (tenant_id, node_id) do update
   set model_fingerprint = excluded.model_fingerprint, content_hash = excluded.content_hash,
       summary = excluded.summary, tags = excluded.tags, generated_at = excluded.generated_at
   where s.generated_at <= excluded.generated_at
   returning node_id`,
);

/** Answers the assets that have it now. */
export async function upsertSummaries(tx: Queryable, written: Written, results: readonly SummaryResult[]) {
  if (results.length === 0) return [];
  const { tenantId, batchNo, readAt, modelFingerprint } = written;
  const arrays = toArrays({ ...KEY, ...RESULT, ...SUMMARY }, results);
  const rows = await tx.rows(UPSERT_SUMMARIES, [tenantId, batchNo, readAt, modelFingerprint, ...arrays]);
  return rows.map(({ node_id }) => node_id);
}

/** The outcome of a task, and the row of its attempt. */
export interface TaskResult {
  id: string;
  /** The claim that this is written under. */
  claim_token: string;
  status: TaskStatus;
  /** Until it runs again. */
  delay_seconds: number;
  /** What is added to the retries. */
  retries: 0 | 1;
  error: string | null;
  /** When it was due at the claim. */
  due: string;
  /** Whether nothing was left to do, because of the asset. */
  outdated: boolean;
  attempt_status: "SUCCEEDED" | "FAILED" | "CANCELED";
  error_type: string | null;
}

export const finishTasks = guardedUpdate<TaskResult, { id: string; status: TaskStatus }>({
  name: "lineage.task.finish",
  table: "lineage.ol_async_task",
  key: { id: "int8" },
  values: {
    claim_token: "text",
    status: "text",
    delay_seconds: "float8",
    retries: "int4",
    error: "text",
    due: "text",
    outdated: "bool",
  },
  // What gave up, because of the asset or of the model, may have looked before it was asked for again.
  set: `status = case when (i.outdated or i.status = 'CANCELED') and t.next_run_at <> i.due::timestamptz then 'PENDING'
                      else i.status end,
        next_run_at = case when i.status in ('SUCCEEDED', 'CANCELED') then t.next_run_at
                           else now() + make_interval(secs => i.delay_seconds) end,
        retry_count = t.retry_count + i.retries, claim_token = null, claim_until = null, last_error = i.error,
        updated_at = now()`,
  where: "t.status = 'RUNNING' and t.claim_token = i.claim_token",
  returning: "t.status",
});

export const finishAttempts = guardedUpdate<
  { task_id: string; batch_no: string; attempt_status: string; error_type: string | null; error: string | null },
  { task_id: string }
>({
  name: "lineage.task.finish_attempts",
  table: "lineage.ol_async_task_attempt",
  key: { task_id: "int8" },
  values: { batch_no: "text", attempt_status: "text", error_type: "text", error: "text" },
  set: `status = i.attempt_status, finished_at = now(), error_type = i.error_type, error_message = left(i.error, 1024),
        latency_ms = (extract(epoch from clock_timestamp() - t.started_at) * 1000)::bigint`,
  where: "t.batch_no = i.batch_no and t.status = 'RUNNING'",
});

const FINISH_BATCH = statement(
  "lineage.task.finish_batch",
  `update lineage.ol_async_batch
   set status = $2, success_count = $3, failed_count = $4, finished_at = now()
   where batch_no = $1 and status = 'RUNNING'`,
);

export async function finishBatch(
  tx: Queryable,
  batch: { batchNo: string; status: "SUCCEEDED" | "FAILED"; succeeded: number; failed: number },
): Promise<void> {
  await tx.rows(FINISH_BATCH, [batch.batchNo, batch.status, batch.succeeded, batch.failed]);
}
