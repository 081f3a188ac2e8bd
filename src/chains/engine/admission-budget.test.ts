/** Admission of large runs: a limited number of nodes in one transaction, the rest in the next. */
import { expect, test } from "vitest";
import { useChainProcesses } from "../../../test/chain-process.ts";
import { useDatabase } from "../../../test/database.ts";
import { until } from "../../../test/until.ts";

const database = useDatabase();
const chains = useChainProcesses(database);
const NODES = 7_000;
const NODES_ADMITTED_MAX = 20_000;
const AT_ONCE = Math.ceil(NODES_ADMITTED_MAX / NODES);
const RUNS = 2 * AT_ONCE + 1;

test("many large runs are admitted in several transactions, in order, until none is PENDING", async () => {
  const process = await chains.open({ roles: [] });
  const nodes = Array.from({ length: NODES }, (_, index) => ({ id: `n${index}` }));
  const chainId = await chains.define(process, nodes);
  const runIds: string[] = [];
  for (let priority = 0; priority > -RUNS; priority -= 1) {
    runIds.unshift((await process.runs.start(chainId, { by: "test", priority })).runId);
  }
  const admitted = async () => {
    const rows = await database.query<{ run_id: string }>("select run_id from chains.live_run order by priority");
    return rows.map(({ run_id }) => run_id);
  };
  expect(await process.timers.runOnce()).toMatchObject({ admitted: AT_ONCE });
  expect(await admitted()).toEqual(runIds.slice(0, AT_ONCE));

  const began = performance.now();
  process.timers.start(); // No hint wakes it: it must continue because it has just admitted some.
  await until(async () => (await admitted()).length === RUNS, "all to be admitted");
  expect(performance.now() - began).toBeLessThan(9_000);
  const transactions = await database.query<{ runs: number }>(
    "select count(*)::int as runs from chains.live_run group by xmin::text order by min(priority)",
  );
  expect(transactions.map(({ runs }) => runs)).toEqual([AT_ONCE, AT_ONCE, 1]);
});
