/** The doctor's check of tracking: expired leases that no process reclaims. */
import type { DoctorCheck } from "../kernel/doctor.ts";
import { counted } from "../kernel/text/sentences.ts";
import { leaseHealth } from "./store.ts";

const OVERDUE_SECONDS_WARN = 30;

export const trackingChecks: DoctorCheck[] = [
  {
    name: "tracking leases",
    async look(db) {
      const { leased, overdue_seconds, repeatedly_lost } = await leaseHealth(db);
      const found = `Leased: ${counted(leased, "shard")}, of which ${repeatedly_lost} lost a worker before.`;
      if (overdue_seconds < OVERDUE_SECONDS_WARN) return { verdict: "ok", found };
      return {
        verdict: "broken",
        found: `${found} The oldest lease expired ${Math.round(overdue_seconds)} s ago and was not reclaimed.`,
        advice: "No process reclaims them: check that one runs with the role `scheduler`, and read its log.",
      };
    },
  },
];
