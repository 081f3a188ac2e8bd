/** The database may reject the result of a node: only that node fails. */
import { expect, test } from "vitest";
import { held, useChainProcesses } from "../../../test/chain-process.ts";
import { useDatabase } from "../../../test/database.ts";

const database = useDatabase();
const chains = useChainProcesses(database);
const { acts, define, ended } = chains;

test("a node whose result the database rejects fails for good; others in the same batch do not", async () => {
  // Any constraint will do; a real one would be a limit of Postgres that Millrace does not check.
  await database.query(`create function refuse() returns trigger language plpgsql as
    $$ begin raise exception 'this cannot be stored' using errcode = 'XX000'; end $$`);
  await database.query(`create trigger refuse before update on chains.job_run_node for each row
    when (new.artifact_json = '"poison"') execute function refuse()`);
  const process = await chains.open();
  const ids = Array.from({ length: 10 }, (_, index) => `n${index}`);
  const { act, begun, release } = held();
  for (const id of ids) {
    acts.set(id, async (ctx, cfg) => {
      await act(ctx, cfg);
      return { artifact: id === "n4" ? "poison" : id };
    });
  }
  const retry = { maxAttempts: 5, backoffMs: 0 };
  const chainId = await define(process, [...ids.map((id) => ({ id, retry })), { id: "after", dependsOn: ["n3"] }]);
  const { runId } = await process.runs.start(chainId, { by: "test" });
  await begun(ids.length);
  release();
  const run = await ended(runId);
  expect(run.nodes["n4"]).toMatchObject({ status: "FAILED", attempt: 1, artifact: null });
  expect(run.nodes["n4"]?.error).toContain("its result could not be stored: this cannot be stored");
  for (const id of [...ids, "after"]) {
    if (id !== "n4") expect(run.nodes[id]).toMatchObject({ status: "SUCCESS", attempt: 1 });
  }
});
