/** The doctor checks a run of the largest size within the statement time-out of a read. */
import { expect, test } from "vitest";
import { useChainProcesses } from "../../test/chain-process.ts";
import { useDatabase } from "../../test/database.ts";
import { NODES_MAX } from "./definitions/dag.ts";
import { findViolations } from "./store/invariants.ts";

const database = useDatabase();
const { open, define } = useChainProcesses(database);

test("a live run of ten thousand nodes is checked within three seconds, and a wrong counter is found", async () => {
  const process = await open({ roles: [] });
  const nodes = Array.from({ length: NODES_MAX }, (_, n) => ({
    id: `n${n}`,
    dependsOn: [n - 1, n - 2, n - 3].filter((parent) => parent >= 0).map((parent) => `n${parent}`),
  }));
  await process.runs.start(await define(process, nodes), { by: "test" });
  await process.timers.runOnce();
  const started = performance.now();
  expect(await findViolations(database.db)).toEqual([]);
  expect(performance.now() - started).toBeLessThan(3_000);

  await database.query("update chains.live_node set waiting = waiting + 1 where node_id = 'n5000'");
  expect(await findViolations(database.db)).toMatchObject([{ count: 1, example: expect.stringContaining("/n5000") }]);
  await database.query("update chains.live_node set waiting = waiting - 1 where node_id = 'n5000'");
});
