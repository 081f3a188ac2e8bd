/** Models that run a chain: its last nodes return the values, and the chain runs once whichever process dies. */
import { beforeEach, describe, expect, test } from "vitest";
import { ACTOR, arrival, useArrivalProcesses } from "../../../test/arrivals-process.ts";
import { type Act, type ChainProcess, held, useChainProcesses } from "../../../test/chain-process.ts";
import { useDatabase } from "../../../test/database.ts";
import { signal, until } from "../../../test/until.ts";

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
/** Returns a value after the act. */
const returningOne =
  (act: Act): Act =>
  async (...given) => {
    await act(...given);
    return { artifact: rows(1) };
  };
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

  test("fails if the last nodes return more bytes together than a result may have", async () => {
    const text = "x".repeat(500);
    for (const id of ["left", "right"]) {
      acts.set(id, () => ({ artifact: [{ kpi_id: "m.K", value: 1, id, text }] }));
    }
    const process = await openModel([{ id: "left" }, { id: "right" }], {}, { resultBytesMax: 1_000 });
    await process.announce(arrival("a", DAY));
    expect((await ended("FAILED"))[0]?.message).toMatch(
      /^The last nodes of run \S+ return 1[01]\d\d bytes, more than the 1000 that `arrivals.resultBytesMax` allows/,
    );
    expect(await values()).toEqual([]);
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
    const chainId = await chains.define(chainProcess, [{ id: "n" }], { name: "nowhere" });
    await define(process, "lost", ["b"], { chain: "nowhere" });
    const { dag, version } = await chainProcess.definitions.get(chainId);
    await chainProcess.definitions.update(chainId, { name: "renamed", dagJson: dag, version }, ACTOR);
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
    await work.begun();
    await until(() => work.contexts[0]?.signal.aborted, "the chain to be stopped");
    work.release();
    expect((await ended("FAILED"))[0]?.message).toMatch(/ended as STOPPED: Its chain took longer than 1 s\.$/);
    expect(await chainRuns()).toMatchObject([{ status: "STOPPED" }]);
  });
});

describe("a run of a chain whose model's process is gone", () => {
  test("is awaited by no process, and any process stores its result", async () => {
    const work = held();
    acts.set("n", returningOne(work.act));
    const gone = await openModel([{ id: "n" }], {}, { roles: ["worker"] });
    await gone.announce(arrival("a", DAY));
    await work.begun();
    expect(await state("m", DAY)).toBe("parked");
    await gone.worker.stop();
    await open({ chains: chainProcess.called, roles: ["worker"] });
    work.release();
    await ended("SUCCESS");
    expect((await tasks()).map(({ status, generation }) => [status, generation])).toEqual([["SUCCESS", 1]]);
    expect(work.contexts).toHaveLength(1);
    expect(await values()).toEqual([`m.K ${DAY} 1 1`]);
  });

  test("has its result stored by another process if the one that stores it is killed", async () => {
    acts.set("n", () => ({ artifact: rows(1) }));
    const begun = signal();
    let reads = 0;
    // Later reads work: the process lives on here and may claim the model again under another session.
    const outcome = (runId: string, bytesMax: number) => {
      begun.resolve();
      reads += 1;
      return reads === 1 ? new Promise<never>(() => {}) : chainProcess.called.outcome(runId, bytesMax);
    };
    const gone = await openModel([{ id: "n" }], {}, { chains: { ...chainProcess.called, outcome }, roles: ["worker"] });
    await gone.announce(arrival("a", DAY));
    await begun.promise;
    await gone.expireSession();
    const next = await open({ chains: chainProcess.called, roles: ["worker"] });
    await next.worker.reclaimer?.runOnce();
    await ended("SUCCESS");
    expect((await tasks()).map(({ status, generation }) => [status, generation])).toEqual([["SUCCESS", 1]]);
    expect(await values()).toEqual([`m.K ${DAY} 1 1`]);
  });

  test("is found by the timers if its end was not reported", async () => {
    acts.set("n", () => ({ artifact: rows(1) }));
    const process = await openModel([{ id: "n" }], {}, { roles: ["worker"] });
    chainProcess.called.onChange(async () => new Set());
    await process.announce(arrival("a", DAY));
    await until(async () => (await chainRuns())[0]?.status === "SUCCESS", "the chain's run to end");
    expect(await state("m", DAY)).toBe("parked");
    await process.timers.runOnce();
    await ended("SUCCESS");
  });

  test("is not found by a later model of the same name", async () => {
    acts.set("n", () => ({ artifact: rows(1) }));
    const process = await openModel([{ id: "n" }]);
    await process.announce(arrival("a", DAY));
    await ended("SUCCESS");
    await process.models.remove("m", ACTOR);
    await define(process, "m", ["a"], { chain: "work" });
    await process.announce(arrival("a", DAY));
    await ended("SUCCESS", 2);
    expect(await chainRuns()).toHaveLength(2);
  });

  test("is read again when the database was briefly unavailable", async () => {
    acts.set("n", () => ({ artifact: rows(1) }));
    let away = 0;
    const { called } = chainProcess;
    const outcome: typeof called.outcome = (...run) => {
      away += 1;
      if (away === 1) throw new Error("Connection terminated unexpectedly");
      return called.outcome(...run);
    };
    const process = await openModel([{ id: "n" }], {}, { chains: { ...called, outcome } });
    await process.announce(arrival("a", DAY));
    await ended("SUCCESS");
    expect(await chainRuns()).toHaveLength(1);
    expect(await emitted()).toEqual([`kpi.updated m ${DAY} 1`]);
  });
});

