/** Waits of nodes for a model that runs already: the node stops, times out or loses its worker, or the model waits for it. */
import { beforeEach, describe, expect, test } from "vitest";
import {
  ACTOR,
  type ArrivalProcess,
  arrival,
  held as heldModel,
  kpiOf,
  useArrivalProcesses,
} from "../../../test/arrivals-process.ts";
import { type ChainProcess, held, useChainProcesses } from "../../../test/chain-process.ts";
import { useDatabase } from "../../../test/database.ts";
import { signal, until } from "../../../test/until.ts";
import { modelType } from "../node-types.ts";

const database = useDatabase();
const chains = useChainProcesses(database);
const { acts, define, ended, open, tasks } = useArrivalProcesses(database);
const DAY = "20250101";

let chainProcess: ChainProcess;
let process: ArrivalProcess;
beforeEach(async () => {
  chainProcess = await chains.open();
  process = await open({ chains: chainProcess.called });
  chainProcess.addTypes([modelType(process)]);
});

const runsModel = (modelId: string, fields: object = {}) => ({
  id: "run",
  type: "model",
  cfg: { modelId, force: true },
  ...fields,
});
async function start(fields: object = {}): Promise<string> {
  const chainId = await chains.define(chainProcess, [runsModel("m", fields)]);
  return (await chainProcess.runs.start(chainId, { opTime: DAY, by: "test" })).runId;
}
async function runningModel() {
  const work = heldModel();
  acts.set("m", work.act);
  await define(process, "m", ["a"]);
  await process.announce(arrival("a", DAY));
  await work.begun();
  return work;
}
const waits = () => database.query("select generation from arrivals.node_wait");
const noWaits = () => until(async () => (await waits()).length === 0, "the waits to be deleted");
/** Ends the time-out of a parked node, or the delay of one that is tried again. */
async function due(state: "parked" | "delayed"): Promise<void> {
  await database.query("update chains.live_node set due_at = now() where state = $1", [state]);
  await chainProcess.timers.runOnce();
}
const parked = (runId: string) =>
  until(
    async () =>
      (await database.query("select from chains.live_node where state = 'parked' and run_id = $1", [runId])).length > 0,
    "the node to be parked",
  );

describe("a node that waits until a model can run once more", () => {
  test("does not run it if its run was stopped meanwhile", async () => {
    const work = await runningModel();
    const runId = await start();
    await parked(runId);
    await chainProcess.runs.stop(runId, ACTOR, { reason: "enough" });
    expect((await chains.ended(runId)).status).toBe("STOPPED");
    work.release();
    await noWaits();
    expect(await tasks()).toMatchObject([{ status: "SUCCESS" }]);
  });

  test("does not run it if each of its attempts took too long", async () => {
    const work = await runningModel();
    const runId = await start({ timeoutMs: 60_000, retry: { maxAttempts: 2, backoffMs: 1 } });
    for (let attempt = 1; attempt <= 2; attempt += 1) {
      await parked(runId);
      await due("parked");
    }
    expect((await chains.ended(runId)).reason).toMatch(/took longer than its 60000 ms/);
    expect(await waits()).toHaveLength(2);
    work.release();
    await noWaits();
    expect(await tasks()).toMatchObject([{ status: "SUCCESS" }]);
  });

  test("runs it once, however many of its attempts took too long before", async () => {
    const work = await runningModel();
    const runId = await start({ timeoutMs: 60_000, retry: { maxAttempts: 2, backoffMs: 60_000 } });
    await parked(runId);
    await due("parked");
    expect((await chains.look(runId)).nodes["run"]?.status).toBe("RETRYING");
    work.release();
    await noWaits();
    await due("delayed");
    expect((await chains.ended(runId)).status).toBe("SUCCESS");
    expect(await tasks()).toHaveLength(2);
  });
});

test("a node whose worker is lost before it parks finds the run that it has requested, although that has ended", async () => {
  const work = heldModel();
  acts.set("m", work.act);
  await define(process, "m", ["z"]);
  await chainProcess.worker.stop();
  const [begun, never] = [signal(), signal()];
  const victim = await chains.open({ roles: ["worker"], slots: 1 });
  const { nodeWaits } = process;
  victim.addTypes([
    modelType({
      ...process,
      nodeWaits: {
        ...nodeWaits,
        async begin(...request) {
          const waitId = await nodeWaits.begin(...request);
          begun.resolve();
          await never.promise;
          return waitId;
        },
      },
    }),
  ]);
  const runId = await start();
  await begun.promise;
  await work.begun();
  await victim.expireSession();
  await chainProcess.timers.runOnce();
  expect((await chains.look(runId)).nodes["run"]).toMatchObject({ status: "RETRYING", error: "its worker was lost" });
  work.release();
  await ended("SUCCESS");
  await process.nodeWaits.settle();

  const next = await chains.open({ roles: ["scheduler"] });
  next.addTypes([modelType(process)]);
  next.worker.start();
  expect((await chains.ended(runId)).nodes["run"]).toMatchObject({ status: "SUCCESS", attempt: 2 });
  expect(await tasks()).toHaveLength(1);
  await noWaits();
  never.resolve();
});

describe("two models whose chains run each other", () => {
  test.each(["together", "one after the other"])("fail at once if they start %s", async (how) => {
    const gates = { x: held(), y: held() };
    for (const modelId of ["x", "y"]) await define(process, modelId, ["z"]); // Their chains name them.
    for (const [modelId, other] of [
      ["x", "y"],
      ["y", "x"],
    ] as const) {
      const first = { id: `first_of_${modelId}` };
      chains.acts.set(first.id, gates[modelId].act);
      const nodes = [first, runsModel(other, { dependsOn: [first.id] })];
      await chains.define(chainProcess, nodes, { name: `chain of ${modelId}` });
      await define(process, modelId, ["a"], { chain: `chain of ${modelId}`, kpis: [] });
    }
    await process.announce(arrival("a", DAY));
    await Promise.all([gates.x.begun(), gates.y.begun()]);
    gates.x.release();
    if (how !== "together") {
      const [xRun] = (await tasks()).filter(({ model }) => model === "x");
      await parked(xRun?.chainRunId ?? "");
    }
    gates.y.release();
    // The one that waits for the other's end runs it once more, which fails in the same way.
    await until(async () => (await tasks()).every(({ status }) => status !== "RUNNING"), "all runs to end");
    const failed = await ended("FAILED", 2);
    expect(new Set(failed.map(({ model }) => model))).toEqual(new Set(["x", "y"]));
    expect(failed[0]?.message).toMatch(/waits for this run for 20250101, so it cannot run inside it/);
    await noWaits();
  });
});

test("a node waits for the last attempt of its model's run", async () => {
  let attempt = 0;
  acts.set("m", ({ modelId }) => {
    attempt += 1;
    if (attempt < 3) throw new Error("the table is locked");
    return [{ kpi_id: kpiOf(modelId), value: 1 }];
  });
  await define(process, "m", ["a"], { retry: { maxAttempts: 3, backoffMs: 50 } });
  const runId = await start();
  expect((await chains.ended(runId)).nodes["run"]).toMatchObject({ status: "SUCCESS", attempt: 1 });
  await noWaits();
  expect((await tasks()).map(({ status }) => status)).toEqual(["FAILED", "FAILED", "SUCCESS"]);
});
