/** The outbox events that webhooks consume, and the payloads that they send for them. */
import type { OutboxEvent } from "../kernel/work/outbox.ts";

/** A model has stored new values. Written by arrivals. */
export interface KpiUpdated {
  modelId: string;
  opTime: string;
  affectedKpiIds: string[];
  generation: number;
  rerun: boolean;
  causedBy: { table: string; opTime: string } | null;
  /** RFC 3339. */
  at: string;
}

export const KPI_UPDATED_TOPIC = "kpi.updated";

/** The events for alerts: the outbox topic, and the name in the payload. */
export const ALERT_OF_TOPIC = {
  "run.failed": "RUN_FAILED",
  "model.failed": "MODEL_FAILED",
  "deadline.passed": "DEADLINE_PASSED",
  "plan.refused": "HARVEST_PLAN_REFUSED",
  "plan.failed": "HARVEST_PLAN_FAILED",
  "endpoint.paused": "HARVEST_ENDPOINT_PAUSED",
} as const;

/** The last two are emitted by webhooks themselves. */
export const ALERT_EVENTS = [...Object.values(ALERT_OF_TOPIC), "DELIVERY_FAILED", "ENDPOINT_DISABLED"] as const;
export type AlertEvent = (typeof ALERT_EVENTS)[number];

/** The body of a delivery, before a secret of type Body is merged into it. */
export type Payload = Readonly<Record<string, unknown>> & { event: string; timestamp: string };

export function kpiUpdatedPayload(update: KpiUpdated): Payload {
  const { modelId, opTime, affectedKpiIds, generation, rerun, causedBy, at } = update;
  return { event: "KPI_UPDATED", modelId, opTime, affectedKpiIds, timestamp: at, generation, rerun, causedBy };
}

/** Shaped like an update, so that a receiver can test its parsing with it. */
export function testPayload(kpiId: string, at: string): Payload {
  const nothing = { modelId: null, opTime: null, generation: 0, rerun: false, causedBy: null };
  return { event: "TEST", ...nothing, affectedKpiIds: [kpiId], timestamp: at };
}

export function alertPayload(event: AlertEvent, { at, ...fields }: Record<string, unknown> & { at: string }): Payload {
  return { event, ...fields, timestamp: at };
}

/** The payload of the alert, if the event is one. */
export function alertOf({ topic, payload }: OutboxEvent): Payload | undefined {
  const event = (ALERT_OF_TOPIC as Record<string, AlertEvent | undefined>)[topic];
  return event && alertPayload(event, payload as Record<string, unknown> & { at: string });
}
