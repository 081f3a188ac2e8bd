/**
 * The only process is killed in the middle of runs and started again. Acknowledged runs and finished nodes are still there, and
 * the runs continue.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { expect, test } from "vitest";
import { findViolations } from "../../src/chains/store/invariants.ts";
import { useDatabase } from "../database.ts";
import { seededRandom } from "../random.ts";
import { contradictions } from "./chains-audit.ts";
import { createChainsLoad } from "./chains-load.ts";
import { endSessionOf, type NodeRow, nodeRows, openSetup, recordMoves } from "./chains-setup.ts";

const CYCLES = process.env["MILLRACE_TEST_LONG"] ? 20 : 2;
const ENDS_MAX = 5;
const FURTHER_MS_MAX = 100;
const ROLES = "api,scheduler,worker";

const database = useDatabase();

test(`runs continue after each of ${CYCLES} kills of the only process`, {
  timeout: 60_000 + CYCLES * 10_000,
}, async () => {
  const random = seededRandom();
  const setup = await openSetup(database, { slots: 10, lostLimit: 1_000 });
  await recordMoves(database);
  let server = await setup.start(ROLES);
  const load = await createChainsLoad({ store: database, random }, server);
  const done: NodeRow[] = [];

  for (let cycle = 0; cycle < CYCLES; cycle += 1) {
    load.start(server);
    await load.ends(random.between(1, ENDS_MAX));
    await sleep(random.between(0, FURTHER_MS_MAX));
    done.push(...(await nodeRows(database)).filter(({ status }) => status === "SUCCESS"));
    server.kill("SIGKILL");
    expect(await server.exited).toBe("SIGKILL");
    await load.stop();
    await endSessionOf(database, server.pid);
    server = await setup.start(ROLES);
  }
  load.start(server);
  await load.ends(ENDS_MAX);
  await load.stop();
  await load.ended();

  // A start that was cut off and repeated under its key is one run.
  expect(await database.query("select run_id from chains.job_run")).toHaveLength(load.acknowledged.size);
  const rows = new Map((await nodeRows(database)).map((row) => [`${row.runId}/${row.nodeId}`, row]));
  for (const row of done) expect(rows.get(`${row.runId}/${row.nodeId}`)).toEqual(row);
  expect(await contradictions(database, setup, load.acknowledged)).toEqual([]);
  expect(await findViolations(database.db)).toEqual([]);
  expect(await server.stop()).toBe(0);
});
