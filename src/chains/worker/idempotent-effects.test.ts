/** `ctx.key` stays the same while it is unknown whether the effect has happened, and changes after a reported result. */
import { describe, expect, test } from "vitest";
import { ACTOR, held, useChainProcesses } from "../../../test/chain-process.ts";
import { useDatabase } from "../../../test/database.ts";
import { until } from "../../../test/until.ts";
import { FinalFailure } from "../types/node-type.ts";

const database = useDatabase();
const chains = useChainProcesses(database);
const { acts, define, ended, look } = chains;
const BY = { by: "test" };
const again = { downstream: false, dryRun: false, reason: null };

/** Scripts the attempts of `nodeId`; it succeeds after the last of them. Returns the keys that it received. */
function script(nodeId: string, attempts: readonly ("held" | "fails" | "fails for good")[]) {
  const keys: string[] = [];
  acts.set(nodeId, (ctx, cfg) => {
    keys.push(ctx.key);
    const what = attempts[ctx.attempt - 1];
    if (what === "held") return held({ ignoresAbort: true }).act(ctx, cfg);
    if (what === undefined) return {};
    throw what === "fails" ? new Error("not yet") : new FinalFailure("never");
  });
  return { keys, begun: (count: number) => until(() => keys.length === count, `attempt ${count} of ${nodeId}`) };
}

/** A new worker that starts attempt `count` and is then lost. */
async function loseWorker(begun: (count: number) => Promise<unknown>, count: number): Promise<void> {
  const victim = await chains.open({ roles: ["worker"], slots: 1 }); // The slot stays occupied, so it claims nothing more.
  await begun(count);
  await victim.expireSession();
}

describe("the key of a node", () => {
  test.each(["was lost", "was shut down"])("stays the same when its worker %s", async (how) => {
    const scheduler = await chains.open({ roles: ["scheduler"] });
    const first = await chains.open({ roles: ["worker"], slots: 1 });
    const { keys, begun } = script("n0", ["held"]);
    const { runId } = await scheduler.runs.start(await define(scheduler, [{ id: "n0" }]), BY);
    await begun(1);
    await (how === "was lost" ? first.expireSession() : first.worker.stop());
    await scheduler.timers.runOnce();
    await chains.open({ roles: ["worker"] });
    expect(await ended(runId)).toMatchObject({ status: "SUCCESS", nodes: { n0: { attempt: 2 } } });
    expect(keys).toEqual([`${runId}/n0/1`, `${runId}/n0/1`]);
  });

  test("changes after a reported failure, and then stays the same again", async () => {
    const scheduler = await chains.open({ roles: [] });
    const { keys, begun } = script("n0", ["held", "fails", "held", "held"]);
    const retry = { maxAttempts: 2, backoffMs: 0 };
    const { runId } = await scheduler.runs.start(await define(scheduler, [{ id: "n0", retry }]), BY);
    await scheduler.timers.runOnce();
    await loseWorker(begun, 1);
    await scheduler.timers.runOnce();
    await loseWorker(begun, 3); // The second attempt fails, and the same worker starts the third.
    await scheduler.timers.runOnce();
    await loseWorker(begun, 4);
    await scheduler.timers.runOnce();
    await chains.open({ roles: ["worker"] });
    expect((await ended(runId)).status).toBe("SUCCESS");
    expect(keys).toEqual([1, 1, 3, 3, 3].map((number) => `${runId}/n0/${number}`));
  });

  test("changes after a manual retry", async () => {
    const scheduler = await chains.open({ roles: [] });
    const { keys, begun } = script("n0", ["held", "fails for good"]);
    const { runId } = await scheduler.runs.start(await define(scheduler, [{ id: "n0" }]), BY);
    await scheduler.timers.runOnce();
    await loseWorker(begun, 1);
    await scheduler.timers.runOnce();
    await chains.open({ roles: ["worker"] });
    expect((await ended(runId)).status).toBe("FAILED");
    await scheduler.runs.retry(runId, again, ACTOR);
    expect((await ended(runId)).status).toBe("SUCCESS");
    expect(keys).toEqual([1, 1, 3].map((number) => `${runId}/n0/${number}`));
  });

  test("stays the same when the worker that ended its parent adopts the node", async () => {
    const scheduler = await chains.open({ roles: [] });
    script("parent", ["fails for good"]);
    const { keys, begun } = script("n0", ["held"]);
    const nodes = [{ id: "parent" }, { id: "n0", dependsOn: ["parent"], runWhen: "all_done" }];
    const { runId } = await scheduler.runs.start(await define(scheduler, nodes), BY);
    await scheduler.timers.runOnce();
    await loseWorker(begun, 1);
    await scheduler.timers.runOnce();
    expect((await look(runId)).nodes["n0"]).toMatchObject({ status: "RETRYING", attempt: 2 });
    await scheduler.runs.retry(runId, { ...again, nodeId: "parent" }, ACTOR); // Now it has to wait for its parent again.
    await chains.open({ roles: ["worker"] });
    expect(await ended(runId)).toMatchObject({ status: "SUCCESS", nodes: { parent: { attempt: 2 } } });
    expect(keys).toEqual([`${runId}/n0/1`, `${runId}/n0/1`]);
  });
});
