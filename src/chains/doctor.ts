/** What can go wrong in chains without anybody noticing. */

import { leaseFinding, stateFinding } from "../kernel/data/invariants.ts";
import type { DoctorCheck } from "../kernel/doctor.ts";
import { findViolations, leaseHealth, nodesWithoutPool } from "./store/invariants.ts";

const STATE_WORDS = {
  sound: "Runs, nodes, counters and leases agree.",
  evidence: "the run's events (GET /api/v1/runs/{runId}/events)",
};

export const chainsChecks: DoctorCheck[] = [
  {
    name: "chain leases",
    look: async (db) =>
      leaseFinding(await leaseHealth(db), { items: "nodes", item: "node", holder: "worker", reclaimedBy: "scheduler" }),
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
    look: async (db) => stateFinding(await findViolations(db), STATE_WORDS),
  },
];
