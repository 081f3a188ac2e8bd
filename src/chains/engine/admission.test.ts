/** maxActiveRuns limits the active runs of a chain, whichever process admits them. */
import { describe, expect, test } from "vitest";
import { ACTOR, held, useChainProcesses } from "../../../test/chain-process.ts";
import { useDatabase } from "../../../test/database.ts";
import { until } from "../../../test/until.ts";
import { lockRuns } from "../store/live.ts";

const database = useDatabase();
const chains = useChainProcesses(database);
const { acts, begun, define, ended, look } = chains;
const BY = { by: "test" };
const count = async (status: string) =>
  (await database.query("select from chains.job_run where status = $1", [status])).length;

describe("a chain with maxActiveRuns", () => {
  test("never has more active runs, although two processes admit at the same time", async () => {
    const processes = [await chains.open({ roles: [] }), await chains.open({ roles: [] })];
    const [process] = processes as [(typeof processes)[0]];
    const chainId = await define(process, [{ id: "n0" }], { maxActiveRuns: 3 });
    for (let round = 0; round < 5; round += 1) {
      await process.runs.startMany(
        chainId,
        Array.from({ length: 10 }, () => BY),
      );
      const admitted = await Promise.all([...processes, ...processes].map(({ timers }) => timers.runOnce()));
      expect(admitted.reduce((sum, counts) => sum + (counts["admitted"] ?? 0), 0)).toBe(round === 0 ? 3 : 0);
      expect(await count("RUNNING")).toBe(3);
    }
  });

  test("admits only one, although a second process finds another candidate while the first is still admitting", async () => {
    const [first, second] = [await chains.open({ roles: [] }), await chains.open({ roles: [] })];
    const chainId = await define(first, [{ id: "n0" }], { maxActiveRuns: 1 });
    const { runId } = await first.runs.start(chainId, BY);
    const blocked = (n: number) =>
      until(async () => {
        const waiting = await database.query("select from pg_locks where locktype = 'advisory' and not granted");
        return waiting.length >= n || (await count("RUNNING")) > 0;
      }, `${n} to wait`);
    const admissions = await database.db.tx(async (tx) => {
      await lockRuns(tx, [runId]); // The first has picked it and waits for its lock before it can admit it.
      const one = first.timers.runOnce();
      await blocked(1);
      await second.runs.start(chainId, { ...BY, priority: -1 });
      const other = second.timers.runOnce();
      await blocked(2);
      return [one, other];
    });
    await Promise.all(admissions);
    expect(await count("RUNNING")).toBe(1);
  });

  test("admits the next run when one ends: smaller priority first, then the older", async () => {
    const process = await chains.open();
    const { act, begun: begin, release } = held();
    acts.set("n0", act);
    const chainId = await define(process, [{ id: "n0" }], { maxActiveRuns: 1 });
    const first = await process.runs.start(chainId, BY);
    await begin();
    const waiting: string[] = [];
    for (const priority of [1, 0, 0, -1]) {
      waiting.push((await process.runs.start(chainId, { ...BY, priority })).runId);
    }
    await process.timers.runOnce();
    expect(await count("PENDING")).toBe(4);
    acts.clear();
    release();
    await Promise.all([first.runId, ...waiting].map(ended));
    const order = begun.slice(1).map((key) => waiting.indexOf(key.split("/")[0] ?? ""));
    expect(order).toEqual([3, 1, 2, 0]);
  });

  test.each(["FAILED", "STOPPED"])("has room again after a run that %s", async (how) => {
    const process = await chains.open();
    const { act, begun: begin } = held();
    acts.set("n0", how === "STOPPED" ? act : () => Promise.reject(new Error("no")));
    const chainId = await define(process, [{ id: "n0" }], { maxActiveRuns: 1 });
    const [first = "", second = ""] = await process.runs.startMany(chainId, [BY, BY]);
    if (how === "STOPPED") {
      const [context] = await begin();
      acts.clear();
      await process.runs.stop(context?.runId ?? "", ACTOR);
    }
    const ends = [(await ended(first)).status, (await ended(second)).status];
    expect(ends.sort()).toEqual(how === "STOPPED" ? ["STOPPED", "SUCCESS"] : ["FAILED", "FAILED"]);
  });

  test("counts a STOPPING run as active", async () => {
    const process = await chains.open();
    const { act, begun: begin, release } = held({ ignoresAbort: true });
    acts.set("n0", act);
    const chainId = await define(process, [{ id: "n0" }], { maxActiveRuns: 1 });
    const { runId } = await process.runs.start(chainId, BY);
    await begin();
    const next = await process.runs.start(chainId, BY);
    await process.runs.stop(runId, ACTOR);
    await process.timers.runOnce();
    expect((await look(next.runId)).status).toBe("PENDING");
    acts.clear();
    release();
    expect((await ended(next.runId)).status).toBe("SUCCESS");
  });

  test("does not hold up another chain", async () => {
    const process = await chains.open();
    const { act, begun: begin } = held();
    acts.set("busy", act);
    const busy = await define(process, [{ id: "busy" }], { maxActiveRuns: 1 });
    const other = await define(process, [{ id: "n0" }]);
    await process.runs.start(busy, BY);
    await begin();
    await process.runs.startMany(
      busy,
      Array.from({ length: 1_000 }, () => ({ ...BY, priority: -1 })),
    );
    const { runId } = await process.runs.start(other, BY);
    expect((await ended(runId)).status).toBe("SUCCESS");
    expect(await count("PENDING")).toBe(1_000);
  });

  test("uses a raised limit at the next admission", async () => {
    const process = await chains.open({ roles: [] });
    const nodes = [{ id: "n0" }];
    const chainId = await define(process, nodes, { name: "elastic", maxActiveRuns: 1 });
    await process.runs.startMany(chainId, [BY, BY, BY]);
    expect(await process.timers.runOnce()).toMatchObject({ admitted: 1 });
    const dagJson = { nodes: [{ id: "n0", type: "act" }] };
    await process.definitions.update(chainId, { name: "elastic", dagJson, maxActiveRuns: 2, version: 1 }, ACTOR);
    expect(await process.timers.runOnce()).toMatchObject({ admitted: 1 });
    expect(await count("PENDING")).toBe(1);
  });
});
