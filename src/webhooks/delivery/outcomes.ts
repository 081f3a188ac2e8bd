/**
 * Decides the outcome of a delivery after an attempt and writes it: in batches, each under its fence, with the row of the
 * attempt and the health of the endpoint in the same transaction.
 */

import type { Db, Tx } from "../../kernel/data/db.ts";
import type { Ids } from "../../kernel/ids.ts";
import { shownUrl } from "../../kernel/net/outbound.ts";
import type { Clock } from "../../kernel/time/clock.ts";
import type { ServiceLog } from "../../kernel/work/service.ts";
import type { Wake } from "../../kernel/work/wake.ts";
import type { Alerts } from "../alerts.ts";
import type { WebhooksHints, WebhooksMetrics } from "../catalogue.ts";
import { alertPayload, type Payload } from "../events.ts";
import type { WebhooksSettings } from "../settings.ts";
import { type Claimed, deliveryLease, insertAttempts, insertDeliveries } from "../store/deliveries.ts";
import { type EndpointFailure, failuresToAlert, noteFailures, noteSuccess } from "../store/endpoints.ts";
import { DELIVERIES_TOPIC } from "../topics.ts";
import { nextTryMs } from "./retries.ts";
import type { Attempt } from "./send.ts";

const OUTCOMES = ["delivered", "retry_later", "give_up", "cancel"] as const;

/** The outcome of a delivery that this process holds. */
export interface Result {
  outcome: (typeof OUTCOMES)[number];
  id: string;
  fence: string;
  event: string;
  /** The address that was called, if any. */
  callback_url: string;
  status_code: number | null;
  error: string | null;
  delay_seconds: number;
  /** The attempt and its number; undefined when nothing was sent. */
  made: { number: number; attempt: Attempt } | undefined;
}

const GONE = 410;
/** A callback that is down fails every delivery; one alert of it an hour is enough. */
const ALERT_EVERY_MINUTES = 60;
/** Statuses that apply to the whole endpoint, not only to one request. */
const HOLDS_ENDPOINT = new Set<number | null>([429, 503]);

export function resultOf(item: Claimed, url: string, attempt: Attempt): Result {
  const { statusCode, error, refused } = attempt;
  const delayMs =
    refused || statusCode === GONE ? undefined : nextTryMs(item.retry_num, item.tries + 1, attempt.retryAfterMs);
  const failed = delayMs === undefined ? "give_up" : "retry_later";
  return {
    ...unsent(item, error === null ? "delivered" : failed, error),
    callback_url: url,
    status_code: statusCode,
    delay_seconds: (delayMs ?? 0) / 1_000,
    made: { number: item.attempt + 1, attempt },
  };
}

/** Nothing was sent. */
export function unsent(item: Claimed, outcome: Result["outcome"], error: string | null): Result {
  const { id, fence, event, callback_url } = item;
  return { outcome, id, fence, event, callback_url, status_code: null, error, delay_seconds: 0, made: undefined };
}

export interface OutcomesDeps {
  db: Db;
  wake: Wake;
  hints: WebhooksHints;
  metrics: WebhooksMetrics;
  log: ServiceLog;
  clock: Clock;
  ids: Ids;
  alerts: Alerts;
  settings: WebhooksSettings;
}

export interface Outcomes {
  /** Writes the results in one transaction. */
  write(results: readonly Result[]): Promise<void>;
  /** Alerts of deliveries that are FAILED now. They are no answer to an alert that fails itself. */
  alertFailed(tx: Tx, deliveryIds: readonly string[]): Promise<void>;
}

