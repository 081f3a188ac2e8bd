/** Runs that another module starts by chain name: one per key, and the caller always learns of their end. */
import { randomUUID } from "node:crypto";
import { describe, expect, test } from "vitest";
import { ACTOR, type ChainProcess, held, useChainProcesses } from "../../../test/chain-process.ts";
import { useDatabase } from "../../../test/database.ts";

const database = useDatabase();
const chains = useChainProcesses(database);
const { acts, begun, define, ended, look } = chains;
const NEVER = new AbortController().signal;
const request = (key: string) => ({ opTime: "20250101", params: { modelId: "m" }, key, startedBy: "model m" });

async function defineNamed(process: ChainProcess, nodes: readonly object[]): Promise<string> {
  const name = `called ${randomUUID()}`;
  await define(process, nodes, { name });
  return name;
}

describe("a called run", () => {
  test("is one run per key, for any number of callers and calls", async () => {
    const [one, other] = [await chains.open(), await chains.open()];
    const name = await defineNamed(one, [{ id: "n" }]);
    const asked = [one, other, one, other].map(({ called }) => called.start(name, request("k1")));
    expect(new Set(await Promise.all(asked)).size).toBe(1);
    const [runId] = await Promise.all(asked);
    expect(await one.called.start(name, request("k2"))).not.toBe(runId);
    await ended(runId as string);
    expect(await other.called.start(name, request("k1"))).toBe(runId); // Also after it has ended.
  });

  test("has its opTime and params", async () => {
    const process = await chains.open();
    acts.set("n", ({ opTime, params }) => ({ artifact: { opTime, params } }));
    const runId = await process.called.start(await defineNamed(process, [{ id: "n" }]), request("k"));
    const { artifacts } = await process.called.ended(runId, NEVER);
    expect(artifacts).toEqual([{ opTime: "20250101", params: { modelId: "m" } }]);
  });

  test("returns the artifacts of its last nodes only", async () => {
    const process = await chains.open();
    for (const id of ["first", "left", "right"]) acts.set(id, () => ({ artifact: id }));
    const name = await defineNamed(process, [
      { id: "first" },
      { id: "left", dependsOn: ["first"] },
      { id: "right", dependsOn: ["first"] },
    ]);
    const end = await process.called.ended(await process.called.start(name, request("k")), NEVER);
    expect(end).toEqual({ status: "SUCCESS", reason: null, artifacts: ["left", "right"] });
  });

  test("returns the reason of a failure", async () => {
    const process = await chains.open();
    acts.set("n", () => Promise.reject(new Error("the disk is full")));
    const runId = await process.called.start(await defineNamed(process, [{ id: "n" }]), request("k"));
    const end = await process.called.ended(runId, NEVER);
    expect(end).toMatchObject({ status: "FAILED", reason: expect.stringContaining("n") });
  });

  test("that was deleted is not waited for", async () => {
    const process = await chains.open({ roles: [] });
    await expect(process.called.ended(randomUUID(), NEVER)).rejects.toThrow("no longer exists");
  });

  test("is reported to a process that ran none of it", async () => {
    const [works, waits] = [await chains.open(), await chains.open({ roles: [] })];
    const gate = held();
    acts.set("n", gate.act);
    const runId = await waits.called.start(await defineNamed(works, [{ id: "n" }]), request("k"));
    const end = waits.called.ended(runId, NEVER);
    await gate.begun();
    gate.release();
    expect(await end).toMatchObject({ status: "SUCCESS" });
  });

  test("is reported although no hint was sent", async () => {
    const process = await chains.open({ roles: [] });
    const runId = await process.called.start(await defineNamed(process, [{ id: "n" }]), request("k"));
    const end = process.called.ended(runId, NEVER);
    await database.query("update chains.job_run set status = 'STOPPED', ended_at = now() where run_id = $1", [runId]);
    await database.query("update chains.job_run_node set status = 'STOPPED', ended_at = now() where run_id = $1", [
      runId,
    ]);
    expect(await end).toMatchObject({ status: "STOPPED" });
  });

  test("continues when nobody waits for it, and stops on request", async () => {
    const process = await chains.open();
    const gate = held();
    acts.set("n", gate.act);
    const runId = await process.called.start(await defineNamed(process, [{ id: "n" }]), request("k"));
    await gate.begun();
    const enough = new AbortController();
    const end = process.called.ended(runId, enough.signal);
    enough.abort(new Error("waited long enough"));
    await expect(end).rejects.toThrow("waited long enough");
    expect((await look(runId)).status).toBe("RUNNING");
    await process.called.stop(runId, "it took too long");
    expect(await ended(runId)).toMatchObject({
      status: "STOPPED",
      reason: expect.stringContaining("it took too long"),
    });
    expect(begun).toHaveLength(1);
  });

  test("needs an enabled chain of that name", async () => {
    const process = await chains.open();
    await expect(process.called.start("unknown", request("k"))).rejects.toMatchObject({ code: "CHAIN_NOT_FOUND" });
    const name = `called ${randomUUID()}`;
    const chainId = await define(process, [{ id: "n" }], { name });
    await process.definitions.setEnabled(chainId, false, ACTOR);
    await expect(process.called.start(name, request("k"))).rejects.toMatchObject({ code: "CHAIN_DISABLED" });
    expect(begun).toEqual([]);
  });
});
