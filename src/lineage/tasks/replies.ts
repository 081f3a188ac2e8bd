/** Rows of tasks as the API shows them. */
import type { AttemptRow, BatchRow, TaskRow } from "./store/reads.ts";

export function taskReply(row: TaskRow) {
  return {
    id: row.id,
    type: row.task_type,
    resourceType: row.resource_type,
    resourceId: row.resource_id,
    contentHash: row.content_hash,
    modelFingerprint: row.model_fingerprint,
    status: row.status,
    priority: row.priority,
    retryCount: row.retry_count,
    maxRetry: row.max_retry,
    nextRunAt: row.next_run_at,
    lastError: row.last_error,
    createdAt: row.created_at,
    updatedAt: row.updated_at,
  };
}

export function attemptReply(row: AttemptRow) {
  return {
    attemptNo: row.attempt_no,
    workerId: row.worker_id,
    startedAt: row.started_at,
    finishedAt: row.finished_at,
    status: row.status,
    batchNo: row.batch_no,
    inputSize: row.input_size,
    latencyMs: row.latency_ms,
    errorType: row.error_type,
    errorMessage: row.error_message,
  };
}

export function batchReply(row: BatchRow) {
  return {
    batchNo: row.batch_no,
    type: row.task_type,
    modelFingerprint: row.model_fingerprint,
    workerId: row.worker_id,
    plannedSize: row.planned_size,
    successCount: row.success_count,
    failedCount: row.failed_count,
    startedAt: row.started_at,
    finishedAt: row.finished_at,
    status: row.status,
  };
}
