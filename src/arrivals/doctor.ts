/** What can go wrong in arrivals without anybody noticing. */
import type { DoctorCheck } from "../kernel/doctor.ts";
import { findViolations, leaseHealth, queueHealth } from "./store/invariants.ts";

const OVERDUE_SECONDS_WARN = 30;
const QUEUED_SECONDS_WARN = 600;

export const arrivalsChecks: DoctorCheck[] = [
  {
    name: "model leases",
    async look(db) {
      const { leased: running, orphaned, overdue_seconds } = await leaseHealth(db);
      const found = `${running} models are running.`;
      if (overdue_seconds < OVERDUE_SECONDS_WARN && orphaned === 0) return { verdict: "ok", found };
      const late =
        orphaned > 0
          ? `${orphaned} of them belong to a process that is long gone.`
          : `The process of one fell silent ${Math.round(overdue_seconds)} s ago, and the run was not taken back.`;
      return {
        verdict: "broken",
        found: `${found} ${late}`,
        advice: "No process takes work back: check that one runs with the role `scheduler`, and its log.",
      };
    },
  },
  {
    name: "model queue",
    async look(db) {
      const { ready, oldest_seconds, workers } = await queueHealth(db);
      const found = `${ready} models are ready to run.`;
      if (oldest_seconds < QUEUED_SECONDS_WARN) return { verdict: "ok", found };
      return {
        verdict: "warning",
        found: `${found} The first of them has waited for ${Math.round(oldest_seconds)} s, with ${workers} processes that run models.`,
        advice:
          workers === 0
            ? "Start a process with the role `worker`."
            : "Start more processes with the role `worker`, or raise arrivals.slots; and see what runs for so long.",
      };
    },
  },
  {
    name: "arrivals state",
    async look(db) {
      const violations = await findViolations(db);
      if (violations.length === 0) return { verdict: "ok", found: "Models, their runs and their values agree." };
      const listed = violations.map(
        ({ rule, count, example }) => `${rule}: ${count} times not, for instance ${example}`,
      );
      return {
        verdict: "broken",
        found: `What must always hold does not: ${listed.join("; ")}.`,
        advice: "This is a bug. Please report it with GET /api/v1/kpi/models/{modelId}/why?opTime=.",
      };
    },
  },
];
