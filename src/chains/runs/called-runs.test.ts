/** Runs that another module starts by the name of their chain: one for each key, and their end is heard of for sure. */
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
  test("is one run for each key, whoever asks and however often", async () => {
    const [one, other] = [await chains.open(), await chains.open()];
    const name = await defineNamed(one, [{ id: "n" }]);
    const asked = [one, other, one, other].map(({ called }) => called.start(name, request("k1")));
    expect(new Set(await Promise.all(asked)).size).toBe(1);
    const [runId] = await Promise.all(asked);
    expect(await one.called.start(name, request("k2"))).not.toBe(runId);
    await ended(runId as string);
    expect(await other.called.start(name, request("k1"))).toBe(runId); // Also when it has ended.
  });

  test("knows its opTime and parameters", async () => {
    const process = await chains.open();
    acts.set("n", ({ opTime, params }) => ({ artifact: { opTime, params } }));
    const runId = await process.called.start(await defineNamed(process, [{ id: "n" }]), request("k"));
    const { artifacts } = await process.called.ended(runId, NEVER);
    expect(artifacts).toEqual([{ opTime: "20250101", params: { modelId: "m" } }]);
  });

  test("brings what its last nodes brought, and nothing of those before", async () => {
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

  test("says why it failed", async () => {
    const process = await chains.open();
    acts.set("n", () => Promise.reject(new Error("the disk is full")));
    const runId = await process.called.start(await defineNamed(process, [{ id: "n" }]), request("k"));
    const end = await process.called.ended(runId, NEVER);
    expect(end).toMatchObject({ status: "FAILED", reason: expect.stringContaining("n") });
  });

  test("is heard of by a process that did none of it", async () => {
    const [works, waits] = [await chains.open(), await chains.open({ roles: [] })];
    const gate = held();
    acts.set("n", gate.act);
    const runId = await waits.called.start(await defineNamed(works, [{ id: "n" }]), request("k"));
    const told = waits.called.ended(runId, NEVER);
    await gate.begun();
    gate.release();
    expect(await told).toMatchObject({ status: "SUCCESS" });
  });

  test("is heard of when its end was told to nobody", async () => {
    const process = await chains.open({ roles: [] });
    const runId = await process.called.start(await defineNamed(process, [{ id: "n" }]), request("k"));
    const told = process.called.ended(runId, NEVER);
    await database.query("update chains.job_run set status = 'STOPPED', ended_at = now() where run_id = $1", [runId]);
    await database.query("update chains.job_run_node set status = 'STOPPED', ended_at = now() where run_id = $1", [
      runId,
    ]);
    expect(await told).toMatchObject({ status: "STOPPED" });
  });

  test("goes on when nobody waits any more, and stops when it is told to", async () => {
    const process = await chains.open();
    const gate = held();
    acts.set("n", gate.act);
    const runId = await process.called.start(await defineNamed(process, [{ id: "n" }]), request("k"));
    await gate.begun();
    const enough = new AbortController();
    const told = process.called.ended(runId, enough.signal);
    enough.abort(new Error("no more patience"));
    await expect(told).rejects.toThrow("no more patience");
    expect((await look(runId)).status).toBe("RUNNING");
    await process.called.stop(runId, "it took too long");
    expect(await ended(runId)).toMatchObject({
      status: "STOPPED",
      reason: expect.stringContaining("it took too long"),
    });
    expect(begun).toHaveLength(1);
  });

  test("needs a chain of that name that is not disabled", async () => {
    const process = await chains.open();
    await expect(process.called.start("nobody", request("k"))).rejects.toMatchObject({ code: "CHAIN_NOT_FOUND" });
    const name = `called ${randomUUID()}`;
    const chainId = await define(process, [{ id: "n" }], { name });
    await process.definitions.setEnabled(chainId, false, ACTOR);
    await expect(process.called.start(name, request("k"))).rejects.toMatchObject({ code: "CHAIN_DISABLED" });
    expect(begun).toEqual([]);
  });
});
