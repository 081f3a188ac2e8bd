/** The doctor's check of pauses: endpoints whose access is refused, and pauses that may have been forgotten. */
import type { DoctorCheck } from "../../kernel/doctor.ts";
import { counted } from "../../kernel/text/sentences.ts";
import { readPauseAges } from "../store/queue/pauses.ts";
import { pausedText, resumeCommand } from "./pause-text.ts";

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
    const more =
      refused.length > NAMED_MAX
        ? [`Millrace has paused ${counted(refused.length - NAMED_MAX, "more endpoint")}.`]
        : [];
    return {
      verdict: "warning",
      found: [...named.map(pausedText), ...more].join(" "),
      advice: `If the reason is gone: ${named.map((one) => `\`${resumeCommand(one)}\``).join(", ")}.`,
      ...(long ? {} : { isListed: true }), // The others are entries of the overview.
    };
  },
};
