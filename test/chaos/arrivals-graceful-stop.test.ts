/** SIGTERM to a process that runs models: what ends in time counts, the rest is given back and done by another. */
import { expect, test } from "vitest";
import { findViolations } from "../../src/arrivals/store/invariants.ts";
import { announce, defineModel, openPlant, valuesOf } from "../arrivals-plant.ts";
import { useDatabase } from "../database.ts";
import { until } from "../until.ts";

const [SHORT, LONG] = ["20250101", "20250102"];
const EXIT_MS_MAX = 12_000;

const database = useDatabase();

test("a process that is told to stop finishes what is short and gives back what is long", async () => {
  const plant = await openPlant(database);
  const [api, leaving] = await Promise.all([plant.start("api,scheduler"), plant.start("worker")]);
  await defineModel(api);
  for (const opTime of [SHORT, LONG]) {
    await announce(api.api, opTime);
    await plant.began(opTime, 1);
  }
  const toldAtMs = performance.now();
  leaving.kill("SIGTERM");
  await until(() => leaving.output().includes("Stopping after what is in flight"), "it to begin to stop");
  await plant.openGate(SHORT, 1);
  expect(await plant.ended(SHORT, "SUCCESS")).toHaveLength(1);
  expect(await leaving.exited).toBe(0);
  expect(performance.now() - toldAtMs).toBeLessThan(EXIT_MS_MAX);
  expect(await plant.runs(LONG)).toMatchObject([{ status: "FAILED", message: "its process was shut down" }]);

  const successor = await plant.start("worker");
  await plant.began(LONG, 2);
  await plant.openGate(LONG, 2);
  expect(await plant.ended(LONG, "SUCCESS")).toMatchObject([
    { status: "FAILED", generation: 1 },
    { status: "SUCCESS", generation: 1 },
  ]);
  expect([await valuesOf(api, SHORT), await valuesOf(api, LONG)]).toEqual([[[1, 1]], [[2, 1]]]);
  expect(await findViolations(database.db)).toEqual([]);
  expect(await Promise.all([successor.stop(), api.stop()])).toEqual([0, 0]);
});
