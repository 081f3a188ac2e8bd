/** Nodes that ignore their signal: they keep running, but their slot and their run do not wait for them forever. */
import { describe, expect, test } from "vitest";
import { ACTOR, held, useChainProcesses } from "../../../test/chain-process.ts";
import { useDatabase } from "../../../test/database.ts";
import { signal, until } from "../../../test/until.ts";

const database = useDatabase();
const chains = useChainProcesses(database);
const { acts, define, ended, look } = chains;
const BY = { by: "test" };

/** A node that ignores its signal until the test ends it, and then returns an artifact. */
function addUnresponsive(nodeId: string) {
  const { act, begun, release } = held({ ignoresAbort: true });
  const over = signal();
  acts.set(nodeId, async (ctx, cfg) => {
    await act(ctx, cfg);
    setImmediate(over.resolve);
    return { artifact: "late" };
  });
  return {
    begun,
    async end() {
      release();
      await over.promise;
    },
  };
}

describe("a node that ignores its signal", () => {
  test.each(["stopped with its run", "completed by hand"])("frees its slot when it is %s", async (how) => {
    const process = await chains.open({ slots: 1, stopGraceSeconds: 1 });
    const node = addUnresponsive("unresponsive");
    const { runId } = await process.runs.start(await define(process, [{ id: "unresponsive" }]), BY);
    const [context] = await node.begun();
    const next = await process.runs.start(await define(process, [{ id: "next" }]), BY);
    if (how === "completed by hand") {
      await process.runs.complete(runId, { nodeId: "unresponsive", artifact: "by hand", reason: null }, ACTOR);
    } else {
      await process.runs.stop(runId, ACTOR);
    }
    await until(() => context?.signal.aborted, "the signal");
    const began = performance.now();
    expect((await ended(next.runId)).status).toBe("SUCCESS");
    expect(performance.now() - began).toBeGreaterThan(800);
    expect(process.mostAtOnce).toBe(2);

    const run = await ended(runId);
    expect(run.status).toBe(how === "completed by hand" ? "SUCCESS" : "STOPPED");
    const left = process.logged.filter(({ message }) => message.includes("is abandoned"));
    expect(left).toHaveLength(1);
    await node.end();
    await process.worker.stop(); // Its late result is reported by now.
    expect(await look(runId)).toEqual(run);
  });

  test("keeps its slot as long as it is not aborted", async () => {
    const process = await chains.open({ slots: 1, stopGraceSeconds: 0 });
    const node = addUnresponsive("unresponsive");
    const { runId } = await process.runs.start(await define(process, [{ id: "unresponsive" }]), BY);
    await node.begun();
    await process.timers.runOnce();
    await node.end();
    expect(await ended(runId)).toMatchObject({ status: "SUCCESS", nodes: { unresponsive: { artifact: "late" } } });
    expect(process.logged).toEqual([]);
  });
});
