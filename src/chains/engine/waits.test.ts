/** Nodes that wait for tables: each arrival counts once, whenever and however often it is reported. */
import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, test } from "vitest";
import { ACTOR, type ChainProcess, held, useChainProcesses } from "../../../test/chain-process.ts";
import { useDatabase } from "../../../test/database.ts";
import { until } from "../../../test/until.ts";

const database = useDatabase();
const chains = useChainProcesses(database);
const { acts, arrivals, begun, begunNodes, define, ended, look } = chains;
const DAY = "20250101";
const REQUEST = { by: "test", opTime: DAY };
const again = { downstream: false, dryRun: false, reason: null };

async function startRun(process: ChainProcess, nodes: readonly object[], request: object = REQUEST): Promise<string> {
  const { runId } = await process.runs.start(await define(process, nodes), { by: "test", ...request });
  await until(async () => (await look(runId)).status !== "PENDING", "the run to begin");
  return runId;
}

describe("a node with waitsFor", () => {
  test("waits until all its tables have arrived for its opTime", async () => {
    const process = await chains.open();
    const runId = await startRun(process, [{ id: "n0", waitsFor: ["A", "B"] }, { id: "free" }]);
    expect(await process.arrived([{ table: "A", opTime: "20250102" }])).toBe(0);
    expect(await process.arrived([{ table: "C", opTime: DAY }])).toBe(0);
    expect(await process.arrived([{ table: "A", opTime: DAY }])).toBe(1);
    await until(async () => (await look(runId)).nodes["free"]?.status === "SUCCESS", "the other node");
    expect((await look(runId)).nodes["n0"]?.status).toBe("PENDING");
    expect(await process.arrived([{ table: "B", opTime: DAY }])).toBe(1);
    expect((await ended(runId)).status).toBe("SUCCESS");
  });

  test("counts an arrival once that is reported twice, or by two processes at once", async () => {
    const processes = [await chains.open(), await chains.open()] as const;
    const [process] = processes;
    const runId = await startRun(process, [{ id: "n0", waitsFor: ["A", "B"] }]);
    const report = () =>
      Promise.all([...processes, ...processes].map(({ arrived }) => arrived([{ table: "A", opTime: DAY }])));
    expect((await report()).reduce((sum, count) => sum + count, 0)).toBe(1);
    expect((await report()).reduce((sum, count) => sum + count, 0)).toBe(0);
    expect((await look(runId)).nodes["n0"]?.status).toBe("PENDING");
    await process.arrived([{ table: "B", opTime: DAY }]);
    expect((await ended(runId)).status).toBe("SUCCESS");
    expect(begun).toHaveLength(1);
  });

  test("counts all of its tables when they arrive at the same time", async () => {
    const process = await chains.open();
    const tables = Array.from({ length: 20 }, (_, index) => `T${index}`);
    const runId = await startRun(process, [
      { id: "n0", waitsFor: tables },
      { id: "n1", waitsFor: tables },
    ]);
    const counts = await Promise.all(tables.map((table) => process.arrived([{ table: table, opTime: DAY }])));
    expect(counts).toEqual(tables.map(() => 2));
    expect((await ended(runId)).status).toBe("SUCCESS");
  });

  test("waits for its parents as well", async () => {
    const process = await chains.open();
    const parent = held();
    acts.set("parent", parent.act);
    const runId = await startRun(process, [{ id: "parent" }, { id: "n0", dependsOn: ["parent"], waitsFor: ["A"] }]);
    await process.arrived([{ table: "A", opTime: DAY }]);
    await parent.begun();
    expect((await look(runId)).nodes["n0"]?.status).toBe("PENDING");
    parent.release();
    expect((await ended(runId)).status).toBe("SUCCESS");
  });

  test("does not wait for what arrived before the run", async () => {
    const process = await chains.open();
    arrivals.add(`A ${DAY}`);
    const runId = await startRun(process, [{ id: "n0", waitsFor: ["A"] }]);
    expect((await ended(runId)).status).toBe("SUCCESS");
  });

  test("sees an arrival that is reported between the read of the arrivals and the insert of its wait", async () => {
    const reporter = await chains.open({ roles: [] });
    let reported: Promise<number> | undefined;
    const process = await chains.open({
      async meanwhile() {
        if (reported) return; // The timers read the arrivals as well.
        reported = reporter.arrived([{ table: "A", opTime: DAY }]);
        await Promise.race([reported, sleep(200)]); // It must block on our lock, which only the lack of a result shows.
      },
    });
    const runId = await startRun(process, [{ id: "n0", waitsFor: ["A"] }]);
    expect(await reported).toBe(1);
    expect((await ended(runId)).status).toBe("SUCCESS");
  });

  test("needs an opTime", async () => {
    const process = await chains.open();
    const chainId = await define(process, [{ id: "n0", waitsFor: ["A"] }]);
    await expect(process.runs.start(chainId, { by: "test" })).rejects.toMatchObject({ code: "OP_TIME_NEEDED" });
  });

  test("does not affect runs of another opTime", async () => {
    const process = await chains.open();
    const nodes = [{ id: "n0", waitsFor: ["A"] }];
    const monday = await startRun(process, nodes);
    const tuesday = await startRun(process, nodes, { opTime: "20250102" });
    expect(await process.arrived([{ table: "A", opTime: DAY }])).toBe(1);
    expect((await ended(monday)).status).toBe("SUCCESS");
    expect((await look(tuesday)).nodes["n0"]?.status).toBe("PENDING");
  });
});

