/** The doctor's check of pauses: endpoints whose access is refused, and pauses that may have been forgotten. */
import type { DoctorCheck } from "../../kernel/doctor.ts";
import { counted } from "../../kernel/text/sentences.ts";
import { type PauseRow, readPauseAges } from "../store/pauses.ts";

/** A pause that is older may have been forgotten. */
const LONG_DAYS = 1;
const NAMED_MAX = 3;

export const pausesCheck: DoctorCheck = {
  name: "harvest pauses",
  async look(db) {
    const pauses = await readPauseAges(db, LONG_DAYS);
    const refused = pauses.filter(({ is_automatic }) => is_automatic);
    const [long] = pauses.filter(({ is_long, is_automatic }) => is_long && !is_automatic);
    const named = [...refused.slice(0, NAMED_MAX), ...(long ? [long] : [])];
    if (named.length === 0) return { verdict: "ok", found: `Paused: ${counted(pauses.length, "part")} of sources.` };
    const more = refused.length > NAMED_MAX ? [`${refused.length - NAMED_MAX} more are paused by Millrace.`] : [];
    return {
      verdict: "warning",
      found: [...named.map(pausedText), ...more].join(" "),
      advice: `If the reason is gone: ${named.map((one) => `\`${resumeCommand(one)}\``).join(", ")}.`,
      ...(long ? {} : { isListed: true }), // The others are entries of the overview.
    };
  },
};

function pausedText({
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

export function resumeCommand({ provenance_code: source, endpoint_name, operation_code }: PauseRow): string {
  const flags = [
    endpoint_name === null ? "" : ` --endpoint ${endpoint_name}`,
    operation_code === null ? "" : ` --operation ${operation_code.toLowerCase()}`,
  ].join("");
  return `millrace harvest resume ${source}${flags}`;
}
