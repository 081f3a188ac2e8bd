/**
 * A worker is suspended until its session expires, and then continues. Its nodes have run on another worker: its results do not
 * count, and it works with a new session.
 */
import { expect, test } from "vitest";
import { findViolations } from "../../src/chains/store/invariants.ts";
import { useDatabase } from "../database.ts";
import { until } from "../until.ts";
import { contradictions } from "./chains-audit.ts";
import { define, moves, nowMs, openSetup, recordMoves, runReaches, startRun } from "./chains-setup.ts";

const RECOVERY_MS_MAX = 30_000;
const NODES = [
  { id: "ended", type: "gated" },
  { id: "running", type: "gated" },
  { id: "last", type: "work", cfg: { ms: 0 }, dependsOn: ["ended", "running"] },
];

const database = useDatabase();

test("a worker suspended past its session changes nothing, and then continues to work", {
  timeout: 90_000,
}, async () => {
  const setup = await openSetup(database, {});
  await recordMoves(database);
  const [api, zombie] = await Promise.all([setup.start("api,scheduler"), setup.start("worker")]);
  const chainId = await define(api, NODES);
  const runId = await startRun(api, chainId);
  const attempts = (attempt: number) => ["ended", "running"].map((nodeId) => ({ runId, nodeId, attempt }));
  for (const one of attempts(1)) expect(await setup.began(one)).toBe(zombie.pid);
  zombie.kill("SIGSTOP");
  const suspendedAtMs = await nowMs(database);

  const successor = await setup.start("worker");
  for (const one of attempts(2)) expect(await setup.began(one)).toBe(successor.pid);
  for (const { after, attempt, atMs } of await moves(database)) {
    if (after === "RUNNING" && attempt === 2) expect(atMs - suspendedAtMs).toBeLessThan(RECOVERY_MS_MAX);
  }
  await setup.openGate({ runId, nodeId: "ended", attempt: 2 });
  await until(async () => (await moves(database)).some(({ after }) => after === "SUCCESS"), "the first node to end");

  // Both gates are open before it wakes, so it has its results before it can notice that its session expired.
  const rows = () => database.query("select * from chains.job_run_node where run_id = $1 order by node_no", [runId]);
  const before = await rows();
  expect(before).toMatchObject([
    { status: "SUCCESS", attempt: 2, artifact_json: { pid: successor.pid } },
    { status: "RUNNING", attempt: 2 },
    { status: "PENDING", attempt: 0 },
  ]);
  for (const one of attempts(1)) await setup.openGate(one);
  zombie.kill("SIGCONT");
  // Whichever comes first: a result, or the heartbeat that finds the session expired.
  const dropped = () => [
    ...zombie.logged("the result of a node came too late and was dropped"),
    ...zombie.logged("a run lost its lease; it is aborted and its result dropped"),
  ];
  await until(() => dropped().length === 2, "both late results to be dropped");
  expect(await rows()).toEqual(before);

  await setup.openGate({ runId, nodeId: "running", attempt: 2 });
  await runReaches(database, runId, "SUCCESS");
  expect(await successor.stop()).toBe(0);

  const again = await startRun(api, chainId);
  const begun = await setup.began({ runId: again, nodeId: "running", attempt: 1 });
  expect(begun).toBe(zombie.pid);
  for (const { nodeId } of attempts(1)) await setup.openGate({ runId: again, nodeId, attempt: 1 });
  await runReaches(database, again, "SUCCESS");
  expect(zombie.output()).toContain("it goes on with a new session");

  const expected = new Map([runId, again].map((id) => [id, NODES]));
  expect(await contradictions(database, setup, expected)).toEqual([]);
  expect(await findViolations(database.db)).toEqual([]);
  expect(await Promise.all([zombie.stop(), api.stop()])).toEqual([0, 0]);
});