describe("a model whose chain's run has failed", () => {
  /** The run of the chain, after the model has failed with it. */
  async function failedRun(nodes: readonly object[] = [{ id: "n" }]) {
    acts.set("n", () => Promise.reject(new Error("not yet")));
    const process = await openModel(nodes);
    await process.announce(arrival("a", DAY));
    await ended("FAILED");
    const [run] = await chainRuns();
    return { process, runId: run?.run_id ?? "" };
  }
  const retry = { downstream: false, dryRun: false, reason: null };
  const STORED = [`m.K ${DAY} 1 1`];

  test("continues and succeeds when that run is retried", async () => {
    const { runId } = await failedRun();
    const work = held();
    acts.set("n", returningOne(work.act));
    await chainProcess.runs.retry(runId, retry, ACTOR);
    expect(await tasks()).toMatchObject([{ status: "RUNNING", message: null, generation: 1 }]);
    expect(await state("m", DAY)).toBe("parked");
    await work.begun();
    work.release();
    expect(await ended("SUCCESS")).toHaveLength(1);
    expect(await values()).toEqual(STORED);
    expect(await emitted()).toEqual([`model.failed m ${DAY} 1`, `kpi.updated m ${DAY} 1`]);
  });

  test("fails again with it, and can be continued again", async () => {
    const { runId } = await failedRun();
    await chainProcess.runs.retry(runId, retry, ACTOR);
    await until(async () => (await emitted()).length === 2, "the second failure");
    expect(await tasks()).toMatchObject([{ status: "FAILED" }]);
    acts.set("n", () => ({ artifact: rows(1) }));
    await chainProcess.runs.retry(runId, retry, ACTOR);
    await ended("SUCCESS");
  });

  test("waits for it also if it fails again before a worker has seen the first failure", async () => {
    const work = held();
    acts.set("n", work.act);
    let onChange: Parameters<ChainProcess["called"]["onChange"]>[0] = async () => new Set();
    const { called } = chainProcess;
    const listening = { ...called, onChange: (listener: typeof onChange) => void (onChange = listener) };
    const process = await openModel([{ id: "n" }], {}, { chains: listening });
    await process.announce(arrival("a", DAY));
    await work.begun();
    await process.worker.stop();
    const runId = (await chainRuns())[0]?.run_id ?? "";
    const change = { runId, chainId: null, name: "", opTime: DAY, reason: null, parentRunId: null, trigger: "arrival" };
    const told = (status: "FAILED" | "RUNNING") => database.db.tx((tx) => onChange(tx, [{ ...change, status }]));
    expect(await told("FAILED")).toEqual(new Set([runId]));
    expect(await state("m", DAY)).toBe("returned");
    await told("RUNNING");
    expect(await told("FAILED")).toEqual(new Set([runId]));
    work.release();
    await chains.ended(runId);
    expect(await state("m", DAY)).toBe("returned");
  });

  test("succeeds when its node is completed by hand", async () => {
    const { runId } = await failedRun();
    await chainProcess.runs.complete(runId, { nodeId: "n", artifact: rows(1), reason: null }, ACTOR);
    await ended("SUCCESS");
    expect(await values()).toEqual(STORED);
  });

  test("succeeds when that run was stopped and is resumed", async () => {
    const work = held();
    acts.set("n", work.act);
    const process = await openModel([{ id: "n" }, { id: "last", dependsOn: ["n"] }]);
    acts.set("last", () => ({ artifact: rows(1) }));
    await process.announce(arrival("a", DAY));
    await work.begun();
    const runId = (await chainRuns())[0]?.run_id ?? "";
    await chainProcess.runs.stop(runId, ACTOR, { reason: "maintenance" });
    work.release();
    expect((await ended("FAILED"))[0]?.message).toMatch(/ended as STOPPED: maintenance/);
    await chainProcess.runs.resume(runId, ACTOR);
    await ended("SUCCESS");
    expect(await values()).toEqual(STORED);
  });

  test("stays as it is once a later run has started", async () => {
    const { process, runId } = await failedRun();
    acts.set("n", () => ({ artifact: rows(7) }));
    await process.announce(arrival("a", DAY));
    await ended("SUCCESS");
    acts.set("n", () => ({ artifact: rows(1) }));
    await chainProcess.runs.retry(runId, retry, ACTOR);
    await chains.ended(runId);
    expect((await tasks()).map(({ status }) => status)).toEqual(["FAILED", "SUCCESS"]);
    expect(await values()).toEqual([`m.K ${DAY} 7 2`]);
  });

  test("runs once more after it was continued if something arrived meanwhile", async () => {
    const { process, runId } = await failedRun();
    const work = held();
    acts.set("n", returningOne(work.act));
    await chainProcess.runs.retry(runId, retry, ACTOR);
    await work.begun();
    expect((await process.announce(arrival("a", DAY))).considered).toMatchObject([
      { verdict: { kind: "running", followUp: true } },
    ]);
    work.release();
    expect(await ended("SUCCESS", 2)).toMatchObject([{ generation: 1 }, { generation: 2 }]);
  });
});
