/** The doctor's check of landing: whether there is a lake for the windows that wait, and windows that could not land. */
import type { Lake } from "../../engines/index.ts";
import type { DoctorCheck } from "../../kernel/doctor.ts";
import { counted } from "../../kernel/text/sentences.ts";
import { landingHealth } from "../store/records/landing.ts";

/** `engines` are those that tables can be written in. */
export function landingCheck(lake: Lake | undefined, engines: readonly string[]): DoctorCheck {
  return {
    name: "landing",
    async look(db) {
      const { waiting, failed, first, error, held_up } = await landingHealth(db);
      if (failed > 0) {
        return {
          verdict: "broken",
          found: `Could not land: ${counted(failed, "window")}, among them ${first}: ${error}`,
          advice: "Remove the reason, then harvest these windows again.",
        };
      }
      if (held_up !== null) {
        return {
          verdict: "warning",
          found: `Waiting to land: ${counted(waiting, "window")}, after an error: ${held_up}`,
          advice: "They are tried again. Once the reason is removed, a new harvest of the window lands it at once.",
        };
      }
      if (!lake && engines.length === 0 && waiting > 0) {
        return {
          verdict: "warning",
          found: `This process has no lake; waiting to land: ${counted(waiting, "window")}.`,
          advice: "Set MILLRACE_LAKE_DIR or MILLRACE_DATA_DIR for the processes with the role `worker`.",
        };
      }
      const places = [...(lake ? [lake.dir] : []), ...engines.map((engine) => `the engine ${engine}`)];
      const where =
        places.length > 0 ? `Windows land in ${places.join(", ")}` : "There is no lake, and no window wants to land";
      return { verdict: "ok", found: `${where}; waiting: ${counted(waiting, "window")}.` };
    },
  };
}
