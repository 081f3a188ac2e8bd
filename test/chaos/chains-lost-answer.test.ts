/** The reply to a commit is lost: the worker does not know what it claimed, or whether its result was stored. */
import { expect, test } from "vitest";
import { findViolations } from "../../src/chains/store/invariants.ts";
import { useDatabase } from "../database.ts";
import { contradictions } from "./chains-audit.ts";
import { define, nodeRows, openSetup, recordMoves, runReaches, startRun } from "./chains-setup.ts";
import { startCuttingProxy } from "./cutting-proxy.ts";

const NODES = [{ id: "only", type: "work", cfg: { ms: 0 } }];
/** Runs longer than its claim takes: nothing is adopted while a claim is in flight. */
const LONGER = { id: "only", type: "work", cfg: { ms: 300 } };

const database = useDatabase();

test("a node continues whose claim or result was committed without a reply", async () => {
  const setup = await openSetup(database, {});
  await recordMoves(database);
  const proxy = await startCuttingProxy(database);
  const [api, worker] = await Promise.all([setup.start("api,scheduler"), setup.start("worker", proxy)]);
  const chainId = await define(api, NODES);
  const expected = new Map<string, typeof NODES>();
  for (const statement of ["chains.node.claim", "chains.live.write"]) {
    const cut = proxy.cut(statement);
    const runId = await startRun(api, chainId);
    await cut;
    await runReaches(database, runId, "SUCCESS");
    expected.set(runId, NODES);
  }
  expect(await contradictions(database, setup, expected)).toEqual([]);
  expect(await findViolations(database.db)).toEqual([]);
  expect(await Promise.all([worker.stop(), api.stop()])).toEqual([0, 0]);
});

test("a node continues that was adopted in a commit without a reply", async () => {
  const setup = await openSetup(database, {});
  const proxy = await startCuttingProxy(database);
  const [api, worker] = await Promise.all([setup.start("api,scheduler"), setup.start("worker", proxy)]);
  const chainId = await define(api, [LONGER, { id: "next", type: "work", cfg: { ms: 0 }, dependsOn: ["only"] }]);
  const cut = proxy.cut("chains.live.write");
  const runId = await startRun(api, chainId);
  await cut;
  await runReaches(database, runId, "SUCCESS");
  // The first result was stored. The second node was leased to the worker, which did not know, until its check released it.
  expect(await nodeRows(database, runId)).toMatchObject([
    { nodeId: "only", attempt: 1 },
    { nodeId: "next", attempt: 2 },
  ]);
  expect(setup.marks().filter(({ what }) => what === "did")).toHaveLength(2);
  expect(await findViolations(database.db)).toEqual([]);
  expect(await Promise.all([worker.stop(), api.stop()])).toEqual([0, 0]);
});
