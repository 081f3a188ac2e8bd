/** The doctor's check of pauses: what is paused, and what may have been forgotten. */
import type { DoctorCheck } from "../../kernel/doctor.ts";
import { counted } from "../../kernel/text/sentences.ts";
import { readPauseAges } from "../store/pauses.ts";

/** A pause that is older may have been forgotten. */
const LONG_DAYS = 1;

export const pausesCheck: DoctorCheck = {
  name: "harvest pauses",
  async look(db) {
    const pauses = await readPauseAges(db, LONG_DAYS);
    const [first] = pauses.filter(({ is_long }) => is_long);
    if (!first) return { verdict: "ok", found: `Paused: ${counted(pauses.length, "part")} of sources.` };
    const { provenance_code: source, endpoint_name, operation_code, paused_by, paused_at, reason } = first;
    const endpoint = endpoint_name === null ? "" : `/${endpoint_name}`;
    const scope = `${source}${endpoint}${operation_code === null ? "" : ` ${operation_code}`}`;
    const since = `${paused_at.toISOString().slice(0, 19)}Z${reason === null ? "" : `: ${reason}`}`;
    const flags = [
      endpoint_name === null ? "" : ` --endpoint ${endpoint_name}`,
      operation_code === null ? "" : ` --operation ${operation_code.toLowerCase()}`,
    ].join("");
    return {
      verdict: "warning",
      found: `${scope} is paused by ${paused_by} since ${since}. Nothing of it is harvested.`,
      advice: `If the reason is gone: \`millrace harvest resume ${source}${flags}\`.`,
    };
  },
};