export function createOutcomes(deps: OutcomesDeps): Outcomes {
  const { db, wake, hints, metrics, log, clock, ids, alerts, settings } = deps;
  async function writeAll(tx: Tx, items: readonly Result[]) {
    const held = new Set<string>();
    for (const outcome of OUTCOMES) {
      const those = items.filter((item) => item.outcome === outcome);
      for (const { id } of await deliveryLease.finish(tx, outcome, those)) held.add(id);
    }
    // A process that lost its lease changes nothing.
    const kept = items.filter(({ id }) => held.has(id));
    await insertAttempts(tx, kept.flatMap(attemptRow));
    const made = kept.filter((item) => item.made);
    const succeeded = new Set(made.filter(({ outcome }) => outcome === "delivered").map((item) => item.callback_url));
    await noteSuccess(tx, [...succeeded]);
    const disabled = await noteFailures(tx, failuresIn(made, succeeded), settings.disableAfterDays);
    const at = new Date(clock.now()).toISOString();
    await insertAlerts(
      tx,
      disabled.map((fields) => alertPayload("ENDPOINT_DISABLED", { ...fields, at })),
    );
    await alertFailed(
      tx,
      kept.filter(({ outcome }) => outcome === "give_up").map(({ id }) => id),
    );
    hints.changed(tx, "delivery", [...held]);
    if (disabled.length > 0) hints.changed(tx, "subscription", "*");
    return { held, disabled };
  }

  async function insertAlerts(tx: Tx, payloads: readonly Payload[]): Promise<void> {
    const deliveries = payloads.flatMap((payload) => alerts.deliveriesOf(ids.uuid(), payload));
    if (deliveries.length === 0) return;
    await insertDeliveries(tx, deliveries);
    tx.afterCommit(() => wake.hint(DELIVERIES_TOPIC));
    hints.changed(
      tx,
      "delivery",
      deliveries.map(({ id }) => id),
    );
  }

  async function alertFailed(tx: Tx, deliveryIds: readonly string[]): Promise<void> {
    if (deliveryIds.length === 0 || !alerts.has("DELIVERY_FAILED")) return;
    const failed = await failuresToAlert(tx, deliveryIds, ALERT_EVERY_MINUTES);
    const at = new Date(clock.now()).toISOString();
    await insertAlerts(
      tx,
      failed.map(({ id, callback_url, event, model_id, op_time, attempt, status_code, last_error }) =>
        alertPayload("DELIVERY_FAILED", {
          deliveryId: id,
          callbackUrl: callback_url,
          deliveryEvent: event,
          modelId: model_id,
          opTime: op_time,
          attempts: attempt,
          statusCode: status_code,
          reason: last_error,
          at,
        }),
      ),
    );
  }

  function report({ id, event, outcome, callback_url, error, made }: Result, held: boolean): void {
    const labels = { event, outcome: held ? outcome : "lost" };
    metrics.count("millrace_webhooks_deliveries_total", labels);
    if (made) metrics.observe("millrace_webhooks_attempt_seconds", labels, made.attempt.durationMs / 1_000);
    const fields = { deliveryId: id, event, callbackUrl: shownUrl(callback_url), reason: error };
    if (!held) log.info(fields, "a delivery ended after its lease was lost; its outcome is dropped");
    else if (outcome === "give_up") log.warn(fields, "a delivery failed for good");
  }

  return {
    alertFailed,
    async write(results) {
      const { held, disabled } = await db.tx((tx) => writeAll(tx, results));
      for (const result of results) report(result, held.has(result.id));
      for (const { callbackUrl, reason } of disabled) {
        log.warn({ callbackUrl: shownUrl(callbackUrl), reason }, "a webhook endpoint was disabled");
      }
    },
  };
}

function attemptRow({ id, made }: Result) {
  if (!made) return [];
  const { at, durationMs, statusCode, error, answer } = made.attempt;
  const row = {
    delivery_id: id,
    attempt: made.number,
    at,
    duration_ms: durationMs,
    status_code: statusCode,
    error,
    answer,
  };
  return [row];
}

/** One for each endpoint that only failed. A 410, or a 429 or 503 with Retry-After, counts even beside a success. */
function failuresIn(made: readonly Result[], succeeded: ReadonlySet<string>): EndpointFailure[] {
  const failures = new Map<string, EndpointFailure>();
  for (const { outcome, callback_url, status_code, made: sent } of made) {
    if (outcome === "delivered") continue;
    const gone = status_code === GONE;
    const heldSeconds = HOLDS_ENDPOINT.has(status_code) ? (sent?.attempt.retryAfterMs ?? 0) / 1_000 : 0;
    if (succeeded.has(callback_url) && !gone && heldSeconds === 0) continue;
    const known = failures.get(callback_url);
    failures.set(callback_url, {
      callback_url,
      gone: gone || known?.gone === true,
      held_seconds: Math.max(heldSeconds, known?.held_seconds ?? 0),
    });
  }
  return [...failures.values()];
}
