/** Stored events as the API shows them. */
import { isoOf } from "../graph/micros.ts";
import { isId } from "./find.ts";
import type { EventFilter, EventRow } from "./store/events.ts";

/** Microseconds as text, since they come from a bigint; as a time with all its digits. */
export function timeOf(at: string): string {
  return isoOf(Number(at));
}

export function eventReply(row: EventRow) {
  return {
    id: row.id,
    kind: row.kind,
    eventType: row.event_type,
    eventTime: timeOf(row.at),
    runId: row.run_uuid,
    jobNamespace: row.job_namespace,
    jobName: row.job_name,
    producer: row.producer,
    source: row.source,
    baseline: row.baseline,
    state: row.apply_state,
    error: row.apply_error,
    receivedAt: row.created_at,
  };
}

export function eventCursor({ at, id }: { at: string; id: string }): string {
  return `${at}-${id}`;
}

/** Nothing if the text is none of ours. */
export function eventAfter(cursor: string): EventFilter["after"] {
  const [, at = "", id = ""] = /^(-?\d{1,17})-(\d{1,19})$/.exec(cursor) ?? [];
  return at !== "" && isId(id) ? { at, id } : null;
}
