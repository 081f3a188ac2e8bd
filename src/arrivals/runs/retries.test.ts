/** Models with `retry`: a failed run is tried again by itself, without a slot while it waits. */
import { beforeEach, describe, expect, test } from "vitest";
import { ACTOR, arrival, kpiOf, useArrivalProcesses } from "../../../test/arrivals-process.ts";
import { type ChainProcess, held, useChainProcesses } from "../../../test/chain-process.ts";
import { useDatabase } from "../../../test/database.ts";
import { until } from "../../../test/until.ts";
import { EngineRefusal } from "../../engines/index.ts";
import { systemClock } from "../../kernel/time/clock.ts";
import { explain } from "../models/why.ts";

const database = useDatabase();
const chains = useChainProcesses(database);
const { acts, define, emitted, ended, open, state, values } = useArrivalProcesses(database);
const SOON = { maxAttempts: 3, backoffMs: 0 };
const LATER = { maxAttempts: 3, backoffMs: 3_600_000 };
const HOUR_MS = 3_600_000;

const attempts = async () =>
  (
    await database.query<{ shown: string }>(
      "select concat_ws(' ', generation, attempt, status) as shown from arrivals.metrics_task_log order by id",
    )
  ).map(({ shown }) => shown);
const why = () => explain(database.db, systemClock, "m", "1");
const retrying = () => until(async () => (await state("m", "1")) === "retrying", "a retry to be due later");

/** Makes the model fail this many times; answers how often it was run. */
function failing(times: number) {
  const calls = { count: 0 };
  acts.set("m", ({ modelId }) => {
    calls.count += 1;
    if (calls.count <= times) throw new Error("the table is locked");
    return [{ kpi_id: kpiOf(modelId), value: 1 }];
  });
  return calls;
}

/** A model whose first attempt has failed, with the next one an hour away. */
async function waitingForRetry(options: Parameters<typeof open>[0] = {}) {
  const process = await open(options);
  const calls = failing(1);
  await define(process, "m", ["a"], { retry: LATER });
  await process.announce(arrival("a", "1"));
  await retrying();
  return { process, calls };
}

test("attempts belong to one run, which succeeds with the last of them and tells nobody of the others", async () => {
  const process = await open();
  failing(2);
  await define(process, "m", ["a"], { retry: SOON });
  const announced = await process.announce(arrival("a", "1"));
  const [considered] = announced.considered;
  if (!considered) throw new Error("no model was considered");
  const waited = await process.runWaiters.ended(considered, AbortSignal.timeout(30_000));
  expect(waited).toMatchObject({ status: "SUCCESS", generation: 1, attempt: 3 });
  expect(await attempts()).toEqual(["1 1 FAILED", "1 2 FAILED", "1 3 SUCCESS"]);
  expect(await emitted()).toEqual(["kpi.updated m 1 1"]);
  expect(await values()).toEqual(["m.K 1 1 1"]);
  const lines = process.logged.filter(({ message }) => message?.includes("is tried again"));
  expect(lines.map(({ fields }) => fields["attempt"])).toEqual([1, 2]);
});

test("the last attempt that fails ends the run, with one event, and the next arrival has all attempts again", async () => {
  const process = await open();
  const calls = failing(4);
  await define(process, "m", ["a"], { retry: { ...SOON, maxAttempts: 2 } });
  await process.announce(arrival("a", "1"));
  await until(async () => (await emitted()).length > 0, "the event");
  expect(await attempts()).toEqual(["1 1 FAILED", "1 2 FAILED"]);
  expect(await emitted()).toEqual(["model.failed m 1 1"]);
  expect(await state("m", "1")).toBe("idle");
  calls.count = 3;
  await process.announce(arrival("a", "1"));
  await ended("SUCCESS");
  expect((await attempts()).slice(2)).toEqual(["2 1 FAILED", "2 2 SUCCESS"]);
});

test("without `retry`, and after what the engine refuses, there is one attempt", async () => {
  const process = await open();
  failing(1);
  await define(process, "m", ["a"]);
  acts.set("n", () => {
    throw new EngineRefusal("There is no column `x`.");
  });
  await define(process, "n", ["a"], { retry: SOON });
  await process.announce(arrival("a", "1"));
  await ended("FAILED", 2);
  expect([await state("m", "1"), await state("n", "1")]).toEqual(["idle", "idle"]);
  expect((await emitted()).sort()).toEqual(["model.failed m 1 1", "model.failed n 1 1"]);
});

