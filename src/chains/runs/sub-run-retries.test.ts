/** The next attempt of a node goes on with the child run of the one before: also if that has succeeded, or is still stopping. */
import { describe, expect, test } from "vitest";
import { ACTOR, type ChainProcess, held, useChainProcesses } from "../../../test/chain-process.ts";
import { useDatabase } from "../../../test/database.ts";
import { signal, until } from "../../../test/until.ts";
import { useSubRuns } from "./sub-runs.fixture.ts";
import { nodeReply } from "./view.ts";

const database = useDatabase();
const chains = useChainProcesses(database);
const { acts, begunNodes, define, ended, look } = chains;
const { childrenOf, childOf, startParent } = useSubRuns(database, chains);
const BY = { by: "test" };
const again = { downstream: false, dryRun: false, reason: null };
const fails = () => Promise.reject(new Error("no"));
const makeDue = () => database.query("update chains.live_node set due_at = now() where due_at is not null");
const LOCKS_WAITED_FOR = `select from pg_locks l join pg_database d on d.oid = l.database
   where d.datname = current_database() and l.locktype = 'advisory' and not l.granted`;

const subIs = (runId: string, status: string) =>
  until(async () => (await look(runId)).nodes["sub"]?.status === status, `the node to be ${status}`);
const waitOf = async ({ reads }: ChainProcess, runId: string) => {
  const row = await reads.node(runId, "sub");
  return nodeReply(row, row.def).waitingFor;
};

describe("a child run that has succeeded", () => {
  test("although its node had timed out is not repeated", async () => {
    const process = await chains.open({ roles: ["worker"] });
    const { act, begun, release } = held();
    acts.set("a", act);
    const retry = { maxAttempts: 2, backoffMs: 60_000 };
    const runId = await startParent(process, [{ id: "a" }], { timeoutMs: 60_000, retry });
    await process.timers.runOnce();
    const childId = await childOf(runId);
    await process.timers.runOnce();
    await begun();
    await makeDue();
    await process.timers.runOnce();
    await subIs(runId, "RETRYING");
    release();
    expect((await ended(childId)).status).toBe("SUCCESS");
    await makeDue();
    await until(async () => (await process.timers.runOnce())["released"] === 1, "the next attempt to be due");
    expect(await ended(runId)).toMatchObject({
      status: "SUCCESS",
      nodes: { sub: { attempt: 2, artifact: { runId: childId } } },
    });
    expect(await childrenOf(runId)).toEqual([childId]);
    expect(begunNodes()).toEqual(["a", "after"]);
  });

  test("is repeated if its node has succeeded with it and is to run once more", async () => {
    const process = await chains.open();
    acts.set("first", fails);
    await define(process, [{ id: "a" }], { name: "child" });
    const sub = { id: "sub", type: "chain", cfg: { name: "child" }, dependsOn: ["first"], runWhen: "all_done" };
    const { runId } = await process.runs.start(await define(process, [{ id: "first" }, sub]), BY);
    expect(await ended(runId)).toMatchObject({ status: "FAILED", nodes: { sub: { status: "SUCCESS" } } });
    acts.delete("first");
    await process.runs.retry(runId, { ...again, nodeId: "first", downstream: true }, ACTOR);
    expect(await ended(runId)).toMatchObject({ status: "SUCCESS", nodes: { sub: { attempt: 2 } } });
    expect(await childrenOf(runId)).toHaveLength(2);
  });
});

test("a child run that timed out while its last node succeeded is not repeated", async () => {
  const process = await chains.open();
  const { act, begun, release } = held({ ignoresAbort: true });
  acts.set("a", act);
  await define(process, [{ id: "a" }], { name: "child", runTimeoutMs: 300 });
  const sub = { id: "sub", type: "chain", cfg: { name: "child" }, retry: { maxAttempts: 2, backoffMs: 0 } };
  const { runId } = await process.runs.start(await define(process, [sub]), BY);
  await begun();
  const childId = await childOf(runId);
  await until(async () => (await look(childId)).status === "STOPPING", "the time-out");
  release();
  expect(await ended(runId)).toMatchObject({ status: "SUCCESS", nodes: { sub: { attempt: 2 } } });
  expect(await childrenOf(runId)).toEqual([childId]);
  expect(begunNodes()).toEqual(["a"]);
});

