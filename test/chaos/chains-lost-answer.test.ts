/** The answer to a commit is lost: the worker does not know what it was given, or whether its result was written. */
import { expect, test } from "vitest";
import { findViolations } from "../../src/chains/store/invariants.ts";
import { useDatabase } from "../database.ts";
import { contradictions } from "./chains-audit.ts";
import { define, nodeRows, noteMoves, openPlant, runReaches, startRun } from "./chains-plant.ts";
import { startCuttingProxy } from "./cutting-proxy.ts";

const NODES = [{ id: "only", type: "work", cfg: { ms: 0 } }];
/** Long enough for the claim that brought it to be over: while one is under way, nothing is handed over. */
const LONGER = { id: "only", type: "work", cfg: { ms: 300 } };

const database = useDatabase();

test("a node goes on whose claim or end was committed without an answer", async () => {
  const plant = await openPlant(database, {});
  await noteMoves(database);
  const proxy = await startCuttingProxy(database);
  const [api, worker] = await Promise.all([plant.start("api,scheduler"), plant.start("worker", proxy)]);
  const chainId = await define(api, NODES);
  const expected = new Map<string, typeof NODES>();
  for (const statement of ["chains.node.claim", "chains.live.write"]) {
    const cut = proxy.cut(statement);
    const runId = await startRun(api, chainId);
    await cut;
    await runReaches(database, runId, "SUCCESS");
    expected.set(runId, NODES);
  }
  expect(await contradictions(database, plant, expected)).toEqual([]);
  expect(await findViolations(database.db)).toEqual([]);
  expect(await Promise.all([worker.stop(), api.stop()])).toEqual([0, 0]);
});

test("a node goes on that was handed over in a commit without an answer", async () => {
  const plant = await openPlant(database, {});
  const proxy = await startCuttingProxy(database);
  const [api, worker] = await Promise.all([plant.start("api,scheduler"), plant.start("worker", proxy)]);
  const chainId = await define(api, [LONGER, { id: "next", type: "work", cfg: { ms: 0 }, dependsOn: ["only"] }]);
  const cut = proxy.cut("chains.live.write");
  const runId = await startRun(api, chainId);
  await cut;
  await runReaches(database, runId, "SUCCESS");
  // The end of the first was written; the second was the worker's without its knowing, until it gave it back.
  expect(await nodeRows(database, runId)).toMatchObject([
    { nodeId: "only", attempt: 1 },
    { nodeId: "next", attempt: 2 },
  ]);
  expect(plant.marks().filter(({ what }) => what === "did")).toHaveLength(2);
  expect(await findViolations(database.db)).toEqual([]);
  expect(await Promise.all([worker.stop(), api.stop()])).toEqual([0, 0]);
});
