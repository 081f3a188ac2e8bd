/** The doctor's checks of arrivals: leases, the queue of ready models, and rows that must agree. */

import { leaseFinding, stateFinding } from "../kernel/data/invariants.ts";
import type { DoctorCheck } from "../kernel/doctor.ts";
import { counted } from "../kernel/text/sentences.ts";
import { findViolations, leaseHealth, queueHealth } from "./store/invariants.ts";

const STATE_WORDS = {
  sound: "Models, their runs and their values agree.",
  evidence: "GET /api/v1/kpi/models/{modelId}/why?opTime=",
};
const QUEUED_SECONDS_WARN = 600;

export const arrivalsChecks: DoctorCheck[] = [
  {
    name: "model leases",
    look: async (db) =>
      leaseFinding(await leaseHealth(db), {
        items: "model runs",
        item: "model run",
        holder: "process",
        reclaimedBy: "worker",
      }),
  },
  {
    name: "model queue",
    async look(db) {
      const { ready, oldest_seconds, workers } = await queueHealth(db);
      const found = `Ready to run: ${counted(ready, "model")}.`;
      if (oldest_seconds < QUEUED_SECONDS_WARN) return { verdict: "ok", found };
      return {
        verdict: "warning",
        found: `${found} The oldest has waited for ${Math.round(oldest_seconds)} s; live workers: ${workers}.`,
        advice:
          workers === 0
            ? "Start a process with the role `worker`."
            : "Start more processes with the role `worker`, or raise arrivals.slots. Check which runs take so long.",
      };
    },
  },
  {
    name: "arrivals state",
    look: async (db) => stateFinding(await findViolations(db), STATE_WORDS),
  },
];
