/** Runs that another module starts by chain name in its own transaction, and is told of in the one that ends them. */
import { randomUUID } from "node:crypto";
import { describe, expect, test } from "vitest";
import { ACTOR, type ChainProcess, held, useChainProcesses } from "../../../test/chain-process.ts";
import { useDatabase } from "../../../test/database.ts";
import { until } from "../../../test/until.ts";

const database = useDatabase();
const chains = useChainProcesses(database);
const { acts, begun, define, ended, look } = chains;
const REQUEST = { opTime: "20250101", params: { modelId: "m" }, startedBy: "model m" };
const BYTES_MAX = 17_179_869_184; // The largest `arrivals.resultBytesMax`.

async function defineNamed(process: ChainProcess, nodes: readonly object[]): Promise<string> {
  const name = `called ${randomUUID()}`;
  await define(process, nodes, { name });
  return name;
}
const start = ({ called }: ChainProcess, name: string) => database.db.tx((tx) => called.start(tx, name, REQUEST));
/** Records what the caller is told, in the order of the commits. */
function listen({ called }: ChainProcess): string[] {
  const told: string[] = [];
  called.onChange(async (tx, changed) => {
    tx.afterCommit(() => told.push(...changed.map(({ status }) => status)));
    return new Set();
  });
  return told;
}

describe("a called run", () => {
  test("is started with the transaction of its caller, or not at all", async () => {
    const process = await chains.open();
    const name = await defineNamed(process, [{ id: "n" }]);
    const failed = database.db.tx(async (tx) => {
      await process.called.start(tx, name, REQUEST);
      throw new Error("the caller has changed its mind");
    });
    await expect(failed).rejects.toThrow("changed its mind");
    expect(await database.query("select from chains.job_run")).toEqual([]);
    await ended(await start(process, name));
  });

  test("has its opTime and params", async () => {
    const process = await chains.open();
    acts.set("n", ({ opTime, params }) => ({ artifact: { opTime, params } }));
    const runId = await start(process, await defineNamed(process, [{ id: "n" }]));
    await ended(runId);
    const end = await process.called.outcome(runId, BYTES_MAX);
    expect(end?.artifacts).toEqual([{ opTime: "20250101", params: { modelId: "m" } }]);
  });

  test("returns the artifacts of its last nodes only", async () => {
    const process = await chains.open();
    for (const id of ["first", "left", "right"]) acts.set(id, () => ({ artifact: id }));
    const name = await defineNamed(process, [
      { id: "first" },
      { id: "left", dependsOn: ["first"] },
      { id: "right", dependsOn: ["first"] },
    ]);
    const runId = await start(process, name);
    await ended(runId);
    expect(await process.called.outcome(runId, BYTES_MAX)).toEqual({
      status: "SUCCESS",
      reason: null,
      artifacts: ["left", "right"],
      artifactBytes: 13,
    });
    expect(await process.called.outcome(runId, 12)).toMatchObject({ artifacts: null, artifactBytes: 13 });
  });

  test("returns the reason of a failure, or that it no longer exists", async () => {
    const process = await chains.open();
    acts.set("n", () => Promise.reject(new Error("the disk is full")));
    const runId = await start(process, await defineNamed(process, [{ id: "n" }]));
    await ended(runId);
    const end = await process.called.outcome(runId, BYTES_MAX);
    expect(end).toMatchObject({ status: "FAILED", reason: expect.stringContaining("n") });
    expect(await process.called.outcome(randomUUID(), BYTES_MAX)).toMatchObject({ reason: "it no longer exists" });
  });

  test("is under way until it has ended, and stops on request", async () => {
    const process = await chains.open();
    const gate = held();
    acts.set("n", gate.act);
    const runId = await start(process, await defineNamed(process, [{ id: "n" }]));
    await gate.begun();
    expect(await process.called.outcome(runId, BYTES_MAX)).toBeUndefined();
    expect(await process.called.underWay([runId, randomUUID()])).toEqual(new Set([runId]));
    expect((await look(runId)).status).toBe("RUNNING");
    await process.called.stop(runId, "it took too long");
    expect(await ended(runId)).toMatchObject({
      status: "STOPPED",
      reason: expect.stringContaining("it took too long"),
    });
    expect(await process.called.underWay([runId])).toEqual(new Set());
    expect(begun).toHaveLength(1);
  });

  test("tells its caller that it failed, goes on, and succeeds", async () => {
    const process = await chains.open();
    const told = listen(process);
    acts.set("n", () => Promise.reject(new Error("not yet")));
    const runId = await start(process, await defineNamed(process, [{ id: "n" }]));
    await ended(runId);
    acts.clear();
    await process.runs.retry(runId, { downstream: false, dryRun: false, reason: null }, ACTOR);
    await until(() => told.length === 3, "the caller to be told three times");
    expect(told).toEqual(["FAILED", "RUNNING", "SUCCESS"]);
  });

  test("is the only kind of run that a caller is told of", async () => {
    const process = await chains.open();
    const told = listen(process);
    const { runId } = await process.runs.start(await define(process, [{ id: "n" }]), { by: "test" });
    await ended(runId);
    expect(told).toEqual([]);
  });

  test("needs an enabled chain of that name", async () => {
    const process = await chains.open();
    await expect(start(process, "unknown")).rejects.toMatchObject({ code: "CHAIN_NOT_FOUND" });
    const name = `called ${randomUUID()}`;
    const chainId = await define(process, [{ id: "n" }], { name });
    await process.definitions.setEnabled(chainId, false, ACTOR);
    await expect(start(process, name)).rejects.toMatchObject({ code: "CHAIN_DISABLED" });
    expect(begun).toEqual([]);
  });
});
