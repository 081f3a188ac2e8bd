/** Models that run chains whose nodes run models: who waits holds no slot, so any depth ends with one slot. */
import { beforeEach, describe, expect, test } from "vitest";
import { ACTOR, type ArrivalProcess, arrival, useArrivalProcesses } from "../../../test/arrivals-process.ts";
import { type ChainProcess, held, useChainProcesses } from "../../../test/chain-process.ts";
import { useDatabase } from "../../../test/database.ts";
import { signal, until } from "../../../test/until.ts";
import { modelType } from "../node-types.ts";

const database = useDatabase();
const chains = useChainProcesses(database);
const { define, ended, open, state, tasks, emitted } = useArrivalProcesses(database);
const DAY = "20250101";

let chainProcess: ChainProcess;
let process: ArrivalProcess;
beforeEach(async () => {
  chainProcess = await chains.open({ slots: 1 });
  process = await open({ chains: chainProcess.called, slots: 1 });
  chainProcess.addTypes([modelType(process)]);
});

const runsModel = (modelId: string) => [{ id: "run", type: "model", cfg: { modelId, force: true } }];
/** A model without indicators that runs a chain whose only node runs another model. */
async function defineOuter(modelId: string, inner: string, table = "a"): Promise<void> {
  await chains.define(chainProcess, runsModel(inner), { name: `chain of ${modelId}` });
  await define(process, modelId, [table], { chain: `chain of ${modelId}`, kpis: [] });
}
const statuses = async () => (await tasks()).map(({ model, status }) => `${model} ${status}`).sort();

describe("with one slot for models and one for nodes", () => {
  test("models nested six deep finish", async () => {
    await define(process, "m6", ["z"]);
    for (const depth of [5, 4, 3, 2, 1]) await defineOuter(`m${depth}`, `m${depth + 1}`, depth === 1 ? "a" : "z");
    await process.announce(arrival("a", DAY));
    await ended("SUCCESS", 6);
  });

  test("eight models of chains that each run a model finish", async () => {
    for (const no of [1, 2, 3, 4, 5, 6, 7, 8]) {
      await define(process, `inner${no}`, ["z"]);
      await defineOuter(`outer${no}`, `inner${no}`);
    }
    await process.announce(arrival("a", DAY));
    await ended("SUCCESS", 16);
  });

  test("another model runs while a chain is under way", async () => {
    const work = held();
    chains.acts.set("slow", work.act);
    await chains.define(chainProcess, [{ id: "slow" }], { name: "slow chain" });
    await define(process, "m", ["a"], { chain: "slow chain", kpis: [] });
    await define(process, "other", ["b"]);
    await process.announce(arrival("a", DAY));
    await work.begun();
    await process.announce(arrival("b", DAY));
    await ended("SUCCESS");
    expect(await statuses()).toEqual(["m RUNNING", "other SUCCESS"]);
    work.release();
    await ended("SUCCESS", 2);
  });

  test("two nodes that run the same model share no run, and each gets its own", async () => {
    await define(process, "m", ["z"]);
    const run = async () => {
      const chainId = await chains.define(chainProcess, runsModel("m"));
      return (await chainProcess.runs.start(chainId, { opTime: DAY, by: "test" })).runId;
    };
    const begun = performance.now();
    for (const runId of [await run(), await run(), await run()]) {
      expect((await chains.ended(runId)).nodes["run"]).toMatchObject({
        status: "SUCCESS",
        artifact: { storageCount: 1 },
      });
    }
    // A claim may skip the model while a second request locks it, and must not wait for the timers, which look every 20 s.
    expect(performance.now() - begun).toBeLessThan(15_000);
    await until(
      async () => (await database.query("select from arrivals.node_wait")).length === 0,
      "the waits to be gone",
    );
  });
});

describe("a model that a chain of its own would run", () => {
  test.each([["outer"], ["between"]])("fails at once instead of waiting for itself (through %s)", async (through) => {
    for (const modelId of ["outer", "between"]) await define(process, modelId, ["z"]); // Their chains name them.
    await defineOuter("outer", through === "outer" ? "outer" : "between");
    await defineOuter("between", "outer", "z");
    await process.announce(arrival("a", DAY));
    const failed = await ended("FAILED", through === "outer" ? 1 : 2);
    expect(failed[0]?.message).toMatch(/Model `outer` waits for this run for 20250101, so it cannot run inside it/);
  });
});

describe("a node that is parked for a model", () => {
  const start = async () => {
    const chainId = await chains.define(chainProcess, runsModel("m"));
    return (await chainProcess.runs.start(chainId, { opTime: DAY, by: "test" })).runId;
  };
  const heldModel = async () => {
    const work = held();
    chains.acts.set("slow", work.act);
    await chains.define(chainProcess, [{ id: "slow" }], { name: "slow chain" });
    await define(process, "m", ["z"], { chain: "slow chain", kpis: [] });
    return work;
  };

  test("stops at once with its run, and the model goes on", async () => {
    const work = await heldModel();
    const runId = await start();
    await work.begun();
    await chainProcess.runs.stop(runId, ACTOR, { reason: "enough" });
    expect((await chains.ended(runId)).status).toBe("STOPPED");
    expect(await state("m", DAY)).toBe("parked");
    work.release();
    await ended("SUCCESS");
    await until(
      async () => (await database.query("select from arrivals.node_wait")).length === 0,
      "the wait to be deleted",
    );
  });

  test("fails when the model is deleted", async () => {
    const work = await heldModel();
    const runId = await start();
    await work.begun();
    await process.models.remove("m", ACTOR);
    const { status, reason } = await chains.ended(runId);
    expect({ status, reason }).toMatchObject({ status: "FAILED", reason: expect.stringMatching(/Model `m` failed/) });
    work.release();
  });

  test("ends by the timers if the end of the model was not reported to it", async () => {
    await define(process, "m", ["z"]);
    const { endWait } = chainProcess.called;
    const lost = signal();
    chainProcess.called.endWait = async () => {
      lost.resolve();
      throw new Error("the process is gone");
    };
    const runId = await start();
    await lost.promise;
    chainProcess.called.endWait = endWait;
    await process.timers.runOnce();
    expect((await chains.ended(runId)).status).toBe("SUCCESS");
  });

  test("fails with the model, which then sends no event of its own", async () => {
    chains.acts.set("slow", () => Promise.reject(new Error("the source is gone")));
    await chains.define(chainProcess, [{ id: "slow" }], { name: "slow chain" });
    await define(process, "m", ["z"], { chain: "slow chain", kpis: [] });
    const runId = await start();
    expect((await chains.ended(runId)).reason).toMatch(/Model `m` failed for 20250101: .*the source is gone/);
    expect(await emitted()).toEqual([]);
    expect(await statuses()).toEqual(["m FAILED"]);
    await until(() => process.logged.some(({ message }) => message === "a model failed"), "its line in the log");
  });
});
