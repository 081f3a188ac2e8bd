/** Nodes that no longer wait for their child run: they timed out, were completed, or were stopped. */
import { describe, expect, test } from "vitest";
import { ACTOR, held, useChainProcesses } from "../../../test/chain-process.ts";
import { useDatabase } from "../../../test/database.ts";
import { until } from "../../../test/until.ts";
import { useSubRuns } from "./sub-runs.fixture.ts";

const database = useDatabase();
const chains = useChainProcesses(database);
const { acts, define, ended, look } = chains;
const { childrenOf, childOf, startParent } = useSubRuns(database, chains);
const BY = { by: "test" };
const ORPHANED = { status: "STOPPED", reason: "no node waits for it anymore" };
const makeDue = () => database.query("update chains.live_node set due_at = now() where due_at is not null");

describe("a node whose child run exceeds its timeoutMs", () => {
  test.each([
    ["chain", { name: "slow" }],
    ["map", { over: [1, 2], node: { type: "act" } }],
  ])("fails, and its child run is stopped: %s", async (type, cfg) => {
    const process = await chains.open();
    const { act, begun: begin } = held();
    for (const id of ["a", "0", "1"]) acts.set(id, act);
    await define(process, [{ id: "a" }], { name: "slow" });
    const chainId = await define(process, [{ id: "sub", type, cfg, timeoutMs: 300 }, { id: "free" }]);
    const { runId } = await process.runs.start(chainId, BY);
    const [context] = await begin();
    expect(await ended(runId)).toMatchObject({
      status: "FAILED",
      nodes: { sub: { status: "FAILED", attempt: 1, error: "it took longer than its 300 ms" } },
    });
    expect(await ended(await childOf(runId))).toMatchObject(ORPHANED);
    expect(context?.signal.aborted).toBe(true);
  });

  test("is retried with the same child run and its full time", async () => {
    const process = await chains.open({ roles: ["worker"] });
    const { act, begun: begin } = held();
    acts.set("a", act);
    const retry = { maxAttempts: 2, backoffMs: 60_000 };
    const runId = await startParent(process, [{ id: "a" }], { timeoutMs: 60_000, retry });
    await process.timers.runOnce();
    const childId = await childOf(runId);
    await process.timers.runOnce();
    await begin();
    expect(await process.timers.runOnce()).toMatchObject({ children_timed_out: 0, children_stopped: 0 });
    await makeDue();
    expect(await process.timers.runOnce()).toMatchObject({ children_timed_out: 1 });
    expect((await look(runId)).nodes["sub"]).toMatchObject({
      status: "RETRYING",
      error: "it took longer than its 60000 ms",
    });
    expect(await process.timers.runOnce()).toMatchObject({ children_stopped: 1 });
    expect(await ended(childId)).toMatchObject(ORPHANED);
    await makeDue();
    // One pass may skip it: the late report that its child run has ended locks the node for a moment.
    await until(async () => (await process.timers.runOnce())["released"] === 1, "the next attempt to be due");
    await begin(2);
    const live = await until(
      async () =>
        (
          await database.query<{ seconds: number }>(
            "select extract(epoch from due_at - now())::float8 as seconds from chains.live_node where state = 'parked'",
          )
        )[0],
      "the node to wait again",
    );
    expect(live.seconds).toBeGreaterThan(50);
    acts.clear();
    await process.runs.complete(childId, { nodeId: "a", artifact: null, reason: null }, ACTOR);
    expect(await ended(runId)).toMatchObject({ status: "SUCCESS", nodes: { sub: { attempt: 2 } } });
    expect(await childrenOf(runId)).toEqual([childId]);
  });

  test("has its old child run stopped when its next attempt starts another", async () => {
    const process = await chains.open({ roles: ["worker"] });
    const { act, begun: begin, release } = held();
    acts.set("a", act);
    const runId = await startParent(process, [{ id: "a" }], {
      // biome-ignore lint/suspicious/noTemplateCurlyInString: a template of chains.
      cfg: { name: "child", params: { attempt: "${node.attempt}" } },
      timeoutMs: 60_000,
      retry: { maxAttempts: 2, backoffMs: 0 },
    });
    await process.timers.runOnce();
    const first = await childOf(runId);
    await process.timers.runOnce();
    await begin();
    await makeDue();
    await process.timers.runOnce();
    const second = await until(async () => (await childrenOf(runId))[1], "the second run");
    expect(await process.timers.runOnce()).toMatchObject({ children_stopped: 1 });
    expect(await ended(first)).toMatchObject(ORPHANED);
    expect((await look(second)).status).toBe("RUNNING");
    release();
    expect(await ended(runId)).toMatchObject({ status: "SUCCESS", nodes: { sub: { attempt: 2 } } });
  });
});

describe("a child run is not left running", () => {
  test("when the node that waits for it is completed by hand", async () => {
    const process = await chains.open();
    const { act, begun: begin } = held();
    acts.set("a", act);
    const runId = await startParent(process, [{ id: "a" }]);
    await begin();
    await process.runs.complete(runId, { nodeId: "sub", artifact: "by hand", reason: null }, ACTOR);
    expect(await ended(runId)).toMatchObject({ status: "SUCCESS", nodes: { sub: { artifact: "by hand" } } });
    expect(await ended(await childOf(runId))).toMatchObject(ORPHANED);
  });

  test("if its node requests it while its own run is STOPPING: it is not started", async () => {
    const process = await chains.open();
    const { act, begun: begin, release } = held({ ignoresAbort: true });
    acts.set("asks", async (ctx, cfg) => {
      await act(ctx, cfg);
      return { subRun: { of: { chain: "child" }, params: {}, opTime: null } };
    });
    await define(process, [{ id: "a" }], { name: "child" });
    const { runId } = await process.runs.start(await define(process, [{ id: "asks" }]), BY);
    await begin();
    await process.runs.stop(runId, ACTOR);
    release();
    expect(await ended(runId)).toMatchObject({ status: "STOPPED", nodes: { asks: { status: "STOPPED" } } });
    expect(await childrenOf(runId)).toEqual([]);
  });
});
