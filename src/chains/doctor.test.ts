/** The doctor finds each kind of inconsistency that a test plants, and none in a consistent database. */
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { type ChainProcess, held, useChainProcesses } from "../../test/chain-process.ts";
import { useDatabase } from "../../test/database.ts";
import { until } from "../../test/until.ts";
import { chainsChecks } from "./doctor.ts";
import { findViolations } from "./store/invariants.ts";

const database = useDatabase();
const chains = useChainProcesses(database);
const { acts, define, look } = chains;

const RULES = {
  counters: "the counters of a node equal its unmet, failed and skipped parents",
  running: "a node is RUNNING exactly while it is leased or parked",
  waiting: "a node is waiting, delayed, blocked or ready exactly while it is PENDING or RETRYING",
  liveRuns: "a run is live exactly while it is RUNNING or STOPPING",
  runCounts: "the counters of a live run equal its open, failed and stopped nodes",
  withoutRun: "every live node has a live run",
  fences: "no two leased nodes share a fence",
  stuck: "a waiting node has an unmet parent or table",
};

const check = async (name: string) => {
  const found = chainsChecks.find((candidate) => candidate.name === name);
  if (!found) throw new Error(`there is no check ${name}`);
  return found.look(database.db);
};

let process: ChainProcess;
let runId: string;
/** A RUNNING run whose nodes a and b are ready; c waits for both. */
beforeEach(async () => {
  process = await chains.open({ roles: [] });
  const chainId = await define(process, [{ id: "a" }, { id: "b" }, { id: "c", dependsOn: ["a", "b"] }]);
  runId = (await process.runs.start(chainId, { by: "test" })).runId;
  await process.timers.runOnce();
});
// Runs before the helper checks the invariants.
afterEach(() =>
  database.query(
    "truncate chains.live_node, chains.live_wait, chains.live_run, chains.job_run_node, chains.job_run cascade",
  ),
);

const setLive = (nodeId: string, set: string) =>
  database.query(`update chains.live_node set ${set} where node_id = $1`, [nodeId]);
const setNode = (nodeId: string, set: string) =>
  database.query(`update chains.job_run_node set ${set} where node_id = $1`, [nodeId]);
const deleteLive = (nodeId: string) => database.query("delete from chains.live_node where node_id = $1", [nodeId]);
const lease = async (nodeId: string, session: string, fence: number) => {
  await setLive(nodeId, `state = 'leased', session_id = ${session}, fence = ${fence}`);
  await setNode(nodeId, "status = 'RUNNING', attempt = 1, started_at = now()");
};
const LIVE_SESSION = "(select max(id) from kernel.session)";