describe("while the next attempt is not due", () => {
  test("no slot is held, `why` names the time, and the timers begin it then", async () => {
    const { process } = await waitingForRetry({ slots: 1, roles: ["worker"] });
    await define(process, "other", ["b"]);
    await process.announce(arrival("b", "1"));
    await ended("SUCCESS");
    const told = await why();
    expect(told).toMatchObject({ state: "retrying", retry: { attempt: 2, maxAttempts: 3 } });
    expect(told.retry?.at.getTime()).toBeGreaterThan(Date.now() + 0.7 * HOUR_MS);
    expect(told.runs[0]?.retry_at).toEqual(told.retry?.at);
    expect(told.verdict).toBe(
      "Its last attempt failed and the next one is due; it waits for a process with the role `scheduler`: none is alive.",
    );
    expect(await process.timers.runOnce()).toMatchObject({ retried: 0 });
    await database.query("update arrivals.model_instance set due_at = now() where state = 'retrying'");
    expect(await process.timers.runOnce()).toMatchObject({ retried: 1 });
    await ended("SUCCESS", 2);
    expect((await why()).retry).toBeNull();
  });

  test("`why` says when the next attempt begins", async () => {
    await waitingForRetry();
    const { verdict, retry, wouldRun } = await why();
    const at = retry?.at.toISOString();
    expect(verdict).toBe(`Attempt 2 of 3 begins at ${at}. The last one failed: the table is locked`);
    expect(wouldRun).toContain("Any of its tables arriving again.");
  });

  test.each<[string, (process: Awaited<ReturnType<typeof open>>) => Promise<unknown>]>([
    ["a person runs it", ({ requests }) => requests.run("m", { opTime: "1", force: false }, ACTOR)],
    ["a person retries it", ({ requests }) => requests.retry("m", {}, ACTOR)],
    ["a table arrives", ({ announce }) => announce(arrival("a", "1"))],
    ["the model is changed", (process) => define(process, "m", ["a"], { retry: LATER, timeoutSeconds: 5 })],
  ])("it begins at once when %s, as the same run with all attempts", async (_, act) => {
    const { process } = await waitingForRetry();
    await act(process);
    await ended("SUCCESS");
    expect(await attempts()).toEqual(["1 1 FAILED", "1 1 SUCCESS"]);
  });

  test("a stop and an unpublishing end it", async () => {
    const { process } = await waitingForRetry();
    expect(await process.requests.stop("m", {}, ACTOR)).toEqual([{ opTime: "1", was: "retrying" }]);
    expect(await state("m", "1")).toBe("idle");
    failing(1);
    await process.announce(arrival("a", "1"));
    await retrying();
    await process.models.setPublished("m", false, ACTOR);
    expect(await state("m", "1")).toBe("idle");
  });

  test("a model that was unpublished as its run failed is not run when the attempt is due", async () => {
    const { process } = await waitingForRetry({ roles: ["worker"] });
    await database.query("update arrivals.metrics_model set state = 0");
    await database.query("update arrivals.model_instance set due_at = now()");
    expect(await process.timers.runOnce()).toMatchObject({ retried: 1 });
    expect(await state("m", "1")).toBe("idle");
  });

  test("it waits for a table that was taken back, unless a person asked for the run", async () => {
    const { process } = await waitingForRetry();
    await process.retract({ table: "a", opTime: "1" }, ACTOR, { dryRun: false });
    expect(await state("m", "1")).toBe("waiting");
    failing(1);
    await process.requests.run("m", { opTime: "1", force: true }, ACTOR);
    await retrying();
    await process.announce(arrival("a", "1"));
    await ended("SUCCESS");
  });

  test("something that arrived during the failed attempt begins the next one at once", async () => {
    const process = await open();
    const calls = failing(1);
    const first = acts.get("m");
    await define(process, "m", ["a"], { retry: LATER });
    acts.set("m", async (call) => {
      if (calls.count === 0) await process.announce(arrival("a", "1"));
      return first?.(call) ?? [];
    });
    await process.announce(arrival("a", "1"));
    await ended("SUCCESS");
    expect(await attempts()).toEqual(["1 1 FAILED", "1 1 SUCCESS"]);
  });
});

