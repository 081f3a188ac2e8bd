/** What can go wrong in chains without anybody noticing. */
import type { DoctorCheck } from "../kernel/doctor.ts";
import { findViolations, leaseHealth, nodesWithoutPool } from "./store/invariants.ts";

const OVERDUE_SECONDS_WARN = 30;

export const chainsChecks: DoctorCheck[] = [
  {
    name: "chain leases",
    async look(db) {
      const { leased, orphaned, overdue_seconds } = await leaseHealth(db);
      const found = `${leased} nodes are running.`;
      if (overdue_seconds < OVERDUE_SECONDS_WARN && orphaned === 0) return { verdict: "ok", found };
      const late =
        orphaned > 0
          ? `${orphaned} of them belong to a process that is long gone.`
          : `The worker of one fell silent ${Math.round(overdue_seconds)} s ago, and the node was not taken back.`;
      return {
        verdict: "broken",
        found: `${found} ${late}`,
        advice: "No process takes work back: check that one runs with the role `scheduler`, and its log.",
      };
    },
  },
  {
    name: "chain pools",
    async look(db) {
      const { nodes, pool } = await nodesWithoutPool(db);
      if (nodes === 0) return { verdict: "ok", found: "Every node that is ready to run has its pool." };
      return {
        verdict: "broken",
        found: `Nodes that are ready but will not run, because their pool does not exist: ${nodes}, for instance of \`${pool}\`.`,
        advice: `Make the pool: PUT /api/v1/pools/${pool} {"size": 1}, or stop their runs.`,
      };
    },
  },
  {
    name: "chain state",
    async look(db) {
      const violations = await findViolations(db);
      if (violations.length === 0) return { verdict: "ok", found: "Runs, nodes, counters and leases agree." };
      const listed = violations.map(
        ({ rule, count, example }) => `${rule}: ${count} times not, for instance ${example}`,
      );
      return {
        verdict: "broken",
        found: `What must always hold does not: ${listed.join("; ")}.`,
        advice: "This is a bug. Please report it with the run's events (GET /api/v1/runs/{runId}/events).",
      };
    },
  },
];
