/** The doctor's checks of lineage: faults that show no other symptom. */

import { stateFinding, violationsOf } from "../kernel/data/invariants.ts";
import type { DoctorCheck } from "../kernel/doctor.ts";
import { counted } from "../kernel/text/sentences.ts";
import { INVARIANTS, unapplied } from "./store/health.ts";

const BUFFERED_SECONDS_WARN = 24 * 60 * 60;

export const NO_OWN_TENANT = {
  verdict: "warning",
  found:
    "The lineage of Millrace's own runs is not kept: the tenant 0 or the code `millrace` belongs to another tenant.",
  advice: "Choose one with `lineage.own: {id, code, name}` in millrace.yaml, or say `own: {enabled: false}`.",
} as const;

/** For a process whose default tenant is taken. */
export const ownTenantCheck: DoctorCheck = { name: "own lineage", look: async () => NO_OWN_TENANT };

export const lineageChecks: DoctorCheck[] = [
  {
    name: "lineage events",
    async look(db) {
      const { dead, buffered, example, waiting_seconds } = await unapplied(db);
      if (dead > 0) {
        return {
          verdict: "warning",
          found: `${counted(dead, "event")} could not be applied, of tenant ${example} for instance.`,
          advice: "GET /api/v1/lineage/dead-letters shows the reasons; fix the cause and replay them.",
          isListed: true,
        };
      }
      const found =
        buffered === 0
          ? "Every event was applied."
          : `${counted(buffered, "event")} buffered until the tenant is READY.`;
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
