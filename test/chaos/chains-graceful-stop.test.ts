/**
 * SIGTERM to a worker with nodes in flight: what ends in time counts, what does not is given back and done by another, and
 * nothing is left behind, not even by a node that does not listen.
 */
import { expect, test } from "vitest";
import { findViolations } from "../../src/chains/store/invariants.ts";
import { useDatabase } from "../database.ts";
import { until } from "../until.ts";
import { contradictions } from "./chains-audit.ts";
import { define, heldBy, noteMoves, openPlant, runReaches, startRun } from "./chains-plant.ts";

const DRAIN_SECONDS = 8; // Longer than the pause between two heartbeats.
const EXIT_MS_MAX = (DRAIN_SECONDS + 5) * 1_000;
const NODES = [
  { id: "short", type: "gated" },
  { id: "long", type: "gated" },
  { id: "deaf", type: "gated", cfg: { deaf: true } },
  { id: "last", type: "work", cfg: { ms: 0 }, dependsOn: ["short", "long", "deaf"] },
];

const database = useDatabase();

test("a worker that is told to stop finishes what is short and gives back what is long", async () => {
  const plant = await openPlant(database, { drainSeconds: DRAIN_SECONDS });
  await noteMoves(database);
  const [api, leaving] = await Promise.all([plant.start("api,scheduler"), plant.start("worker")]);
  const runId = await startRun(api, await define(api, NODES));
  const node = (nodeId: string, attempt: number) => ({ runId, nodeId, attempt });
  for (const nodeId of ["short", "long", "deaf"]) expect(await plant.began(node(nodeId, 1))).toBe(leaving.pid);
  const successor = await plant.start("worker");

  const toldAtMs = performance.now();
  leaving.kill("SIGTERM");
  await until(() => leaving.output().includes("Stopping after what is in flight"), "it to begin to stop");
  const expiry = await expiryOf(leaving.pid);
  await until(async () => (await expiryOf(leaving.pid)) > expiry, "a heartbeat while it waits for its nodes");
  await plant.openGate(node("short", 1));

  for (const nodeId of ["long", "deaf"]) expect(await plant.began(node(nodeId, 2))).toBe(successor.pid);
  expect(await leaving.exited).toBe(0);
  expect(performance.now() - toldAtMs).toBeLessThan(EXIT_MS_MAX);
  expect(await heldBy(database, leaving.pid)).toEqual([]);
  expect(await expiryOf(leaving.pid)).toBeNaN();

  for (const nodeId of ["long", "deaf"]) await plant.openGate(node(nodeId, 2));
  await runReaches(database, runId, "SUCCESS");
  const attempts = "select node_id, attempt, status, error from chains.job_run_attempt order by node_id";
  const givenBack = { attempt: 1, status: "STOPPED", error: "its worker was shut down" };
  expect(await database.query(attempts)).toEqual([
    { node_id: "deaf", ...givenBack },
    { node_id: "long", ...givenBack },
  ]);
  expect(await contradictions(database, plant, new Map([[runId, NODES]]))).toEqual([]);
  expect(await findViolations(database.db)).toEqual([]);
  expect(await Promise.all([successor.stop(), api.stop()])).toEqual([0, 0]);
});

/** When the session of a process runs out; not a number when it was closed. */
async function expiryOf(pid: number): Promise<number> {
  const [row] = await database.query<{ expires_at: Date }>(
    "select expires_at from kernel.session where process like '%:' || $1 and closed_at is null",
    [String(pid)],
  );
  return row?.expires_at.getTime() ?? Number.NaN;
}
