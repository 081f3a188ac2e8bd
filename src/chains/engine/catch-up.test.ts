/** Arrivals that no process reported to chains: the timers of any process find them. */
import { expect, test } from "vitest";
import { useChainProcesses } from "../../../test/chain-process.ts";
import { useDatabase } from "../../../test/database.ts";
import { until } from "../../../test/until.ts";

const database = useDatabase();
const chains = useChainProcesses(database);
const { arrivals, begunNodes, define, ended, look } = chains;

test("a node becomes ready whose table arrived without a report", async () => {
  const process = await chains.open({ roles: ["worker"] });
  const chainId = await define(process, [{ id: "n0", waitsFor: ["A", "B"] }]);
  const runs = ["20250101", "20250102"].map(async (opTime) => {
    const { runId } = await process.runs.start(chainId, { by: "test", opTime });
    return runId;
  });
  const [monday, tuesday] = (await Promise.all(runs)) as [string, string];
  await process.timers.runOnce();
  await until(async () => (await look(tuesday)).status === "RUNNING", "the runs to begin");
  for (const table of ["A", "B"]) arrivals.add(`${table} 20250101`);
  arrivals.add("A 20250102");

  // A new process: the timers of one process look for arrivals only every 20 seconds.
  const other = await chains.open({ roles: [] });
  expect(await other.timers.runOnce()).toMatchObject({ arrivals_caught_up: 3 });
  expect((await ended(monday)).status).toBe("SUCCESS");
  expect((await look(tuesday)).nodes["n0"]?.status).toBe("PENDING");
  expect(begunNodes()).toEqual(["n0"]);

  arrivals.add("B 20250102");
  const third = await chains.open({ roles: [] });
  expect(await third.timers.runOnce()).toMatchObject({ arrivals_caught_up: 1 });
  expect((await ended(tuesday)).status).toBe("SUCCESS");
});

test("arrivals are not read while no node waits for a table", async () => {
  const process = await chains.open({ roles: ["worker"] });
  const { runId } = await process.runs.start(await define(process, [{ id: "n0" }]), { by: "test" });
  await process.timers.runOnce();
  await ended(runId);
  await process.timers.runOnce();
  expect(process.statements).not.toContain("chains.wait.awaited");
});
