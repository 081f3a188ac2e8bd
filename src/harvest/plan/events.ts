/** The outbox events of harvest (docs/events.md). Those of plans and endpoints become alerts (webhooks/events.ts). */
import type { OutboxEvent } from "../../kernel/work/outbox.ts";

export interface RefusedPlan {
  source: string;
  endpoint: string | null;
  operation: string;
  reason: string;
  scheduleInstanceId: string;
}

export interface FailedPlan {
  planId: string;
  source: string;
  endpoint: string;
  operation: string;
  reason: string;
}

export interface PausedEndpoint {
  source: string;
  endpoint: string;
  operation: string;
  reason: string;
  planId: string;
}

export interface CommittedBatch {
  planId: string;
  sliceId: string;
  generation: number;
  batchNo: number;
  source: string;
  endpoint: string;
  operation: string;
  received: number;
  inserted: number;
  updated: number;
  unchanged: number;
  deleted: number;
  quarantined: number;
  missing: number;
}

/** A page was committed. */
export function batchCommitted(eventId: string, fields: CommittedBatch, atMs: number): OutboxEvent {
  return { eventId, topic: "harvest.batch", payload: { ...fields, at: new Date(atMs).toISOString() } };
}

/** The definition could not be used, so no plan was made. */
export function planRefused(eventId: string, fields: RefusedPlan, atMs: number): OutboxEvent {
  return { eventId, topic: "plan.refused", payload: { ...fields, at: new Date(atMs).toISOString() } };
}

/** A plan ended with gaps. */
export function planFailed(eventId: string, fields: FailedPlan, atMs: number): OutboxEvent {
  return { eventId, topic: "plan.failed", payload: { ...fields, at: new Date(atMs).toISOString() } };
}

/** Access to an endpoint is refused, so Millrace has paused it. */
export function endpointPaused(eventId: string, fields: PausedEndpoint, atMs: number): OutboxEvent {
  return { eventId, topic: "endpoint.paused", payload: { ...fields, at: new Date(atMs).toISOString() } };
}
