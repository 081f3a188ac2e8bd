/**
 * A run is stopped while nodes ignore their signal: it is STOPPED when the grace period is over. Their late results do not
 * count, neither before the run is resumed nor during the next attempt.
 */
import { expect, test } from "vitest";
import { findViolations } from "../../src/chains/store/invariants.ts";
import { useDatabase } from "../database.ts";
import { until } from "../until.ts";
import { contradictions } from "./chains-audit.ts";
import { define, done, moves, nodeRows, nowMs, openSetup, recordMoves, runReaches, startRun } from "./chains-setup.ts";

const GRACE_SECONDS = 2;
const STOPPED_MS_MAX = GRACE_SECONDS * 1_000 + 4_000;
const UNRESPONSIVE = { type: "gated", cfg: { ignoresAbort: true } };
const NODES = [
  { id: "responsive", type: "gated" },
  { id: "late", ...UNRESPONSIVE },
  { id: "later", ...UNRESPONSIVE },
  { id: "last", type: "work", cfg: { ms: 0 }, dependsOn: ["responsive", "late", "later"] },
];

const database = useDatabase();

test("unresponsive nodes are STOPPED after the grace period, and their late results change nothing", async () => {
  const setup = await openSetup(database, { stopGraceSeconds: GRACE_SECONDS });
  await recordMoves(database);
  const server = await setup.start("api,scheduler,worker");
  const runId = await startRun(server, await define(server, NODES));
  const node = (nodeId: string, attempt: number) => ({ runId, nodeId, attempt });
  for (const nodeId of ["responsive", "late", "later"]) await setup.began(node(nodeId, 1));

  const stoppedAtMs = await nowMs(database);
  expect(done(await server.api.post(`/api/v1/runs/${runId}:stop`, {}))).toMatchObject({ status: "STOPPING" });
  await runReaches(database, runId, "STOPPED");
  const stopped = (await moves(database)).filter(({ after }) => after === "STOPPED");
  const afterMs = Object.fromEntries(stopped.map(({ nodeId, atMs }) => [nodeId, atMs - stoppedAtMs]));
  expect(afterMs["last"]).toBeLessThan(GRACE_SECONDS * 1_000);
  expect(afterMs["responsive"]).toBeLessThan(GRACE_SECONDS * 1_000);
  for (const nodeId of ["late", "later"]) {
    expect(afterMs[nodeId]).toBeGreaterThanOrEqual(GRACE_SECONDS * 1_000);
    expect(afterMs[nodeId]).toBeLessThan(STOPPED_MS_MAX);
  }

  const tables = async () => [
    await database.query("select * from chains.job_run"),
    await database.query("select * from chains.job_run_node order by node_no"),
    await database.query("select * from chains.live_node order by node_id"),
  ];
  /** Ends the first attempt of a node and checks that its result changes nothing. */
  async function endTooLate(nodeId: string): Promise<void> {
    const before = await tables();
    const ended = await attemptsEnded(server.url);
    await setup.openGate(node(nodeId, 1));
    await until(async () => (await attemptsEnded(server.url)) > ended, "the late result");
    expect(setup.marks().at(-1)).toMatchObject({ what: "did", ...node(nodeId, 1) });
    expect(await tables()).toEqual(before);
  }
  await endTooLate("late");

  done(await server.api.post(`/api/v1/runs/${runId}:resume`, {}));
  for (const nodeId of ["responsive", "late", "later"]) await setup.began(node(nodeId, 2));
  await endTooLate("later");
  for (const nodeId of ["responsive", "late", "later"]) await setup.openGate(node(nodeId, 2));
  await runReaches(database, runId, "SUCCESS");

  expect((await nodeRows(database, runId)).map(({ attempt }) => attempt)).toEqual([2, 2, 2, 1]);
  expect(await contradictions(database, setup, new Map([[runId, NODES]]))).toEqual([]);
  expect(await findViolations(database.db)).toEqual([]);
  expect(await server.stop()).toBe(0);
});

/** How many attempts have ended in this process, with any outcome. */
async function attemptsEnded(url: string): Promise<number> {
  const metrics = await (await fetch(`${url}/metrics`)).text();
  const counts = metrics.matchAll(/^millrace_chains_node_seconds_count\{.*\} (\d+)/gm);
  return [...counts].reduce((sum, [, count]) => sum + Number(count), 0);
}
