/** Admission of large runs: so many nodes in one transaction, and the rest in the next. */
import { expect, test } from "vitest";
import { useChainProcesses } from "../../test/chain-process.ts";
import { useDatabase } from "../../test/database.ts";

const database = useDatabase();
const chains = useChainProcesses(database);
const NODES = 6_000;
const NODES_ADMITTED_MAX = 20_000;
const AT_ONCE = Math.ceil(NODES_ADMITTED_MAX / NODES);
const RUNS = 2 * AT_ONCE + 1;

test("many large runs are admitted some at a time, in their order, until none waits", async () => {
  const process = await chains.open({ roles: [] });
  const nodes = Array.from({ length: NODES }, (_, index) => ({ id: `n${index}` }));
  const chainId = await chains.define(process, nodes);
  const runIds: string[] = [];
  for (let priority = 0; priority < RUNS; priority += 1) {
    runIds.unshift((await process.runs.start(chainId, { by: "test", priority: -priority })).runId);
  }
  const admitted = async () =>
    database.query<{ run_id: string }>("select run_id from chains.live_run order by priority");

  expect(await process.timers.runOnce()).toMatchObject({ admitted: AT_ONCE });
  expect((await admitted()).map(({ run_id }) => run_id)).toEqual(runIds.slice(0, AT_ONCE));
  // Nothing tells the loop of what is left but what it has just done.
  process.timers.start();
  const counts: (number | undefined)[] = [];
  do counts.push((await process.timers.nextRun())["admitted"]);
  while (counts.at(-1) !== 0);
  expect(counts.filter(Boolean)).toEqual([AT_ONCE, 1]);
  expect((await admitted()).map(({ run_id }) => run_id)).toEqual(runIds);
});

test("a single run may be larger than that, and comes alone", async () => {
  const process = await chains.open({ roles: [] });
  const chainId = await chains.define(process, [{ id: "small" }]);
  const nodes = Array.from({ length: NODES_ADMITTED_MAX }, (_, index) => ({ id: String(index), type: "act" }));
  await database.query("update chains.job_chain_definition set dag_json = $2 where chain_id = $1", [
    chainId,
    JSON.stringify({ nodes }),
  ]);
  await process.runs.startMany(chainId, [{ by: "test" }, { by: "test" }]);
  expect(await process.timers.runOnce()).toMatchObject({ admitted: 1 });
  expect(await process.timers.runOnce()).toMatchObject({ admitted: 1 });
});
