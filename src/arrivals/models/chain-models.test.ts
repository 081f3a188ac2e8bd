/** Models that run a chain: its last nodes return the values, and the chain runs once whichever process dies. */
import { beforeEach, describe, expect, test } from "vitest";
import { ACTOR, arrival, useArrivalProcesses } from "../../../test/arrivals-process.ts";
import { type ChainProcess, held, useChainProcesses } from "../../../test/chain-process.ts";
import { useDatabase } from "../../../test/database.ts";
import { until } from "../../../test/until.ts";

const database = useDatabase();
const chains = useChainProcesses(database);
const { acts } = chains;
const { define, ended, open, state, tasks, emitted, values } = useArrivalProcesses(database);
const DAY = "20250101";
const rows = (...given: number[]) => given.map((value, index) => ({ kpi_id: "m.K", value, part: `p${index}` }));

let chainProcess: ChainProcess;
beforeEach(async () => {
  chainProcess = await chains.open();
});

/** A model that runs this chain when table `a` arrives, and a process for it. */
async function openModel(nodes: readonly object[], fields: object = {}, settings: object = {}) {
  await chains.define(chainProcess, nodes, { name: "work" });
  const process = await open({ chains: chainProcess.called, ...settings });
  await define(process, "m", ["a"], { chain: "work", ...fields });
  return process;
}
const chainRuns = () => database.query<{ run_id: string; status: string }>("select run_id, status from chains.job_run");

describe("a model that runs a chain", () => {
  test("stores the rows of the chain's last nodes as its values", async () => {
    acts.set("first", () => ({ artifact: { rows: rows(666) } }));
    acts.set("sql", () => ({ artifact: { columns: ["kpi_id"], rows: rows(1, 2) } }));
    acts.set("list", () => ({ artifact: [{ kpi_id: "m.K", value: 3 }] }));
    acts.set("none", () => ({ artifact: { count: 1 } }));
    const process = await openModel([
      { id: "first" },
      ...["sql", "list", "none"].map((id) => ({ id, dependsOn: ["first"] })),
    ]);
    await process.announce(arrival("a", DAY));
    expect(await ended("SUCCESS")).toMatchObject([{ chainRunId: (await chainRuns())[0]?.run_id }]);
    expect(await values()).toEqual([`m.K ${DAY} 1 1`, `m.K ${DAY} 2 1`, `m.K ${DAY} 3 1`]);
    const [run] = await database.query<Record<string, unknown>>(
      "select op_time, params, trigger, triggered_by from chains.job_run",
    );
    expect(run).toEqual({
      op_time: DAY,
      params: { modelId: "m", generation: 1 },
      trigger: "arrival",
      triggered_by: "model m",
    });
  });

  test("fails with it, and keeps the values that it has", async () => {
    acts.set("n", () => ({ artifact: rows(1) }));
    const process = await openModel([{ id: "n" }]);
    await process.announce(arrival("a", DAY));
    await ended("SUCCESS");
    acts.set("n", () => Promise.reject(new Error("the source is gone")));
    await process.announce(arrival("a", DAY));
    const [failed] = await ended("FAILED");
    expect(failed?.message).toMatch(/^Run [0-9a-f-]{36} of its chain ended as FAILED: /);
    expect(await values()).toEqual([`m.K ${DAY} 1 1`]);
    expect(await emitted()).toEqual([`kpi.updated m ${DAY} 1`, `model.failed m ${DAY} 2`]);
  });

  test("fails when the chain does not exist, or returns an indicator of another model", async () => {
    const process = await openModel([{ id: "n" }]);
    await define(process, "lost", ["b"], { chain: "nowhere" });
    await process.announce(arrival("b", DAY));
    expect((await ended("FAILED"))[0]?.message).toMatch(/nowhere/);
    acts.set("n", () => ({ artifact: [{ kpi_id: "other", value: 1 }] }));
    await process.announce(arrival("a", DAY));
    expect((await ended("FAILED", 2))[1]?.message).toMatch(/not among the model's kpis/);
  });

  test("stops the chain at its own timeout", async () => {
    const work = held();
    acts.set("n", work.act);
    const process = await openModel([{ id: "n" }], { timeoutSeconds: 1 });
    await process.announce(arrival("a", DAY));
    expect((await ended("FAILED"))[0]?.message).toBe("Its chain took longer than 1 s.");
    await until(async () => (await chainRuns())[0]?.status === "STOPPED", "the chain to be stopped");
  });
});

describe("a run of a chain whose model's process is gone", () => {
  test("is found again by the next process, and not started twice", async () => {
    const work = held();
    acts.set("n", work.act);
    const gone = await openModel([{ id: "n" }], {}, { roles: ["worker"] });
    await gone.announce(arrival("a", DAY));
    await work.begun();
    await until(async () => (await tasks())[0]?.chainRunId, "the chain run to be recorded");
    await gone.expireSession();
    const next = await open({ chains: chainProcess.called, roles: ["worker"] });
    await next.worker.reclaimer?.runOnce();
    await until(async () => (await tasks())[1]?.chainRunId, "the next to have found it");
    work.release();
    const [done] = await ended("SUCCESS");
    expect(await chainRuns()).toMatchObject([{ run_id: done?.chainRunId, status: "SUCCESS" }]);
    expect((await tasks()).map(({ status, generation }) => [status, generation])).toEqual([
      ["FAILED", 1],
      ["SUCCESS", 1],
    ]);
    expect(work.contexts).toHaveLength(1);
  });

  test("is not reused for the next arrival after the model has failed", async () => {
    const work = held();
    acts.set("n", work.act);
    const gone = await openModel([{ id: "n" }], {}, { roles: ["worker"], lostLimit: 1 });
    await gone.announce(arrival("a", DAY));
    await work.begun();
    await gone.expireSession();
    await gone.worker.reclaimer?.runOnce();
    expect(await state("m", DAY)).toBe("idle");
    acts.clear();
    const next = await open({ chains: chainProcess.called });
    await next.announce(arrival("a", DAY));
    const [done] = await ended("SUCCESS");
    expect(done).toMatchObject({ generation: 2 });
    expect(await chainRuns()).toHaveLength(2);
    work.release();
  });

  test("is not found by a later model of the same name", async () => {
    const process = await openModel([{ id: "n" }]);
    await process.announce(arrival("a", DAY));
    await ended("SUCCESS");
    await process.models.remove("m", ACTOR);
    await define(process, "m", ["a"], { chain: "work" });
    await process.announce(arrival("a", DAY));
    await ended("SUCCESS", 2);
    expect(await chainRuns()).toHaveLength(2);
  });

  test("is awaited while the database is briefly unavailable", async () => {
    const work = held();
    acts.set("n", work.act);
    let away = 0;
    const { called } = chainProcess;
    const process = await openModel(
      [{ id: "n" }],
      {},
      {
        chains: {
          ...called,
          async ended(runId: string, signal: AbortSignal) {
            away += 1;
            if (away === 1) throw new Error("Connection terminated unexpectedly");
            return called.ended(runId, signal);
          },
        },
      },
    );
    await process.announce(arrival("a", DAY));
    await work.begun();
    work.release();
    await ended("SUCCESS");
    expect(await chainRuns()).toHaveLength(1);
    expect(await emitted()).toEqual([`kpi.updated m ${DAY} 1`]);
  });
});
