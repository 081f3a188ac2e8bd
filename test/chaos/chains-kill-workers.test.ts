/**
 * Workers are killed at random moments during runs. Another worker starts their nodes within 30 s, nothing counts twice, and
 * every run ends with SUCCESS. The long suite waits until the sessions of killed workers expire by themselves.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { expect, test } from "vitest";
import { findViolations } from "../../src/chains/store/invariants.ts";
import { useDatabase } from "../database.ts";
import { seededRandom } from "../random.ts";
import type { Server } from "../server.ts";
import { until } from "../until.ts";
import { contradictions } from "./chains-audit.ts";
import { createChainsLoad } from "./chains-load.ts";
import {
  endSessionOf,
  heldBy,
  type Move,
  moves,
  type NodeAttempt,
  nowMs,
  openSetup,
  recordMoves,
} from "./chains-setup.ts";

const LONG = process.env["MILLRACE_TEST_LONG"] !== undefined;
const SECONDS = LONG ? 60 : 4;
const [BETWEEN_KILLS_MS_MIN, BETWEEN_KILLS_MS_MAX] = LONG ? [500, 5_000] : [200, 1_200];
const RECOVERY_MS_MAX = 30_000;
const ROLES = "scheduler,worker";

const database = useDatabase();

test(`runs end correctly while workers are killed for ${SECONDS} s`, {
  timeout: 120_000 + SECONDS * 1_000,
}, async () => {
  const random = seededRandom();
  const setup = await openSetup(database, { slots: 10, lostLimit: 1_000 });
  await recordMoves(database);
  const api = await setup.start("api");
  const workers = [setup.start(ROLES), setup.start(ROLES)];
  await Promise.all(workers);
  const load = await createChainsLoad({ store: database, random }, api);
  const orphans: (NodeAttempt & { killedAtMs: number })[] = [];

  /** Its replacement may still be starting when the other one is killed: then no worker runs for a while. */
  async function killOne(): Promise<void> {
    const index = random.between(0, workers.length - 1);
    const victim = (await workers[index]) as Server;
    victim.kill("SIGKILL");
    expect(await victim.exited).toBe("SIGKILL");
    const killedAtMs = await nowMs(database);
    for (const held of await heldBy(database, victim.pid)) orphans.push({ ...held, killedAtMs });
    if (!LONG) await endSessionOf(database, victim.pid);
    workers[index] = setup.start(ROLES);
  }

  load.start(api);
  let kills = 0;
  const end = performance.now() + SECONDS * 1_000;
  while (performance.now() < end) {
    await sleep(random.between(BETWEEN_KILLS_MS_MIN, BETWEEN_KILLS_MS_MAX));
    await killOne();
    kills += 1;
  }
  await load.stop();
  const recoveries = async () => {
    const made = await moves(database);
    return orphans.map((orphan) => recoveryMs(orphan, made));
  };
  await until(async () => (await recoveries()).every(Boolean), "all orphaned nodes to be reclaimed");
  await load.ended();

  const slowestMs = Math.max(...(await recoveries()).map((ms) => ms ?? Number.POSITIVE_INFINITY));
  console.info(
    `${kills} kills, ${load.acknowledged.size} runs, ${orphans.length} orphaned nodes, reclaimed after ${Math.round(slowestMs)} ms at most`,
  );
  expect(slowestMs).toBeLessThan(RECOVERY_MS_MAX);
  expect(orphans.length).toBeGreaterThan(0);
  expect(await contradictions(database, setup, load.acknowledged)).toEqual([]);
  expect(await findViolations(database.db)).toEqual([]);
  const servers = [api, ...(await Promise.all(workers))];
  expect(await Promise.all(servers.map((server) => server.stop()))).toEqual([0, 0, 0]);
});

/** The time until another worker started the node again, or until the killed worker's last result was committed. */
function recoveryMs(orphan: NodeAttempt & { killedAtMs: number }, made: readonly Move[]): number | undefined {
  const next = made.find(
    ({ runId, nodeId, attempt, after }) =>
      runId === orphan.runId &&
      nodeId === orphan.nodeId &&
      (after === "RUNNING" ? attempt > orphan.attempt : after === "SUCCESS"),
  );
  return next && Math.max(1, next.atMs - orphan.killedAtMs);
}
