/** Which runs of models come first, and what a person can stop, retry and change while they wait. */
import { describe, expect, test } from "vitest";
import { ACTOR, arrival, held, kpiOf, useArrivalProcesses } from "../../../test/arrivals-process.ts";
import { useDatabase } from "../../../test/database.ts";
import { until } from "../../../test/until.ts";

const database = useDatabase();
const { acts, define, ended, open, state, tasks, values } = useArrivalProcesses(database);
const DAYS = Array.from({ length: 20 }, (_, index) => `202501${String(index + 1).padStart(2, "0")}`);

describe("with one slot and twenty days to backfill", () => {
  /** A model whose twenty days are ready, of which the first runs until it is released. */
  async function backfilling() {
    const process = await open({ slots: 1 });
    await define(process, "m", ["a"], { grain: "day" });
    await define(process, "live", ["b"]);
    for (const day of DAYS) await process.announce(arrival("a", day));
    await ended("SUCCESS", DAYS.length);
    const first = held();
    acts.set("m", first.act);
    await process.requests.backfill("m", { from: "20250101", to: "20250120", dryRun: false }, ACTOR);
    await first.begun();
    return { process, first };
  }
  const order = async () => (await tasks()).slice(DAYS.length).map(({ model, opTime }) => `${model} ${opTime}`);

  test("a table that arrives is computed next, also one of the days", async () => {
    const { process, first } = await backfilling();
    await process.announce(arrival("b", "20250131"));
    await process.announce(arrival("a", "20250119"));
    first.release();
    await ended("SUCCESS", 2 * DAYS.length + 1);
    const [begun, second, third, fourth] = await order();
    expect(begun).toBe("m 20250101");
    expect(new Set([second, third])).toEqual(new Set(["live 20250131", "m 20250119"]));
    expect(fourth).toBe("m 20250102");
  });

  test("a backfill does not push back what is ready for another reason", async () => {
    const { process, first } = await backfilling();
    await process.announce(arrival("b", "20250131"));
    await process.requests.backfill("live", { opTimes: ["20250131"], dryRun: false }, ACTOR);
    first.release();
    await ended("SUCCESS", 2 * DAYS.length + 1);
    expect((await order())[1]).toBe("live 20250131");
  });

  test("a stop ends the run under way and drops those that wait, and stores nothing", async () => {
    const { process, first } = await backfilling();
    const before = await values();
    const preview = await process.requests.stop("m", {}, ACTOR, { dryRun: true });
    expect(await state("m", "20250101")).toBe("running");
    const stopped = await process.requests.stop("m", { reason: "wrong data" }, ACTOR);
    expect(stopped).toEqual(preview);
    expect(stopped.map(({ was }) => was)).toEqual(["running", ...Array.from({ length: 19 }, () => "ready")]);
    await until(() => first.calls[0]?.signal.aborted, "the run to be aborted");
    expect(await state("m", "20250101")).toBe("idle");
    expect(await ended("FAILED")).toMatchObject([{ message: `stopped by ${ACTOR.caller.name}: wrong data` }]);
    expect(await values()).toEqual(before);
    expect(await process.requests.stop("m", {}, ACTOR)).toEqual([]);
    // What arrives later runs as ever.
    acts.delete("m");
    await process.announce(arrival("a", "20250101"));
    await ended("SUCCESS", DAYS.length + 1);
  });

  test("one day is stopped alone", async () => {
    const { process, first } = await backfilling();
    expect(await process.requests.stop("m", { opTime: "20250105" }, ACTOR)).toEqual([
      { opTime: "20250105", was: "ready" },
    ]);
    first.release();
    await ended("SUCCESS", 2 * DAYS.length - 1);
    expect(await order()).not.toContain("m 20250105");
  });
});

test("a retry runs the opTimes whose newest run has failed, and no others", async () => {
  const process = await open();
  await define(process, "m", ["a"], { grain: "day" });
  const bad = new Set(["20250101", "20250103"]);
  acts.set("m", ({ modelId, opTime }) => {
    if (bad.has(opTime)) throw new Error("no rows yet");
    return [{ kpi_id: kpiOf(modelId), value: 1 }];
  });
  for (const day of DAYS.slice(0, 4)) await process.announce(arrival("a", day));
  await ended("FAILED", 2);
  await ended("SUCCESS", 2);
  await expect(process.requests.retry("m", { opTime: "20250102" }, ACTOR)).rejects.toThrow("has not failed");
  expect(await process.requests.retry("m", {}, ACTOR, { dryRun: true })).toEqual(["20250101", "20250103"]);
  bad.clear();
  expect(await process.requests.retry("m", {}, ACTOR)).toEqual(["20250101", "20250103"]);
  await ended("SUCCESS", 4);
  expect(await process.requests.retry("m", {}, ACTOR)).toEqual([]);
});

describe("a change of a model judges again what waits:", () => {
  test("an opTime whose missing table is no longer needed runs", async () => {
    const process = await open();
    await define(process, "m", ["a", "b"]);
    await process.announce(arrival("a", "1"));
    expect(await state("m", "1")).toBe("waiting");
    await define(process, "m", ["a"]);
    expect(await ended("SUCCESS")).toMatchObject([{ model: "m", opTime: "1" }]);
    expect(await database.query("select trigger from arrivals.metrics_task_log")).toEqual([{ trigger: "edit" }]);
  });

  test("an opTime that only waited for a quiet period runs when that is dropped, and one that needs more waits", async () => {
    const process = await open();
    const quiet = { dependencies: [{ table: "a", quietSeconds: 3_600 }] };
    await define(process, "m", [], quiet);
    await define(process, "n", [], quiet);
    await process.announce(arrival("a", "1"));
    expect([await state("m", "1"), await state("n", "1")]).toEqual(["quiet", "quiet"]);
    await define(process, "n", ["a", "b"]);
    expect(await state("n", "1")).toBe("waiting");
    await define(process, "m", ["a"]);
    await ended("SUCCESS");
  });

  test("an opTime that waited for a person runs when the policy is `auto`", async () => {
    const process = await open();
    await define(process, "m", ["a"], { rerun: "ask" });
    await process.announce(arrival("a", "1"));
    await ended("SUCCESS");
    await process.announce(arrival("a", "1"));
    expect(await state("m", "1")).toBe("asking");
    await define(process, "m", ["a"], { rerun: "auto" });
    await ended("SUCCESS", 2);
  });
});
