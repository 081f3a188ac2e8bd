/** Rows as the API shows them. Of a secret only the type and key are shown. */
import { alertNameOf } from "./alerts.ts";
import type { DeliveryDetail } from "./deliveries.ts";
import type { Attempt } from "./delivery/send.ts";
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
    heldUntil: row.held_until,
    pending: row.pending,
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
    durationMs: row.duration_ms,
    kpiIds: row.kpi_ids,
    endpoint: { heldUntil: row.held_until, failingSince: row.failing_since, disabledReason: row.disabled_reason },
  };
}

const HIDDEN = "•••";

/** The last request without its secrets, as the receiver saw it. The address of an alert stays in the settings. */
export function requestReply({ id, attempts, callback_url: url, subscription }: DeliveryDetail) {
  const last = attempts.at(-1);
  const { secret_type: type = null, secret_key: key = null } = subscription ?? {};
  return {
    method: "POST",
    url:
      alertNameOf(url) === null
        ? `${url}${type === "Query" ? `${url.includes("?") ? "&" : "?"}${key}=${HIDDEN}` : ""}`
        : null,
    headers: {
      "content-type": "application/json",
      ...(type === "Header" && key !== null ? { [key.toLowerCase()]: HIDDEN } : {}),
      "webhook-id": id,
      ...(last ? { "webhook-timestamp": String(Math.floor(last.at.getTime() / 1_000)) } : {}),
      "webhook-signature": `v1,${HIDDEN}`,
    },
  };
}
