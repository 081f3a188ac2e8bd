/** Revived runs count toward maxActiveRuns of their chain like any other. */
import { describe, expect, test } from "vitest";
import { ACTOR, type ChainProcess, held, useChainProcesses } from "../../../test/chain-process.ts";
import { useDatabase } from "../../../test/database.ts";
import type { Runs } from "../runs/runs.ts";
import { useSubRuns } from "../runs/sub-runs.fixture.ts";

const database = useDatabase();
const chains = useChainProcesses(database);
const { acts, define, ended, look } = chains;
const { childrenOf } = useSubRuns(database, chains);
const BY = { by: "test" };
const again = { downstream: false, dryRun: false, reason: null };
const byHand = (nodeId: string) => ({ nodeId, artifact: null, reason: null });
const NODES = [{ id: "a" }, { id: "b", dependsOn: ["a"] }];

/** An ended run of a chain with maxActiveRuns 1, and an active one that ends when it is released. */
async function fill(process: ChainProcess, how: "FAILED" | "STOPPED", nodes: readonly object[] = NODES) {
  const chainId = await define(process, nodes, { name: "narrow", maxActiveRuns: 1 });
  const first = held();
  acts.set("a", how === "FAILED" ? () => Promise.reject(new Error("no")) : first.act);
  const { runId } = await process.runs.start(chainId, BY);
  if (how === "STOPPED") {
    await first.begun();
    await process.runs.stop(runId, ACTOR);
  }
  expect((await ended(runId)).status).toBe(how);
  const { act, begun, release } = held();
  acts.set("a", act);
  const other = await process.runs.start(chainId, BY);
  await begun();
  return { runId, release: async () => (release(), ended(other.runId)) };
}

const traces = (runId: string) =>
  database.query(
    `select (select count(*)::int from chains.job_run_event where run_id = $1) as events,
            (select count(*)::int from kernel.audit_log) as audited,
            (select count(*)::int from chains.job_run_attempt where run_id = $1) as attempts`,
    [runId],
  );

describe("while its chain has no room, an ended run", () => {
  test.each<[verb: string, how: "FAILED" | "STOPPED", revive: (runs: Runs, runId: string) => Promise<unknown>]>([
    ["retry", "FAILED", (runs, runId) => runs.retry(runId, again, ACTOR)],
    ["retry of a node", "FAILED", (runs, runId) => runs.retry(runId, { ...again, nodeId: "a" }, ACTOR)],
    ["resume", "STOPPED", (runs, runId) => runs.resume(runId, ACTOR)],
    ["complete", "FAILED", (runs, runId) => runs.complete(runId, byHand("a"), ACTOR)],
  ])("refuses %s and nothing changes; it works when the chain has room", async (_verb, how, revive) => {
    const process = await chains.open();
    const { runId, release } = await fill(process, how);
    const before = [await look(runId), await traces(runId)];
    await expect(revive(process.runs, runId)).rejects.toMatchObject({
      code: "CHAIN_FULL",
      status: 409,
      message: "Chain `narrow` has 1 of at most 1 active runs. Wait until one has ended, or stop one.",
    });
    expect([await look(runId), await traces(runId)]).toEqual(before);
    expect((await release()).status).toBe("SUCCESS");
    await revive(process.runs, runId);
    expect((await ended(runId)).status).toBe("SUCCESS");
  });

  test("can be completed if that leaves no node to run", async () => {
    const process = await chains.open();
    const { runId, release } = await fill(process, "FAILED", [{ id: "a" }]);
    await process.runs.complete(runId, byHand("a"), ACTOR);
    expect((await look(runId)).status).toBe("SUCCESS");
    await release();
  });

  test("is revived anyway if it is a child run", async () => {
    const process = await chains.open();
    const sub = { id: "sub", type: "chain", cfg: { name: "narrow" } };
    const chainId = await define(process, NODES, { name: "narrow", maxActiveRuns: 1 });
    acts.set("a", () => Promise.reject(new Error("no")));
    const { runId } = await process.runs.start(await define(process, [sub]), BY);
    expect((await ended(runId)).status).toBe("FAILED");
    const { act, begun } = held();
    acts.set("a", act);
    await process.runs.start(chainId, BY);
    await begun();
    acts.delete("a");
    await process.runs.retry(runId, again, ACTOR);
    expect(await ended(runId)).toMatchObject({ status: "SUCCESS", nodes: { sub: { attempt: 2 } } });
    expect(await childrenOf(runId)).toHaveLength(1);
  });
});
