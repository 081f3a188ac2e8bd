/** Which runs a start admits at once, without the timers. */
import { describe, expect, test } from "vitest";
import { useChainProcesses } from "../../../test/chain-process.ts";
import { useDatabase } from "../../../test/database.ts";

const database = useDatabase();
const chains = useChainProcesses(database);
const { define, ended, look } = chains;
const BY = { by: "test" };
const NODES_STARTED_MAX = 2_000;
const nodes = (count: number) => Array.from({ length: count }, (_, index) => ({ id: `n${index}` }));
const statusOf = async (runId: string) => (await look(runId)).status;

describe("a run", () => {
  test("is admitted when its start is answered, without the timers", async () => {
    const process = await chains.open({ roles: ["worker"] });
    const { runId } = await process.runs.start(await define(process, [{ id: "n0" }]), BY);
    expect(["RUNNING", "SUCCESS"]).toContain(await statusOf(runId));
    expect((await ended(runId)).status).toBe("SUCCESS");
  });

  test("stays PENDING if its chain has a limit, although there is room", async () => {
    const process = await chains.open({ roles: [] });
    const { runId } = await process.runs.start(await define(process, nodes(1), { maxActiveRuns: 5 }), BY);
    expect(await statusOf(runId)).toBe("PENDING");
    expect(await process.timers.runOnce()).toMatchObject({ admitted: 1 });
  });

  test("stays PENDING if it is large, unlike those that are started with it", async () => {
    const process = await chains.open({ roles: [] });
    const large = await define(process, nodes(NODES_STARTED_MAX + 1));
    const small = await define(process, nodes(1));
    await process.runs.start(small, BY); // Caches its graph, so that the next ones are written together.
    const started = await Promise.all([large, small, small].map((chainId) => process.runs.start(chainId, BY)));
    const statuses = await Promise.all(started.map(({ runId }) => statusOf(runId)));
    expect(statuses).toEqual(["PENDING", "RUNNING", "RUNNING"]);
    expect(await process.timers.runOnce()).toMatchObject({ admitted: 1 });
  });

  test("that waits for tables reads the arrivals together with those that are started with it", async () => {
    const process = await chains.open({ roles: [] });
    const chainId = await define(process, [{ id: "n0", waitsFor: ["T1"] }]);
    await Promise.all(Array.from({ length: 5 }, () => process.runs.start(chainId, { ...BY, opTime: "20260101" })));
    expect(process.statements.filter((name) => name === "chains.wait.hold_arrivals")).toHaveLength(1);
    expect(await database.query("select from chains.live_wait")).toHaveLength(5);
  });
});