describe("while the child run of an earlier attempt is stopping, the next attempt", () => {
  /** A run whose node has timed out, while its child run does not react to the stop. */
  async function stuck(process: ChainProcess, type: "chain" | "map" = "chain") {
    const gate = signal();
    const begun = signal();
    acts.set("0", async ({ attempt }) => {
      begun.resolve();
      if (attempt > 1) return {};
      await gate.promise;
      throw new Error("stopped late");
    });
    await define(process, [{ id: "0" }], { name: "child" });
    const cfg = type === "chain" ? { name: "child" } : { over: [1], node: { type: "act" } };
    const retry = { maxAttempts: 2, backoffMs: 0 };
    const chainId = await define(process, [{ id: "sub", type, cfg, timeoutMs: 60_000, retry }, { id: "other" }]);
    const { runId } = await process.runs.start(chainId, BY);
    const childId = await childOf(runId);
    await begun.promise;
    await process.runs.stopChild(childId, "to be stopped");
    await makeDue();
    await process.timers.runOnce();
    await until(async () => (await look(runId)).nodes["sub"]?.attempt === 2, "the second attempt");
    await until(
      async () => (await database.query("select from chains.live_node where state = 'blocked'")).length > 0,
      "it to wait",
    );
    return { runId, childId, letStop: () => gate.resolve() };
  }

  test.each(["chain", "map"] as const)("of a node of type %s waits for its end, and is not counted", async (type) => {
    const process = await chains.open({ slots: 2 });
    const { runId, childId, letStop } = await stuck(process, type);
    expect((await look(runId)).nodes["sub"]).toMatchObject({ status: "RETRYING", attempt: 2 });
    expect(await waitOf(process, runId)).toBe(`run ${childId}, which an earlier attempt started, to stop`);
    // Only the node of the child run holds a slot.
    expect(await database.query("select node_id from chains.live_node where state = 'leased'")).toHaveLength(1);
    letStop();
    expect(await ended(runId)).toMatchObject({ status: "SUCCESS", nodes: { sub: { attempt: 2 } } });
    expect(await childrenOf(runId)).toEqual([childId]);
    const attempts = await process.reads.attempts(runId, "sub");
    expect(attempts.map(({ attempt, status }) => [attempt, status])).toEqual([
      [1, "FAILED"],
      [2, "SUCCESS"],
    ]);
  });

  test("is stopped at once with its own run, and a resume goes on with the same child run", async () => {
    const process = await chains.open();
    const { runId, childId, letStop } = await stuck(process);
    await process.runs.stop(runId, ACTOR);
    expect(await ended(runId)).toMatchObject({ status: "STOPPED", nodes: { sub: { status: "STOPPED", attempt: 1 } } });
    await process.runs.resume(runId, ACTOR);
    letStop();
    expect((await ended(runId)).status).toBe("SUCCESS");
    expect(await childrenOf(runId)).toEqual([childId]);
  });

  test("goes on when the process that should report the end of the child run has died", async () => {
    const process = await chains.open();
    const { runId, childId, letStop } = await stuck(process);
    await process.timers.stop();
    // As if the process had died between the end of the child run and the report to its parent.
    await database.query(
      `with run as (update chains.job_run set status = 'STOPPED', ended_at = now() where run_id = $1), node as (
         update chains.job_run_node set status = 'STOPPED', ended_at = now() where run_id = $1
       ), live as (delete from chains.live_node where run_id = $1)
       delete from chains.live_run where run_id = $1`,
      [childId],
    );
    const other = await chains.open({ roles: ["scheduler"] });
    expect(await ended(runId)).toMatchObject({ status: "SUCCESS", nodes: { sub: { attempt: 2 } } });
    expect(await childrenOf(runId)).toEqual([childId]);
    expect(other.logged).toEqual([]);
    letStop();
  });

  test("waits, too, if the stop begins just before it is parked", async () => {
    const process = await chains.open({ roles: ["worker"] });
    const late = held({ ignoresAbort: true });
    acts.set("a", (ctx, cfg) => (ctx.attempt === 1 ? late.act(ctx, cfg) : {}));
    await define(process, [{ id: "a" }], { name: "child" });
    const asks = { subRun: { of: { chain: "child" }, params: {}, opTime: null } };
    const [second, gate] = [signal(), signal()];
    acts.set("sub", async ({ attempt }) => {
      if (attempt === 1) return asks;
      second.resolve();
      await gate.promise;
      return asks;
    });
    const retry = { maxAttempts: 2, backoffMs: 0 };
    const { runId } = await process.runs.start(await define(process, [{ id: "sub", timeoutMs: 60_000, retry }]), BY);
    await process.timers.runOnce();
    const childId = await childOf(runId);
    await process.timers.runOnce();
    await late.begun();
    await makeDue();
    await process.timers.runOnce(); // The first attempt times out.
    await second.promise;
    await database.db.exclusive(async (client) => {
      await client.query("begin");
      await client.query("select pg_advisory_xact_lock(hashtextextended('chains.run ' || $1, 0))", [runId]);
      gate.resolve();
      await until(async () => (await database.query(LOCKS_WAITED_FOR)).length > 0, "the second attempt to be parked");
      await process.runs.stopChild(childId, "to be stopped");
      await client.query("commit");
    });
    await until(
      async () => (await database.query("select from chains.live_node where state = 'blocked'")).length > 0,
      "it to wait",
    );
    late.release();
    await until(async () => {
      await process.timers.runOnce();
      return (await look(runId)).status === "SUCCESS";
    }, "the run to succeed");
    expect((await look(runId)).nodes["sub"]?.attempt).toBe(2);
    expect(await childrenOf(runId)).toEqual([childId]);
  });
});

test("a child run that a node waits for again is not stopped as an orphan", async () => {
  const process = await chains.open();
  const { act, begun, release } = held();
  acts.set("a", act);
  const runId = await startParent(process, [{ id: "a" }]);
  await begun();
  const childId = await childOf(runId);
  await process.runs.stopOrphan(childId); // The timers found it orphaned a moment ago.
  expect((await look(childId)).status).toBe("RUNNING");
  release();
  expect((await ended(runId)).status).toBe("SUCCESS");
});
