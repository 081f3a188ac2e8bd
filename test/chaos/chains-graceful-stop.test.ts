/**
 * SIGTERM to a worker with nodes in flight: nodes that end in time count, the others are released and run on another worker,
 * also those that ignore their signal.
 */
import { expect, test } from "vitest";
import { findViolations } from "../../src/chains/store/invariants.ts";
import { useDatabase } from "../database.ts";
import { until } from "../until.ts";
import { contradictions } from "./chains-audit.ts";
import { define, heldBy, openSetup, recordMoves, runReaches, startRun } from "./chains-setup.ts";

const DRAIN_SECONDS = 8; // Longer than the pause between two heartbeats.
const EXIT_MS_MAX = (DRAIN_SECONDS + 5) * 1_000;
const NODES = [
  { id: "short", type: "gated" },
  { id: "long", type: "gated" },
  { id: "unresponsive", type: "gated", cfg: { ignoresAbort: true } },
  { id: "last", type: "work", cfg: { ms: 0 }, dependsOn: ["short", "long", "unresponsive"] },
];

const database = useDatabase();

test("a worker that stops finishes short nodes and releases long ones", async () => {
  const setup = await openSetup(database, { drainSeconds: DRAIN_SECONDS });
  await recordMoves(database);
  const [api, leaving] = await Promise.all([setup.start("api,scheduler"), setup.start("worker")]);
  const runId = await startRun(api, await define(api, NODES));
  const node = (nodeId: string, attempt: number) => ({ runId, nodeId, attempt });
  for (const nodeId of ["short", "long", "unresponsive"]) expect(await setup.began(node(nodeId, 1))).toBe(leaving.pid);
  const successor = await setup.start("worker");

  const stoppedAtMs = performance.now();
  leaving.kill("SIGTERM");
  await until(() => leaving.output().includes("Stopping when the work in flight is done"), "it to start stopping");
  const expiry = await expiryOf(leaving.pid);
  await until(async () => (await expiryOf(leaving.pid)) > expiry, "a heartbeat while it waits for its nodes");
  await setup.openGate(node("short", 1));

  for (const nodeId of ["long", "unresponsive"]) expect(await setup.began(node(nodeId, 2))).toBe(successor.pid);
  expect(await leaving.exited).toBe(0);
  expect(performance.now() - stoppedAtMs).toBeLessThan(EXIT_MS_MAX);
  expect(await heldBy(database, leaving.pid)).toEqual([]);
  expect(await expiryOf(leaving.pid)).toBeNaN();

  for (const nodeId of ["long", "unresponsive"]) await setup.openGate(node(nodeId, 2));
  await runReaches(database, runId, "SUCCESS");
  const attempts = "select node_id, attempt, status, error from chains.job_run_attempt order by node_id";
  const released = { attempt: 1, status: "STOPPED", error: "its worker was shut down" };
  expect(await database.query(attempts)).toEqual([
    { node_id: "long", ...released },
    { node_id: "unresponsive", ...released },
  ]);
  expect(await contradictions(database, setup, new Map([[runId, NODES]]))).toEqual([]);
  expect(await findViolations(database.db)).toEqual([]);
  expect(await Promise.all([successor.stop(), api.stop()])).toEqual([0, 0]);
});

/** When the session of a process expires; NaN if it was closed. */
async function expiryOf(pid: number): Promise<number> {
  const [row] = await database.query<{ expires_at: Date }>(
    "select expires_at from kernel.session where process like '%:' || $1 and closed_at is null",
    [String(pid)],
  );
  return row?.expires_at.getTime() ?? Number.NaN;
}
