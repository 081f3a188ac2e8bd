/** Writes down what came of a batch: the results, the tasks, their attempts and the batch, all or none of it. */
import { type Db, isUnavailable, type Tx } from "../../kernel/data/db.ts";
import { type RetryPolicy, withRetry } from "../../kernel/work/retry.ts";
import {
  finishAttempts,
  finishBatch,
  finishTasks,
  type TaskResult,
  upsertEmbeddings,
  upsertSummaries,
} from "../store/task-results.ts";
import { fingerprintsOf, type TenantModel } from "./model.ts";
import type { Worked } from "./work.ts";

/** Tells of assets whose summary or embedding changed, in the transaction that changes it. */
export type Changed = (tx: Tx, tenantId: string, nodeIds: readonly string[]) => Promise<void>;

export interface Settlement {
  tenantId: string;
  batchNo: string;
  model: TenantModel | null;
  /** The time of the content that the results are of. */
  readAt: string;
  worked: Pick<Worked, "embeddings" | "summaries">;
  results: readonly TaskResult[];
}

/** What was computed cost a call of a model; a moment without the database is waited for. */
const PATIENCE: RetryPolicy = { maxAttempts: 6, baseMs: 100, factor: 2, capMs: 2_000, jitter: 0.2 };

/** The tasks went on without us: another process has taken them, and nothing of ours was written. */
export class ClaimLost extends Error {}

/** Throws ClaimLost. */
export function settle(db: Db, changed: Changed, settlement: Settlement): Promise<void> {
  const write = () => db.tx((tx) => settleIn(tx, changed, settlement));
  return withRetry(write, { policy: PATIENCE, retryOn: isUnavailable });
}

async function settleIn(tx: Tx, changed: Changed, settlement: Settlement): Promise<void> {
  const { tenantId, batchNo, readAt, worked, results } = settlement;
  const { embedding, summary } = fingerprintsOf(settlement.model);
  const written = { tenantId, batchNo, readAt };
  // Assets before tasks, in the order in which an event touches them: so the two never wait for each other in a circle.
  const touched = [
    ...(await upsertSummaries(tx, { ...written, modelFingerprint: summary ?? "" }, worked.summaries)),
    ...(await upsertEmbeddings(tx, { ...written, modelFingerprint: embedding ?? "" }, worked.embeddings)),
  ];
  if (touched.length > 0) await changed(tx, tenantId, [...new Set(touched)]);
  const finished = await finishTasks(tx, results);
  if (finished.length < results.length) throw new ClaimLost();
  await finishAttempts(
    tx,
    results.map(({ id, attempt_status, error_type, error }) => ({
      task_id: id,
      batch_no: batchNo,
      attempt_status,
      error_type,
      error,
    })),
  );
  const failed = results.filter(({ attempt_status }) => attempt_status === "FAILED").length;
  const succeeded = results.filter(({ status }) => status === "SUCCEEDED").length;
  const isReleased = results.some(({ error_type }) => error_type === "RELEASED");
  const status = failed === 0 && !isReleased ? "SUCCEEDED" : "FAILED";
  await finishBatch(tx, { batchNo, status, succeeded, failed });
}
