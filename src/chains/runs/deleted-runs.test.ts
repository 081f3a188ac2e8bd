/** Runs that retention has deleted while a process still caches them: every route answers as for an unknown run. */
import { beforeAll, describe, expect, test } from "vitest";
import { fails, holds, refusal, scripted, useChains } from "../../../test/chains.ts";
import { useDatabase } from "../../../test/database.ts";
import { example, type Operation, operationsOf, pathOf, readDocument } from "../../../test/end-to-end/operations.ts";
import { deleteOldRuns } from "../store/retention.ts";

const database = useDatabase();
const chains = useChains(database);
let operations: Operation[] = [];

beforeAll(async () => {
  const all = operationsOf(await readDocument(chains.url), { runId: "", nodeId: "load" });
  operations = all.filter(({ path }) => path.startsWith("/api/v1/runs/") && path.includes("{runId}"));
});

/** Ends a run in this process, and deletes it as another process would. */
async function deleted(how: "SUCCESS" | "FAILED" | "STOPPED"): Promise<string> {
  const load = {
    SUCCESS: { id: "load", type: "noop" },
    FAILED: scripted("load", fails),
    STOPPED: scripted("load", holds),
  };
  const runId = await chains.run([load[how]]);
  if (how === "STOPPED") {
    await chains.nodeReaches(runId, "load", "RUNNING");
    await chains.api.post(`/api/v1/runs/${runId}:stop`);
  }
  await chains.reaches(runId, how);
  await database.query(
    `update chains.job_run set created_at = now() - interval '3 days', ended_at = now() - interval '2 days'
     where run_id = $1`,
    [runId],
  );
  expect(await deleteOldRuns(database.db, 1, 10)).toBe(1);
  return runId;
}

describe("a run that was deleted", () => {
  test.each(["SUCCESS", "FAILED", "STOPPED"] as const)(
    "after it ended with %s is unknown to every route",
    async (how) => {
      const runId = await deleted(how);
      for (const operation of operations) {
        const { method, path, body } = operation;
        // Twice: the first call may have dropped it from a cache.
        for (const call of ["first", "second"]) {
          const answer = await chains.api.send(pathOf(operation, { runId }), {
            method,
            ...(body === undefined
              ? {}
              : { headers: { "content-type": "application/json" }, body: JSON.stringify(example(body)) }),
          });
          expect(refusal(answer), `${call} ${method} ${path}`).toEqual([400, "RUN_NOT_FOUND"]);
        }
      }
      expect(operations.length).toBeGreaterThan(11);
    },
  );
});
