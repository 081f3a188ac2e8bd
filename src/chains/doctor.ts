/** Doctor checks for faults in chains that show no other symptom. */

import { leaseFinding, stateFinding } from "../kernel/data/invariants.ts";
import type { DoctorCheck } from "../kernel/doctor.ts";
import { findViolations, leaseHealth, nodesWithoutPool, unservedWork } from "./store/invariants.ts";

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
      if (nodes === 0) return { verdict: "ok", found: "Every ready node has its pool." };
      return {
        verdict: "broken",
        found: `Ready nodes that cannot run because their pool does not exist: ${nodes}, for example in \`${pool}\`.`,
        advice: `Create the pool: PUT /api/v1/pools/${pool} {"size": 1}, or stop their runs.`,
      };
    },
  },
  {
    name: "chain processes",
    async look(db) {
      const { for_worker: forWorker, for_scheduler: forScheduler, example } = await unservedWork(db);
      if (forWorker + forScheduler === 0)
        return { verdict: "ok", found: "No run waits for a process that is not there." };
      const waiting = [
        ...(forWorker > 0 ? [`nodes that wait for a process with the role \`worker\`: ${forWorker}`] : []),
        ...(forScheduler > 0
          ? [`nodes and runs that wait for a process with the role \`scheduler\`: ${forScheduler}`]
          : []),
      ];
      const roles = [...(forWorker > 0 ? ["worker"] : []), ...(forScheduler > 0 ? ["scheduler"] : [])];
      return {
        verdict: "broken",
        found: `None is alive, and there are ${waiting.join(", and ")}, for example of run ${example}.`,
        advice: `Start one: millrace serve --roles ${roles.join(",")}.`,
      };
    },
  },
  {
    name: "chain state",
    look: async (db) => stateFinding(await findViolations(db), STATE_WORDS),
  },
];
