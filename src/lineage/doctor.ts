/** What can go wrong with lineage without anybody noticing. */

import { stateFinding, violationsOf } from "../kernel/data/invariants.ts";
import type { DoctorCheck } from "../kernel/doctor.ts";
import { INVARIANTS, unapplied } from "./store/health.ts";

const BUFFERED_SECONDS_WARN = 24 * 60 * 60;

export const lineageChecks: DoctorCheck[] = [
  {
    name: "lineage events",
    async look(db) {
      const { dead, buffered, example, waiting_seconds } = await unapplied(db);
      if (dead > 0) {
        return {
          verdict: "warning",
          found: `${dead} events could not be applied, of tenant ${example} for instance.`,
          advice: "GET /api/v1/lineage/dead-letters tells why; they can be replayed once that is mended.",
        };
      }
      const found =
        buffered === 0 ? "Every event was applied." : `${buffered} events wait until their tenant is READY.`;
      if (waiting_seconds < BUFFERED_SECONDS_WARN) return { verdict: "ok", found };
      return {
        verdict: "warning",
        found: `${found} One of tenant ${example} for more than a day.`,
        advice: `Finish its full sync, and then POST /api/v1/lineage/tenants/${example}:ready.`,
      };
    },
  },
  {
    name: "lineage graph",
    look: async (db) =>
      stateFinding(await violationsOf(db, INVARIANTS), {
        sound: "Edges, assets and events agree with each other.",
        evidence: "the tenant and the asset named here, and the events that name it",
      }),
  },
];
