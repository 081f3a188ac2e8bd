/** Rows as the API shows them. Of a secret only the type and key are shown. */
import { alertNameOf } from "./alerts.ts";
import type { Attempt } from "./send.ts";
import type { DeliveryRow } from "./store/delivery-reads.ts";
import type { SubscriptionView } from "./store/subscriptions.ts";
import type { Saved } from "./subscriptions.ts";

export function subscriptionReply(row: SubscriptionView) {
  return {
    id: row.id,
    kpiId: row.kpi_id,
    callbackUrl: row.callback_url,
    secretType: row.secret_type,
    secretKey: row.secret_key,
    retryNum: row.retry_num,
    status: row.status,
    teamName: row.team_name,
    userId: row.user_id,
    failingSince: row.failing_since,
    disabledAt: row.disabled_at,
    disabledReason: row.disabled_reason,
    createdAt: row.created_at,
    updatedAt: row.updated_at,
  };
}

export function savedReply({ subscription, signingKey }: Saved) {
  return { ...subscriptionReply(subscription), ...(signingKey === null ? {} : { signingKey }) };
}

export function attemptReply({ statusCode, error, answer, durationMs }: Attempt) {
  return { statusCode, error, answer, durationMs };
}

export function deliveryReply(row: DeliveryRow) {
  const alert = alertNameOf(row.callback_url);
  return {
    id: row.id,
    event: row.event,
    eventId: row.event_id,
    callbackUrl: alert === null ? row.callback_url : null,
    alert,
    subscriptionIds: row.subscription_ids,
    modelId: row.model_id,
    opTime: row.op_time,
    status: row.status,
    attempts: row.attempt,
    retryNum: row.retry_num,
    nextAttemptAt: row.due_at,
    statusCode: row.status_code,
    error: row.last_error,
    createdAt: row.created_at,
    endedAt: row.ended_at,
  };
}
