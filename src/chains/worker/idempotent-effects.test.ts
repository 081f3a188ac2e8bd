/** `ctx.key`: the same for as long as nobody knows whether the effect has happened, another once somebody does. */
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

/** Makes `nodeId` do this at its attempts, one after the other, and succeed afterwards; answers the keys that it was given. */
function script(nodeId: string, attempts: readonly ("held" | "fails" | "fails for good")[]) {
  const keys: string[] = [];
  acts.set(nodeId, (ctx, cfg) => {
    keys.push(ctx.key);
    const what = attempts[ctx.attempt - 1];
    if (what === "held") return held({ stubborn: true }).act(ctx, cfg);
    if (what === undefined) return {};
    throw what === "fails" ? new Error("not yet") : new FinalFailure("never");
  });
  return { keys, begun: (count: number) => until(() => keys.length === count, `attempt ${count} of ${nodeId}`) };
}

/** A worker of its own that runs attempt `count` and is then gone. */
async function loseWorker(begun: (count: number) => Promise<unknown>, count: number): Promise<void> {
  const victim = await chains.open({ roles: ["worker"], slots: 1 }); // Which stays taken, so it takes nothing more.
  await begun(count);
  await victim.fallSilent();
}

describe("the key of a node", () => {
  test.each(["fell silent", "was shut down"])("stays the same when its worker %s", async (how) => {
    const scheduler = await chains.open({ roles: ["scheduler"] });
    const first = await chains.open({ roles: ["worker"], slots: 1 });
    const { keys, begun } = script("n0", ["held"]);
    const { runId } = await scheduler.runs.start(await define(scheduler, [{ id: "n0" }]), BY);
    await begun(1);
    await (how === "fell silent" ? first.fallSilent() : first.worker.stop());
    await scheduler.timers.runOnce();
    await chains.open({ roles: ["worker"] });
    expect(await ended(runId)).toMatchObject({ status: "SUCCESS", nodes: { n0: { attempt: 2 } } });
    expect(keys).toEqual([`${runId}/n0/1`, `${runId}/n0/1`]);
  });

  test("changes after a failure that was reported, and then stays the same again", async () => {
    const scheduler = await chains.open({ roles: [] });
    const { keys, begun } = script("n0", ["held", "fails", "held", "held"]);
    const retry = { maxAttempts: 2, backoffMs: 0 };
    const { runId } = await scheduler.runs.start(await define(scheduler, [{ id: "n0", retry }]), BY);
    await scheduler.timers.runOnce();
    await loseWorker(begun, 1);
    await scheduler.timers.runOnce();
    await loseWorker(begun, 3); // The second fails, and the third is with the same worker.
    await scheduler.timers.runOnce();
    await loseWorker(begun, 4);
    await scheduler.timers.runOnce();
    await chains.open({ roles: ["worker"] });
    expect((await ended(runId)).status).toBe("SUCCESS");
    expect(keys).toEqual([1, 1, 3, 3, 3].map((number) => `${runId}/n0/${number}`));
  });

  test("changes after a retry by hand", async () => {
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

  test("stays the same when the node is handed over to the worker that ended its parent", async () => {
    const scheduler = await chains.open({ roles: [] });
    script("parent", ["fails for good"]);
    const { keys, begun } = script("n0", ["held"]);
    const nodes = [{ id: "parent" }, { id: "n0", dependsOn: ["parent"], runWhen: "all_done" }];
    const { runId } = await scheduler.runs.start(await define(scheduler, nodes), BY);
    await scheduler.timers.runOnce();
    await loseWorker(begun, 1);
    await scheduler.timers.runOnce();
    expect((await look(runId)).nodes["n0"]).toMatchObject({ status: "RETRYING", attempt: 2 });
    await scheduler.runs.retry(runId, { ...again, nodeId: "parent" }, ACTOR); // Now it has to wait once more.
    await chains.open({ roles: ["worker"] });
    expect(await ended(runId)).toMatchObject({ status: "SUCCESS", nodes: { parent: { attempt: 2 } } });
    expect(keys).toEqual([`${runId}/n0/1`, `${runId}/n0/1`]);
  });
});
