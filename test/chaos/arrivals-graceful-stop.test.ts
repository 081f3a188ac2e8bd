/** SIGTERM to a process that runs models: short runs finish, long ones are released and run by another process. */
import { expect, test } from "vitest";
import { findViolations } from "../../src/arrivals/store/invariants.ts";
import { announce, defineModel, setUpServers, valuesOf } from "../arrivals-servers.ts";
import { useDatabase } from "../database.ts";
import { until } from "../until.ts";

const [SHORT, LONG] = ["20250101", "20250102"];
const EXIT_MS_MAX = 12_000;

const database = useDatabase();

test("a process that gets SIGTERM finishes short runs and releases long ones", async () => {
  const setup = await setUpServers(database);
  const [api, leaving] = await Promise.all([setup.start("api,scheduler"), setup.start("worker")]);
  await defineModel(api);
  for (const opTime of [SHORT, LONG]) {
    await announce(api.api, opTime);
    await setup.began(opTime, 1);
  }
  const signalledAtMs = performance.now();
  leaving.kill("SIGTERM");
  await until(() => leaving.output().includes("Stopping when the work in flight is done"), "it to begin to stop");
  await setup.openGate(SHORT, 1);
  expect(await setup.ended(SHORT, "SUCCESS")).toHaveLength(1);
  expect(await leaving.exited).toBe(0);
  expect(performance.now() - signalledAtMs).toBeLessThan(EXIT_MS_MAX);
  expect(await setup.runs(LONG)).toMatchObject([{ status: "FAILED", message: "its process was shut down" }]);

  const successor = await setup.start("worker");
  await setup.began(LONG, 2);
  await setup.openGate(LONG, 2);
  expect(await setup.ended(LONG, "SUCCESS")).toMatchObject([
    { status: "FAILED", generation: 1 },
    { status: "SUCCESS", generation: 1 },
  ]);
  expect([await valuesOf(api, SHORT), await valuesOf(api, LONG)]).toEqual([[[1, 1]], [[2, 1]]]);
  expect(await findViolations(database.db)).toEqual([]);
  expect(await Promise.all([successor.stop(), api.stop()])).toEqual([0, 0]);
});
