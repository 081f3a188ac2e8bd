/** Pools limit how many of their nodes run at a time, over all processes, counted from the leases. */
import { describe, expect, test } from "vitest";
import { ACTOR, held, useChainProcesses } from "../../../test/chain-process.ts";
import { useDatabase } from "../../../test/database.ts";
import { until } from "../../../test/until.ts";

const database = useDatabase();
const chains = useChainProcesses(database);
const { acts, begun, define, ended } = chains;
const BY = { by: "test" };

const setPool = (name: string, size: number) =>
  database.query(
    "insert into chains.pool (name, size) values ($1, $2) on conflict (name) do update set size = excluded.size",
    [name, size],
  );
const inPool = (count: number, pool: string) =>
  Array.from({ length: count }, (_, index) => ({ id: `${pool}${index}`, pool }));
const leased = async () =>
  (await database.query("select from chains.live_node where state = 'leased' and pool is not null")).length;
/** The hint that a change of the size through the API sends to all processes. */
const hint = () => database.query("select pg_notify('millrace_wake', 'test chains.ready_in_pool')");

describe("a pool", () => {
  test("is never exceeded by several processes, and is full while there is work", async () => {
    const processes = [await chains.open(), await chains.open()] as const;
    const [process] = processes;
    await setPool("db", 3);
    let now = 0;
    let most = 0;
    for (const { id } of inPool(40, "db")) {
      acts.set(id, async () => {
        now += 1;
        most = Math.max(most, now);
        await new Promise(setImmediate);
        now -= 1;
        return {};
      });
    }
    const chainId = await define(process, inPool(40, "db"));
    const runIds = await process.runs.startMany(chainId, [BY, BY, BY]);
    for (const runId of runIds) expect((await ended(runId)).status).toBe("SUCCESS");
    expect(begun).toHaveLength(120);
    expect(new Set(begun).size).toBe(120);
    expect(most).toBe(3);
  });

  test("does not limit nodes in no pool or in another", async () => {
    const process = await chains.open();
    await setPool("narrow", 1);
    await setPool("wide", 5);
    const narrow = held();
    const wide = held();
    for (const { id } of inPool(3, "narrow")) acts.set(id, narrow.act);
    for (const { id } of inPool(3, "wide")) acts.set(id, wide.act);
    const chainId = await define(process, [...inPool(3, "narrow"), ...inPool(3, "wide"), { id: "free" }]);
    const { runId } = await process.runs.start(chainId, BY);
    await wide.begun(3);
    await narrow.begun(1);
    await until(() => begun.some((key) => key.includes("/free/")), "the node without a pool");
    expect(narrow.contexts).toHaveLength(1);
    narrow.release();
    wide.release();
    expect((await ended(runId)).status).toBe("SUCCESS");
  });

  test("of size 0 blocks its nodes until it is larger", async () => {
    const process = await chains.open();
    await setPool("db", 0);
    const { runId } = await process.runs.start(await define(process, [...inPool(2, "db"), { id: "free" }]), BY);
    await until(async () => begun.length === 1, "the node without a pool");
    await process.timers.runOnce();
    expect(await leased()).toBe(0);
    await setPool("db", 1);
    await hint();
    expect((await ended(runId)).status).toBe("SUCCESS");
  });

  test("that grows runs more nodes at once; one that shrinks starts no more until enough have ended", async () => {
    const process = await chains.open();
    await setPool("db", 1);
    const gates = inPool(6, "db").map(({ id }) => {
      const gate = held();
      acts.set(id, gate.act);
      return gate;
    });
    const running = () => gates.filter(({ contexts }) => contexts.length > 0).length;
    const { runId } = await process.runs.start(await define(process, inPool(6, "db")), BY);
    await until(() => running() === 1, "the first");
    await setPool("db", 3);
    await hint();
    await until(() => running() === 3, "two more");
    await setPool("db", 1);
    gates[0]?.release();
    await until(async () => (await leased()) === 2, "the first to end");
    gates[1]?.release();
    await until(async () => (await leased()) === 1, "the second to end");
    expect(running()).toBe(3);
    for (const gate of gates) gate.release();
    expect((await ended(runId)).status).toBe("SUCCESS");
  });

  test("runs nodes with smaller priority first", async () => {
    const process = await chains.open({ roles: ["scheduler"] });
    await setPool("db", 1);
    const chainId = await define(process, [{ id: "only", pool: "db" }]);
    const runIds: string[] = [];
    for (const priority of [3, 1, 2, -5]) {
      runIds.push((await process.runs.start(chainId, { ...BY, priority })).runId);
    }
    await until(
      async () => (await database.query("select from chains.live_node where state = 'ready'")).length === 4,
      "all four to be ready",
    );
    process.worker.start();
    await Promise.all(runIds.map(ended));
    expect(begun.map((key) => runIds.indexOf(key.split("/")[0] ?? ""))).toEqual([3, 1, 2, 0]);
  });

  test("has room again when a process dies", async () => {
    const scheduler = await chains.open({ roles: ["scheduler"] });
    await setPool("db", 2);
    const victim = await chains.open({ roles: ["worker"], slots: 2 });
    for (const { id } of inPool(2, "db")) acts.set(id, held({ ignoresAbort: true }).act);
    const chainId = await define(scheduler, inPool(2, "db"));
    const { runId } = await scheduler.runs.start(chainId, BY);
    await until(() => begun.length === 2, "the pool to be full");
    const other = await scheduler.runs.start(chainId, BY);
    acts.clear();
    await chains.open({ roles: ["worker"] });
    await victim.expireSession();
    await scheduler.timers.runOnce();
    expect((await ended(runId)).status).toBe("SUCCESS");
    expect((await ended(other.runId)).status).toBe("SUCCESS");
  });

  test("has room again when a run is stopped", async () => {
    const process = await chains.open();
    await setPool("db", 1);
    acts.set("db0", held().act);
    const chainId = await define(process, inPool(1, "db"));
    const { runId } = await process.runs.start(chainId, BY);
    await until(() => begun.length === 1, "the pool to be full");
    acts.clear();
    const other = await process.runs.start(chainId, BY);
    await process.runs.stop(runId, ACTOR);
    expect((await ended(other.runId)).status).toBe("SUCCESS");
  });
});
