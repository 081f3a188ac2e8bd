/**
 * The process that runs a model is killed. Another runs it within 30 s, under the same generation, and there is one result.
 * The long suite waits for the session of the killed process to expire by itself.
 */
import { expect, test } from "vitest";
import { findViolations } from "../../src/arrivals/store/invariants.ts";
import { announce, defineModel, endSessionOf, setUpServers, valuesOf } from "../arrivals-servers.ts";
import { useDatabase } from "../database.ts";
import { nowMs } from "./chains-setup.ts";

const LONG = process.env["MILLRACE_TEST_LONG"] !== undefined;
const CYCLES = LONG ? 5 : 2;
const RECOVERY_MS_MAX = 30_000;

const database = useDatabase();

test(`a model runs in another process after each of ${CYCLES} kills`, {
  timeout: 60_000 + CYCLES * 40_000,
}, async () => {
  const setup = await setUpServers(database);
  const [api, first] = await Promise.all([setup.start("api,scheduler"), setup.start("worker")]);
  await defineModel(api);
  let worker = first;
  for (let cycle = 0; cycle < CYCLES; cycle += 1) {
    const opTime = String(20250101 + cycle);
    expect((await announce(api.api, opTime)).status).toBe(200);
    await setup.began(opTime, 1);
    worker.kill("SIGKILL");
    expect(await worker.exited).toBe("SIGKILL");
    const killedAtMs = await nowMs(database);
    if (!LONG) await endSessionOf(database, worker.pid);
    worker = await setup.start("worker");
    await setup.began(opTime, 2);
    for (const run of [1, 2]) await setup.openGate(opTime, run); // The query of the killed process continues in the engine.
    const [lost, done, ...others] = await setup.ended(opTime, "SUCCESS");
    expect(lost).toMatchObject({ status: "FAILED", generation: 1, message: "the process that ran it was lost" });
    expect(done).toMatchObject({ status: "SUCCESS", generation: 1 });
    expect(others).toEqual([]);
    expect((done?.startMs ?? Number.NaN) - killedAtMs).toBeLessThan(RECOVERY_MS_MAX);
    expect(await valuesOf(api, opTime)).toEqual([[2, 1]]);
  }
  expect(await findViolations(database.db)).toEqual([]);
  expect(await Promise.all([worker.stop(), api.stop()])).toEqual([0, 0]);
});