describe("the check of the chains' state", () => {
  test.each<[string, () => Promise<unknown>, (keyof typeof RULES)[]]>([
    ["a count of parents that is too high", () => setLive("c", "waiting = 3"), ["counters"]],
    ["a count of parents that is too low", () => setLive("c", "waiting = 1"), ["counters"]],
    ["a failed parent too many", () => setLive("c", "failed = 1"), ["counters"]],
    ["a skipped parent too many", () => setLive("c", "skipped = 1"), ["counters"]],
    [
      "a wait for a table that is not counted",
      () =>
        database.query(
          `insert into chains.live_wait (run_id, node_id, table_name, op_time) select run_id, 'c', 'T', '20250101'
           from chains.live_run`,
        ),
      ["counters"],
    ],
    [
      "a RUNNING node without a live row",
      async () => {
        await setNode("a", "status = 'RUNNING', attempt = 1, started_at = now()");
        await deleteLive("a");
      },
      ["running"],
    ],
    [
      "a leased node that is not RUNNING",
      () => setLive("a", `state = 'leased', session_id = ${LIVE_SESSION}, fence = 1`),
      ["running", "waiting"],
    ],
    [
      "a parked node that is not RUNNING",
      () => setLive("a", "state = 'parked', child_run_id = run_id"),
      ["running", "waiting"],
    ],
    ["a PENDING node without a live row", () => deleteLive("c"), ["waiting"]],
    [
      "a live row of a node that has ended",
      async () => {
        await setNode("c", "status = 'SUCCESS', ended_at = now()");
        await database.query("update chains.live_run set open = 2");
      },
      ["waiting"],
    ],
    [
      "a live run that has ended",
      () => database.query("update chains.job_run set status = 'FAILED', ended_at = now()"),
      ["liveRuns"],
    ],
    [
      "a run that is STOPPING in one table only",
      () => database.query("update chains.job_run set status = 'STOPPING'"),
      ["liveRuns"],
    ],
    ["an open node too many", () => database.query("update chains.live_run set open = 4"), ["runCounts"]],
    ["a failed node too many", () => database.query("update chains.live_run set failed = 1"), ["runCounts"]],
    ["a stopped node too many", () => database.query("update chains.live_run set stopped = 1"), ["runCounts"]],
    [
      "live nodes without a live run",
      () => database.query("delete from chains.live_run"),
      ["waiting", "liveRuns", "withoutRun"],
    ],
    [
      "a fence that two nodes share",
      async () => {
        await lease("a", LIVE_SESSION, 7);
        await lease("b", LIVE_SESSION, 7);
      },
      ["fences"],
    ],
    ["a node that waits for nothing", () => setLive("a", "state = 'waiting'"), ["stuck"]],
  ])("finds %s", async (_what, plant, rules) => {
    expect(await check("chain state")).toMatchObject({ verdict: "ok" });
    await plant();
    const violations = await findViolations(database.db);
    expect(violations.map(({ rule }) => rule).sort()).toEqual(rules.map((rule) => RULES[rule]).sort());
    for (const { count, example } of violations) {
      expect(count).toBeGreaterThan(0);
      expect(example).toContain(runId);
    }
    const finding = await check("chain state");
    expect(finding).toMatchObject({ verdict: "broken", advice: expect.stringContaining("report") });
    for (const rule of rules) expect(finding.found).toContain(RULES[rule]);
  });

  test("finds nothing wrong in any state of a run", async () => {
    const { act, begun, release } = held();
    acts.set("a", act);
    acts.set("b", ({ attempt }) => (attempt === 1 ? Promise.reject(new Error("once")) : {}));
    const chainId = await define(process, [
      { id: "a" },
      { id: "b", retry: { maxAttempts: 2, backoffMs: 60_000 } },
      { id: "sub", type: "map", cfg: { over: [1], node: { type: "act" } } },
      { id: "c", dependsOn: ["a", "b"], waitsFor: ["T"] },
      { id: "d", dependsOn: ["b"], runWhen: "one_failed" },
    ]);
    acts.set("0", act);
    const worker = await chains.open({ roles: ["worker", "scheduler"] });
    const started = await worker.runs.start(chainId, { by: "test", opTime: "20250101" });
    await begun(3); // Nodes are leased, parked, delayed, waiting for a table and waiting for parents.
    await until(async () => (await look(started.runId)).nodes["b"]?.status === "RETRYING", "a delayed node");
    expect(await check("chain state")).toEqual({ verdict: "ok", found: "Runs, nodes, counters and leases agree." });
    release();
  });
});

describe("the check of the chains' leases", () => {
  const session = async (expiresIn: string) => {
    const [row] = await database.query<{ id: string }>(
      `insert into kernel.session (process, roles, version, expires_at)
       values ('gone', '{}', '0', now() + $1::interval) returning id`,
      [expiresIn],
    );
    return row?.id ?? "";
  };

  test("is ok while the sessions of the workers live or have just expired", async () => {
    expect(await check("chain leases")).toEqual({ verdict: "ok", found: "In flight: 0 nodes." });
    await lease("a", await session("1 minute"), 1);
    await lease("b", await session("-5 seconds"), 2);
    expect(await check("chain leases")).toEqual({ verdict: "ok", found: "In flight: 2 nodes." });
  });

  test("finds a node whose session expired long ago", async () => {
    await lease("a", await session("-100 seconds"), 1);
    const finding = await check("chain leases");
    expect(finding).toMatchObject({ verdict: "broken", advice: expect.stringContaining("`scheduler`") });
    expect(finding.found).toMatch(/expired 100 s ago/);
  });

  test("finds a node whose session does not exist", async () => {
    await lease("a", "987654321", 1);
    expect(await check("chain leases")).toMatchObject({
      verdict: "broken",
      found: "In flight: 1 node. Held by a process that no longer exists: 1.",
    });
  });
});
