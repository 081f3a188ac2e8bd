/** How a pause is told, and the command that ends it. */
import type { PauseRow } from "../store/queue/pauses.ts";

export function pausedText({
  provenance_code: source,
  endpoint_name,
  operation_code,
  paused_by,
  paused_at,
  reason,
}: PauseRow) {
  const endpoint = endpoint_name === null ? "" : `/${endpoint_name}`;
  const scope = `${source}${endpoint}${operation_code === null ? "" : ` ${operation_code}`}`;
  const since = `${paused_at.toISOString().slice(0, 19)}Z${reason === null ? "" : `: ${reason}`}`;
  return `${scope} is paused by ${paused_by} since ${since}. Nothing of it is harvested.`;
}

/** The SQL function `harvest.pause_reason` ends with the same command, for an endpoint that Millrace paused. */
export function resumeCommand({ provenance_code: source, endpoint_name, operation_code }: PauseRow): string {
  const flags = [
    endpoint_name === null ? "" : ` --endpoint ${endpoint_name}`,
    operation_code === null ? "" : ` --operation ${operation_code.toLowerCase()}`,
  ].join("");
  return `millrace harvest resume ${source}${flags}`;
}
