/**
 * A run is stopped while nodes run that do not listen: it is STOPPED when the grace period is over, what they bring
 * afterwards does not count, neither before the run is resumed nor beside the next attempt.
 */
import { expect, test } from "vitest";
import { findViolations } from "../../src/chains/store/invariants.ts";
import { useDatabase } from "../database.ts";
import { until } from "../until.ts";
import { contradictions } from "./chains-audit.ts";
import { define, done, moves, nodeRows, noteMoves, nowMs, openPlant, runReaches, startRun } from "./chains-plant.ts";

const GRACE_SECONDS = 2;
const GIVEN_UP_MS_MAX = GRACE_SECONDS * 1_000 + 4_000;
const DEAF = { type: "gated", cfg: { deaf: true } };
const NODES = [
  { id: "obedient", type: "gated" },
  { id: "late", ...DEAF },
  { id: "later", ...DEAF },
  { id: "last", type: "work", cfg: { ms: 0 }, dependsOn: ["obedient", "late", "later"] },
];

const database = useDatabase();

test("what does not listen is given up, and its late result changes nothing", async () => {
  const plant = await openPlant(database, { stopGraceSeconds: GRACE_SECONDS });
  await noteMoves(database);
  const server = await plant.start("api,scheduler,worker");
  const runId = await startRun(server, await define(server, NODES));
  const node = (nodeId: string, attempt: number) => ({ runId, nodeId, attempt });
  for (const nodeId of ["obedient", "late", "later"]) await plant.began(node(nodeId, 1));

  const stoppedAtMs = await nowMs(database);
  expect(done(await server.api.post(`/api/v1/runs/${runId}:stop`, {}))).toMatchObject({ status: "STOPPING" });
  await runReaches(database, runId, "STOPPED");
  const stopped = (await moves(database)).filter(({ after }) => after === "STOPPED");
  const afterMs = Object.fromEntries(stopped.map(({ nodeId, atMs }) => [nodeId, atMs - stoppedAtMs]));
  expect(afterMs["last"]).toBeLessThan(GRACE_SECONDS * 1_000);
  expect(afterMs["obedient"]).toBeLessThan(GRACE_SECONDS * 1_000);
  for (const nodeId of ["late", "later"]) {
    expect(afterMs[nodeId]).toBeGreaterThanOrEqual(GRACE_SECONDS * 1_000);
    expect(afterMs[nodeId]).toBeLessThan(GIVEN_UP_MS_MAX);
  }

  const whatIs = async () => [
    await database.query("select * from chains.job_run"),
    await database.query("select * from chains.job_run_node order by node_no"),
    await database.query("select * from chains.live_node order by node_id"),
  ];
  /** Lets the first attempt of a node come to its end, and sees that this changes nothing. */
  async function endInVain(nodeId: string): Promise<void> {
    const before = await whatIs();
    const ended = await triesEnded(server.url);
    await plant.openGate(node(nodeId, 1));
    await until(async () => (await triesEnded(server.url)) > ended, "the late end");
    expect(plant.marks().at(-1)).toMatchObject({ what: "did", ...node(nodeId, 1) });
    expect(await whatIs()).toEqual(before);
  }
  await endInVain("late");

  done(await server.api.post(`/api/v1/runs/${runId}:resume`, {}));
  for (const nodeId of ["obedient", "late", "later"]) await plant.began(node(nodeId, 2));
  await endInVain("later");
  for (const nodeId of ["obedient", "late", "later"]) await plant.openGate(node(nodeId, 2));
  await runReaches(database, runId, "SUCCESS");

  expect((await nodeRows(database, runId)).map(({ attempt }) => attempt)).toEqual([2, 2, 2, 1]);
  expect(await contradictions(database, plant, new Map([[runId, NODES]]))).toEqual([]);
  expect(await findViolations(database.db)).toEqual([]);
  expect(await server.stop()).toBe(0);
});

/** How many nodes this process has run to their end, whatever became of it. */
async function triesEnded(url: string): Promise<number> {
  const metrics = await (await fetch(`${url}/metrics`)).text();
  const counts = metrics.matchAll(/^millrace_chains_node_seconds_count\{.*\} (\d+)/gm);
  return [...counts].reduce((sum, [, count]) => sum + Number(count), 0);
}
