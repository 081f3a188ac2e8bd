/** Writes the results of a batch in one transaction: results, tasks, attempts and the batch itself. */
import type { Db, Tx } from "../../kernel/data/db.ts";
import { createSettle } from "../../kernel/work/settle.ts";
import { fingerprintsOf, type TenantModel } from "./model.ts";
import {
  finishAttempts,
  finishBatch,
  finishTasks,
  type TaskResult,
  upsertEmbeddings,
  upsertSummaries,
} from "./store/results.ts";
import type { Worked } from "./work.ts";

/** Called with assets whose summary or embedding changed, in the transaction that changes it. */
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

/** The tasks went on without us: another process has taken them, and nothing of ours was written. */
export class ClaimLost extends Error {}

/** Throws ClaimLost. What was computed cost a call of a model: a moment without the database, or a slow one, is waited for. */
export function settle(db: Db, changed: Changed, settlement: Settlement): Promise<void> {
  const write = createSettle(() => db.tx((tx) => settleIn(tx, changed, settlement)), 1);
  return write(settlement.batchNo, settlement);
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