describe("a retry", () => {
  test("reads the arrivals again for a node that failed", async () => {
    const process = await chains.open();
    acts.set("n0", () => Promise.reject(new Error("no")));
    const runId = await startRun(process, [{ id: "n0", waitsFor: ["A"] }]);
    await process.arrived([{ table: "A", opTime: DAY }]);
    expect((await ended(runId)).status).toBe("FAILED");
    acts.clear();
    await process.runs.retry(runId, again, ACTOR); // In this test A has not arrived by now, so it must arrive again.
    await process.timers.runOnce();
    expect((await look(runId)).nodes["n0"]?.status).toBe("RETRYING");
    expect(await process.arrived([{ table: "A", opTime: DAY }])).toBe(1);
    expect(await ended(runId)).toMatchObject({ status: "SUCCESS", nodes: { n0: { attempt: 2 } } });
  });

  test("does not wait for tables that have arrived", async () => {
    const process = await chains.open();
    acts.set("n0", () => Promise.reject(new Error("no")));
    const runId = await startRun(process, [{ id: "n0", waitsFor: ["A"] }]);
    arrivals.add(`A ${DAY}`);
    await process.arrived([{ table: "A", opTime: DAY }]);
    await ended(runId);
    acts.clear();
    await process.runs.retry(runId, again, ACTOR);
    expect((await ended(runId)).status).toBe("SUCCESS");
  });

  test("resets a node that was skipped while it waited for a table", async () => {
    const process = await chains.open();
    const sibling = held();
    acts.set("sibling", sibling.act);
    acts.set("parent", () => Promise.reject(new Error("no")));
    const runId = await startRun(process, [
      { id: "sibling" },
      { id: "parent" },
      { id: "n0", dependsOn: ["parent"], waitsFor: ["A"] },
    ]);
    await until(async () => (await look(runId)).nodes["n0"]?.status === "SKIPPED", "the node to be skipped");
    acts.delete("parent");
    await process.runs.retry(runId, { ...again, nodeId: "parent" }, ACTOR);
    await until(async () => (await look(runId)).nodes["parent"]?.status === "SUCCESS", "the parent");
    expect((await look(runId)).nodes["n0"]?.status).toBe("PENDING");
    expect(await process.arrived([{ table: "A", opTime: DAY }])).toBe(1);
    await until(() => begunNodes().includes("n0"), "the node to run");
    sibling.release();
    expect((await ended(runId)).status).toBe("SUCCESS");
  });

  test.each([
    ["has arrived without a report", true],
    ["was reported", false],
  ])("of another node does not change the count of a node whose table %s", async (_what, here) => {
    const process = await chains.open();
    const parent = held();
    acts.set("parent", parent.act);
    acts.set("other", () => Promise.reject(new Error("no")));
    const runId = await startRun(process, [
      { id: "parent" },
      { id: "other" },
      { id: "n0", dependsOn: ["parent"], waitsFor: ["A"] },
    ]);
    await until(async () => (await look(runId)).nodes["other"]?.status === "FAILED", "the other to fail");
    acts.delete("other");
    if (here) arrivals.add(`A ${DAY}`);
    else await process.arrived([{ table: "A", opTime: DAY }]);
    await process.runs.retry(runId, { ...again, nodeId: "other" }, ACTOR);
    await process.arrived([{ table: "A", opTime: DAY }]);
    parent.release();
    expect((await ended(runId)).status).toBe("SUCCESS");
    expect(begunNodes().filter((id) => id === "n0")).toHaveLength(1);
  });

  test("after a stop reads again which tables have arrived", async () => {
    const process = await chains.open();
    const runId = await startRun(process, [{ id: "n0", waitsFor: ["A", "B"] }]);
    await process.runs.stop(runId, ACTOR);
    await ended(runId);
    expect(await process.arrived([{ table: "A", opTime: DAY }])).toBe(0);
    arrivals.add(`A ${DAY}`);
    await process.runs.resume(runId, ACTOR);
    expect(await process.arrived([{ table: "A", opTime: DAY }])).toBe(0);
    expect(await process.arrived([{ table: "B", opTime: DAY }])).toBe(1);
    expect((await ended(runId)).status).toBe("SUCCESS");
  });
});
