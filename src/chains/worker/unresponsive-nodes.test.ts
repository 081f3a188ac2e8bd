/** Nodes that do not heed their signal: they run on, but neither their slot nor their run waits for them for ever. */
import { describe, expect, test } from "vitest";
import { ACTOR, held, useChainProcesses } from "../../../test/chain-process.ts";
import { useDatabase } from "../../../test/database.ts";
import { signal, until } from "../../../test/until.ts";

const database = useDatabase();
const chains = useChainProcesses(database);
const { acts, define, ended, look } = chains;
const BY = { by: "test" };

/** A node that runs on until the test lets it go, and then brings something. */
function addDeaf(nodeId: string) {
  const { act, begun, release } = held({ stubborn: true });
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

describe("a node that does not heed its signal", () => {
  test.each(["stopped with its run", "completed by hand"])("frees its slot when it was %s", async (how) => {
    const process = await chains.open({ slots: 1, stopGraceSeconds: 1 });
    const deaf = addDeaf("deaf");
    const { runId } = await process.runs.start(await define(process, [{ id: "deaf" }]), BY);
    const [context] = await deaf.begun();
    const next = await process.runs.start(await define(process, [{ id: "next" }]), BY);
    if (how === "completed by hand") {
      await process.runs.complete(runId, { nodeId: "deaf", artifact: "by hand", reason: null }, ACTOR);
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
    await deaf.end();
    await process.worker.stop(); // What it still had to say is said.
    expect(await look(runId)).toEqual(run);
  });

  test("keeps its slot while nobody wants it to stop, however long it takes", async () => {
    const process = await chains.open({ slots: 1, stopGraceSeconds: 0 });
    const deaf = addDeaf("deaf");
    const { runId } = await process.runs.start(await define(process, [{ id: "deaf" }]), BY);
    await deaf.begun();
    await process.timers.runOnce();
    await deaf.end();
    expect(await ended(runId)).toMatchObject({ status: "SUCCESS", nodes: { deaf: { artifact: "late" } } });
    expect(process.logged).toEqual([]);
  });
});