describe("a model that runs a chain", () => {
  let chainProcess: ChainProcess;
  beforeEach(async () => {
    chainProcess = await chains.open();
  });
  const chainRuns = () =>
    database.query<{ run_id: string; status: string }>("select run_id, status from chains.job_run order by created_at");

  async function openModel(
    retry: object,
    fields: object = {},
    roles: ("scheduler" | "worker")[] = ["scheduler", "worker"],
  ) {
    await chains.define(chainProcess, [{ id: "n" }], { name: "work" });
    const process = await open({ chains: chainProcess.called, roles });
    await define(process, "m", ["a"], { chain: "work", retry: { maxAttempts: 2, ...retry }, ...fields });
    await process.announce(arrival("a", "1"));
    return process;
  }

  test("runs it anew after it failed", async () => {
    let runs = 0;
    chains.acts.set("n", () => {
      runs += 1;
      if (runs === 1) throw new Error("the source is gone");
      return { artifact: [{ kpi_id: "m.K", value: 1 }] };
    });
    await openModel({ backoffMs: 0 });
    await ended("SUCCESS");
    expect((await chainRuns()).map(({ status }) => status)).toEqual(["FAILED", "SUCCESS"]);
    expect(await attempts()).toEqual(["1 1 FAILED", "1 2 SUCCESS"]);
  });

  test("does not run it anew after a person has stopped it", async () => {
    const work = held();
    chains.acts.set("n", work.act);
    const process = await openModel({ backoffMs: 0 });
    await work.begun();
    await process.requests.stop("m", {}, ACTOR);
    await ended("FAILED");
    expect(await state("m", "1")).toBe("idle");
    expect(await chainRuns()).toHaveLength(1);
  });

  describe("that was stopped by a person", () => {
    const runId = async () => (await chainRuns())[0]?.run_id ?? "";
    const ageRun = () =>
      database.query(
        "update arrivals.metrics_task_log set start_time = now() - interval '1 day' where status = 'RUNNING'",
      );
    const overdue = () => database.query("update arrivals.model_instance set due_at = now() where state = 'parked'");
    const chainStatus = (status: string) =>
      until(async () => (await chainRuns())[0]?.status === status, `the run of the chain to be ${status}`);
    /** The node of the chain, once stopped, ends when the test releases it. */
    function stoppingSlowly() {
      const work = held({ ignoresAbort: true });
      chains.acts.set("n", async (ctx, cfg) => {
        await work.act(ctx, cfg);
        ctx.signal.throwIfAborted();
        return {};
      });
      const aborted = () => until(() => work.contexts[0]?.signal.aborted, "the node to be aborted");
      return { ...work, aborted };
    }

    test("is not run anew, however long ago the model's run began and the person had retried it", async () => {
      chains.acts.set("n", () => {
        throw new Error("the source is gone");
      });
      await openModel({ backoffMs: HOUR_MS, maxAttempts: 3 });
      await retrying();
      const work = held();
      chains.acts.set("n", work.act);
      await chainProcess.runs.retry(await runId(), { downstream: false, reason: null }, ACTOR);
      await work.begun();
      await ageRun();
      await chainProcess.runs.stop(await runId(), ACTOR);
      await ended("FAILED");
      expect(await state("m", "1")).toBe("idle");
    });

    test("is not run anew if the time-out passes while the chain is being stopped", async () => {
      const work = stoppingSlowly();
      const process = await openModel({ backoffMs: 0 }, {}, ["worker"]);
      await work.begun();
      await chainProcess.runs.stop(await runId(), ACTOR);
      await overdue();
      expect(await process.timers.runOnce()).toMatchObject({ stopped: 1 });
      await work.aborted();
      work.release();
      await ended("FAILED");
      expect(await state("m", "1")).toBe("idle");
    });

    test("is not run anew if the person stops the model while its time-out stops the chain", async () => {
      const work = stoppingSlowly();
      const process = await openModel({ backoffMs: 0 }, {}, ["worker"]);
      await work.begun();
      await overdue();
      await process.timers.runOnce();
      await chainStatus("STOPPING");
      expect(await process.requests.stop("m", {}, ACTOR)).toEqual([{ opTime: "1", was: "parked" }]);
      await work.aborted();
      work.release();
      await ended("FAILED");
      expect(await state("m", "1")).toBe("idle");
      expect(await chainRuns()).toHaveLength(1);
    });

    test("is not run anew if its time-out had stopped the chain before, and the person has resumed it", async () => {
      chains.acts.set("n", held().act);
      const process = await openModel({ backoffMs: 0 }, {}, ["worker"]);
      await until(async () => (await state("m", "1")) === "parked", "the model to be parked");
      await process.worker.stop();
      await overdue();
      await process.timers.runOnce();
      await chainStatus("STOPPED");
      await chainProcess.runs.resume(await runId(), ACTOR);
      await chainProcess.runs.stop(await runId(), ACTOR);
      await chainStatus("STOPPED");
      await open({ chains: chainProcess.called, roles: ["worker"] });
      await ended("FAILED");
      expect(await state("m", "1")).toBe("idle");
    });
  });

  test("runs it anew after it took too long", async () => {
    const work = held();
    chains.acts.set("n", work.act);
    await openModel({ backoffMs: HOUR_MS }, { timeoutSeconds: 1 });
    await ended("FAILED");
    expect(await state("m", "1")).toBe("retrying");
  });

  test("goes on with the run that a person retries, instead of the next attempt", async () => {
    chains.acts.set("n", () => {
      throw new Error("the source is gone");
    });
    await openModel({ backoffMs: HOUR_MS });
    await retrying();
    chains.acts.set("n", () => ({ artifact: [{ kpi_id: "m.K", value: 1 }] }));
    const [run] = await chainRuns();
    await chainProcess.runs.retry(run?.run_id ?? "", { downstream: false, reason: null }, ACTOR);
    await ended("SUCCESS");
    expect(await chainRuns()).toHaveLength(1);
    expect(await attempts()).toEqual(["1 1 SUCCESS"]);
  });
});
