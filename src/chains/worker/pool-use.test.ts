/** A pool that is in use cannot be deleted, and a definition cannot name a pool that is being deleted. */
import { randomUUID } from "node:crypto";
import { describe, expect, test } from "vitest";
import { holds, refusal, scripted, useChains } from "../../../test/chains.ts";
import { useDatabase } from "../../../test/database.ts";
import { until } from "../../../test/until.ts";
import { chainsChecks } from "../doctor.ts";
import { deletePool, lockPools } from "../store/definitions.ts";

const database = useDatabase();
const chains = useChains(database);
const put = (path: string, body: unknown) => chains.api.put(`/api/v1${path}`, body);
const remove = (path: string) => chains.api.delete(`/api/v1${path}`);

async function makePool(size = 1): Promise<string> {
  const pool = `pool-${randomUUID()}`;
  await put(`/pools/${pool}`, { size });
  return pool;
}
const FREE = { nodes: [{ id: "a", type: "noop" }] };

describe("a pool", () => {
  test("cannot be deleted while a map names it for its items", async () => {
    const pool = await makePool();
    await chains.define([{ id: "m", type: "map", cfg: { over: [1], node: { type: "noop", pool } } }]);
    expect(refusal(await remove(`/pools/${pool}`))).toEqual([409, "POOL_IN_USE"]);
  });

  test("cannot be deleted while it has live nodes, although no chain names it anymore", async () => {
    const pool = await makePool();
    const name = `user of ${pool}`;
    const chainId = await chains.define([scripted("a", holds, { pool }), scripted("b", holds, { pool })], { name });
    const runId = await chains.start(chainId);
    await until(async () => (await chains.nodes(runId)).some(({ status }) => status === "RUNNING"), "a node to run");
    await put(`/chains/${chainId}`, { name, dagJson: FREE, version: 1 });
    const answer = await remove(`/pools/${pool}`);
    expect(refusal(answer)).toEqual([409, "POOL_IN_USE"]);
    expect(answer.body["error"]).toBe(`Pool \`${pool}\` is in use: 2 nodes wait for it or run in it.`);
    await chains.api.post(`/api/v1/runs/${runId}:stop`);
    await chains.reaches(runId, "STOPPED");
    expect((await remove(`/pools/${pool}`)).status).toBe(200);
  });

  test("cannot be deleted while a PENDING run of an older version names it", async () => {
    const pool = await makePool();
    const name = `user of ${pool}`;
    const free = { id: "a", type: "noop" };
    const chainId = await chains.define([scripted("a", holds)], { name, maxActiveRuns: 1 });
    const first = await chains.start(chainId);
    await chains.reaches(first, "RUNNING");
    await put(`/chains/${chainId}`, { name, dagJson: { nodes: [{ ...free, pool }] }, version: 1 });
    const second = await chains.start(chainId);
    await put(`/chains/${chainId}`, { name, dagJson: FREE, version: 2 });
    const answer = await remove(`/pools/${pool}`);
    expect(refusal(answer)).toEqual([409, "POOL_IN_USE"]);
    expect(answer.body["error"]).toContain("1 open run may still need it");
    for (const runId of [second, first]) await chains.api.post(`/api/v1/runs/${runId}:stop`);
    await chains.reaches(first, "STOPPED");
  });

  test("has its delete wait for a chain that is being written, and is then in use", async () => {
    const pool = await makePool();
    const { db } = database;
    let deleting: Promise<unknown> = Promise.resolve();
    await db.tx(async (tx) => {
      expect(await lockPools(tx, [pool, "no such"])).toEqual(new Set([pool]));
      deleting = db.tx((other) => deletePool(other, pool));
      await until(async () => {
        const waiting = "select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'";
        return (await database.query(waiting)).length === 1;
      }, "the delete to wait");
      await chains.define([{ id: "a", type: "noop", pool }], { name: `user of ${pool}` });
    });
    expect(await deleting).toMatchObject({ chains: 1 });
  });

  test("that is deleted before a chain is written makes the chain invalid", async () => {
    const pool = await makePool();
    const { db } = database;
    let defining: ReturnType<typeof put> | undefined;
    await db.tx(async (tx) => {
      expect(await deletePool(tx, pool)).toMatchObject({ chains: 0 });
      const dagJson = { nodes: [{ id: "a", type: "noop", pool }] };
      defining = chains.api.post("/api/v1/chains", { name: `late user of ${pool}`, dagJson });
      await until(async () => {
        const waiting = "select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'";
        return (await database.query(waiting)).length === 1;
      }, "the chain to wait");
    });
    const answer = await defining;
    expect(answer).toMatchObject({ status: 400, body: { code: "DAG_INVALID" } });
    expect(answer?.body["error"]).toContain(`there is no pool \`${pool}\``);
  });
});

test("the doctor finds ready nodes whose pool does not exist", async () => {
  const look = async () => chainsChecks.find(({ name }) => name === "chain pools")?.look(database.db);
  const pool = await makePool(0);
  const runId = await chains.run([{ id: "a", type: "noop", pool }]);
  await until(async () => (await chains.node(runId, "a")).waitingFor?.includes(pool), "the node to be ready");
  expect(await look()).toMatchObject({ verdict: "ok" });
  await database.query("delete from chains.pool where name = $1", [pool]);
  expect(await look()).toMatchObject({
    verdict: "broken",
    found: expect.stringContaining(`1, for example in \`${pool}\``),
    advice: expect.stringContaining(`PUT /api/v1/pools/${pool}`),
  });
  await put(`/pools/${pool}`, { size: 1 });
  await chains.reaches(runId, "SUCCESS");
});
