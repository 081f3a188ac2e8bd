/** The API of schedules and pools: what is stored and refused, and that a schedule really starts runs. */
import { randomUUID } from "node:crypto";
import { describe, expect, test } from "vitest";
import { holds, refusal, scripted, useChains } from "../../../test/chains.ts";
import type { Json } from "../../../test/client.ts";
import { useDatabase } from "../../../test/database.ts";
import { signal, until } from "../../../test/until.ts";

const database = useDatabase();
const chains = useChains(database);
const get = <Body = Json>(path: string) => chains.api.get<Body>(`/api/v1${path}`);
const post = <Body = Json>(path: string, body?: unknown) => chains.api.post<Body>(`/api/v1${path}`, body);
const put = (path: string, body: unknown) => chains.api.put(`/api/v1${path}`, body);
const remove = (path: string) => chains.api.delete(`/api/v1${path}`);

const NODES = [{ id: "load", type: "noop" }];
/** Does not fire during the tests: the last day of the year, at noon. */
const NIGHTLY = { name: "nightly", cron: "0 12 31 12 *" };
const aTime = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$/);

async function audited(target: string): Promise<string[]> {
  return (await auditRows(target)).map(({ action }) => action);
}

function auditRows(target: string): Promise<{ action: string; details: Json }[]> {
  return database.query("select action, details from kernel.audit_log where target = $1 order by id", [target]);
}

describe("a schedule", () => {
  test("is created, shown, listed, changed and deleted", async () => {
    const chainId = await chains.define(NODES);
    const { status, body: made } = await post(`/chains/${chainId}/schedules`, NIGHTLY);
    expect(status).toBe(200);
    expect(made).toEqual({
      scheduleId: expect.stringMatching(/^[\da-f-]{36}$/),
      chainId,
      name: "nightly",
      cron: "0 12 31 12 *",
      timeZone: "UTC",
      missed: "last",
      opTime: null,
      params: {},
      priority: 0,
      paused: false,
      nextAt: expect.stringMatching(/-12-31T12:00:00\.000Z$/),
      lastAt: null,
      lastRunId: null,
      problem: null,
      retryAt: null,
      createdAt: aTime,
      updatedAt: aTime,
    });
    const scheduleId = String(made["scheduleId"]);
    const path = `/chains/${chainId}/schedules/${scheduleId}`;
    expect((await get(path)).body).toEqual(made);
    expect((await get(`/chains/${chainId}/schedules`)).body).toEqual({ items: [made] });

    const changed = {
      name: "hourly",
      cron: "0 12 31 12 *",
      timeZone: "Asia/Shanghai",
      missed: "all",
      opTime: { grain: "day", offset: -1 },
      params: { full: true },
      priority: -3,
    };
    const { body: updated } = await put(path, changed);
    expect(updated).toMatchObject({ ...changed, scheduleId, paused: false });
    expect(updated["nextAt"]).toMatch(/-12-31T04:00:00\.000Z$/);
    expect((await get(path)).body).toEqual(updated);

    expect((await remove(path)).body).toEqual(updated);
    expect(refusal(await get(path))).toEqual([400, "SCHEDULE_NOT_FOUND"]);
    expect(refusal(await remove(path))).toEqual([400, "SCHEDULE_NOT_FOUND"]);
    expect((await get(`/chains/${chainId}/schedules`)).body).toEqual({ items: [] });
    expect(await audited(scheduleId)).toEqual(["schedule.create", "schedule.update", "schedule.delete"]);
    expect((await auditRows(scheduleId))[1]?.details["changes"]).toEqual([
      { field: "name", from: "nightly", to: "hourly" },
      { field: "timeZone", from: "UTC", to: "Asia/Shanghai" },
      { field: "missed", from: "last", to: "all" },
      { field: "opTime", from: null, to: { grain: "day", offset: -1 } },
      { field: "params.full", to: true },
      { field: "priority", from: 0, to: -3 },
    ]);
  });

  test("can be paused and unpaused repeatedly", async () => {
    const chainId = await chains.define(NODES);
    const { body: made } = await post(`/chains/${chainId}/schedules`, NIGHTLY);
    const scheduleId = String(made["scheduleId"]);
    const path = `/chains/${chainId}/schedules/${scheduleId}`;
    const paused = await post(`${path}:pause`);
    expect(paused).toMatchObject({ status: 200, body: { scheduleId, paused: true, nextAt: null } });
    expect((await post(`${path}:pause`, {})).body).toEqual(paused.body);
    expect((await post(`${path}:unpause`, null)).body).toMatchObject({ paused: false, nextAt: made["nextAt"] });
    expect((await post(`${path}:unpause`)).body).toMatchObject({ paused: false });
    expect(await audited(scheduleId)).toEqual(["schedule.create", "schedule.pause", "schedule.unpause"]);
  });

  test("has a name that is unique within its chain", async () => {
    const [one, other] = [await chains.define(NODES), await chains.define(NODES)];
    await post(`/chains/${one}/schedules`, NIGHTLY);
    expect(refusal(await post(`/chains/${one}/schedules`, NIGHTLY))).toEqual([400, "SCHEDULE_NAME_TAKEN"]);
    expect((await post(`/chains/${other}/schedules`, NIGHTLY)).status).toBe(200);
    const { body: second } = await post(`/chains/${one}/schedules`, { ...NIGHTLY, name: "second" });
    const path = `/chains/${one}/schedules/${String(second["scheduleId"])}`;
    expect(refusal(await put(path, NIGHTLY))).toEqual([400, "SCHEDULE_NAME_TAKEN"]);
    expect((await get(path)).body).toEqual(second);
  });

  test("is not found under another chain", async () => {
    const [one, other] = [await chains.define(NODES), await chains.define(NODES)];
    const { body } = await post(`/chains/${one}/schedules`, NIGHTLY);
    const path = `/chains/${other}/schedules/${String(body["scheduleId"])}`;
    const answers = [await get(path), await put(path, NIGHTLY), await post(`${path}:pause`), await remove(path)];
    for (const answer of answers) expect(refusal(answer)).toEqual([400, "SCHEDULE_NOT_FOUND"]);
    expect((await get(`/chains/${one}/schedules`)).body["items"]).toEqual([body]);
  });

  test.each([
    ["text that is not a cron", { cron: "every night" }],
    ["a minute that does not exist", { cron: "61 * * * *" }],
    ["a day that never comes", { cron: "0 0 30 2 *" }],
    ["a time zone that does not exist", { timeZone: "Mars/Olympus" }],
    ["a policy that does not exist", { missed: "some" }],
    ["a grain that does not exist", { opTime: { grain: "week" } }],
    ["an offset beyond all bounds", { opTime: { grain: "day", offset: 10_001 } }],
    ["no name", { name: undefined }],
    ["an unknown field", { zone: "UTC" }],
  ])("refuses %s, and changes nothing", async (_, wrong) => {
    const chainId = await chains.define(NODES);
    const { body: made } = await post(`/chains/${chainId}/schedules`, NIGHTLY);
    const path = `/chains/${chainId}/schedules/${String(made["scheduleId"])}`;
    expect(refusal(await post(`/chains/${chainId}/schedules`, { ...NIGHTLY, name: "new", ...wrong }))[0]).toBe(400);
    expect(refusal(await put(path, { ...NIGHTLY, ...wrong }))[0]).toBe(400);
    expect((await get(`/chains/${chainId}/schedules`)).body["items"]).toEqual([made]);
  });

  test("starts a run when it is due, with its params and opTime", async () => {
    const name = `scheduled ${randomUUID()}`;
    const chainId = await chains.define(NODES, { name });
    const { body: made } = await post(`/chains/${chainId}/schedules`, {
      name: "minutely",
      cron: "* * * * *",
      params: { full: true },
      priority: 2,
      opTime: { grain: "day", offset: -1 },
    });
    const scheduleId = String(made["scheduleId"]);
    const path = `/chains/${chainId}/schedules/${scheduleId}`;
    await database.query("update chains.schedule set next_at = date_trunc('minute', now()) where schedule_id = $1", [
      scheduleId,
    ]);
    await post(`/chains/${await chains.define(NODES)}:start`); // Any start wakes the timers.
    const fired = await until(async () => {
      const { body } = await get(path);
      return body["lastRunId"] !== null && body;
    }, "the schedule to fire");
    const run = await chains.reaches(String(fired["lastRunId"]), "SUCCESS");
    const yesterday = new Date(Date.parse(String(fired["lastAt"])) - 86_400_000).toISOString().slice(0, 10);
    expect(run).toMatchObject({
      chainId,
      jobId: scheduleId,
      jobName: name,
      params: { full: true },
      priority: 2,
      opTime: yesterday.replaceAll("-", ""),
      trigger: "schedule",
      triggeredBy: "schedule minutely",
    });
    await post(`${path}:pause`);
    const { items } = (await get<{ items: Json[] }>(`/runs?jobId=${scheduleId}`)).body;
    expect(items.map(({ runId }) => runId)).toContain(run["runId"]);
  });

  test("keeps fields that a change leaves out", async () => {
    const chainId = await chains.define(NODES);
    const given = { missed: "all", timeZone: "Asia/Shanghai", params: { n: 1 }, priority: 4, paused: true };
    const { body: made } = await post(`/chains/${chainId}/schedules`, { ...NIGHTLY, ...given });
    const path = `/chains/${chainId}/schedules/${String(made["scheduleId"])}`;
    expect((await put(path, { ...NIGHTLY, name: "renamed" })).body).toMatchObject({ ...given, name: "renamed" });
  });
});

describe("a pool", () => {
  test("is created, listed, changed and deleted", async () => {
    const name = `pool-${randomUUID()}`;
    const listed = async () =>
      (await get<{ items: Json[] }>("/pools")).body.items.filter((pool) => pool["name"] === name);
    expect(await put(`/pools/${name}`, { size: 2 })).toMatchObject({ status: 200, body: { name, size: 2 } });
    expect(await listed()).toEqual([{ name, size: 2, running: 0, ready: 0 }]);
    await put(`/pools/${name}`, { size: 5 });
    expect(await listed()).toEqual([{ name, size: 5, running: 0, ready: 0 }]);
    expect((await remove(`/pools/${name}`)).status).toBe(200);
    expect(await listed()).toEqual([]);
    expect(refusal(await remove(`/pools/${name}`))).toEqual([400, "POOL_NOT_FOUND"]);
    expect(await audited(name)).toEqual(["pool.set", "pool.set", "pool.delete"]);
    const [created, resized] = await auditRows(name);
    expect([created?.details, resized?.details]).toEqual([
      { size: 2 },
      { size: 5, changes: [{ field: "size", from: 2, to: 5 }] },
    ]);
  });

  test("cannot be deleted while a chain uses it, and the error names one", async () => {
    const pool = `pool-${randomUUID()}`;
    await put(`/pools/${pool}`, { size: 1 });
    const name = `user of ${pool}`;
    const chainId = await chains.define([{ id: "a", type: "noop", pool }], { name });
    const answer = await remove(`/pools/${pool}`);
    expect(refusal(answer)).toEqual([409, "POOL_IN_USE"]);
    expect(answer.body["details"]).toMatchObject({ name: pool, chains: 1, chain: name });
    await put(`/chains/${chainId}`, { name, dagJson: { nodes: NODES }, version: 1 });
    expect((await remove(`/pools/${pool}`)).status).toBe(200);
  });

  test("runs as many nodes as its size, and more when it grows", async () => {
    const pool = `pool-${randomUUID()}`;
    await put(`/pools/${pool}`, { size: 1 });
    const runId = await chains.run([scripted("a", holds, { pool }), scripted("b", holds, { pool })]);
    const counts = async () => {
      const { items } = (await get<{ items: Json[] }>("/pools")).body;
      const { running, ready } = items.find(({ name }) => name === pool) ?? {};
      return [running, ready];
    };
    await until(async () => (await counts())[0] === 1, "the first to run");
    expect(await counts()).toEqual([1, 1]);
    const waiting = (await chains.nodes(runId)).find(({ status }) => status === "PENDING");
    expect(waiting?.waitingFor).toBe(`room in the pool \`${pool}\` and a free worker`);
    await put(`/pools/${pool}`, { size: 2 });
    await until(async () => (await counts())[0] === 2, "the second to run");
    await post(`/runs/${runId}:stop`);
    await chains.reaches(runId, "STOPPED");
  });

  test("of size 0 runs nothing until it grows", async () => {
    const pool = `pool-${randomUUID()}`;
    await put(`/pools/${pool}`, { size: 0 });
    const began = signal();
    const runId = await chains.run([
      { id: "free", type: "noop" },
      scripted("held", () => (began.resolve(), {}), { pool }),
    ]);
    await chains.nodeReaches(runId, "free", "SUCCESS");
    expect(await chains.node(runId, "held")).toMatchObject({ status: "PENDING" });
    await put(`/pools/${pool}`, { size: 1 });
    await began.promise;
    await chains.reaches(runId, "SUCCESS");
  });

  test.each([
    ["a negative size", { size: -1 }],
    ["a fraction", { size: 1.5 }],
    ["no size", {}],
    ["an unknown field", { size: 1, slots: 1 }],
  ])("refuses %s", async (_, body) => {
    expect(refusal(await put("/pools/wrong", body))).toEqual([400, "VALIDATION_FAILED"]);
    expect(refusal(await remove("/pools/wrong"))).toEqual([400, "POOL_NOT_FOUND"]);
  });
});

describe("changing a schedule", () => {
  const FULL = {
    ...NIGHTLY,
    timeZone: "Asia/Shanghai",
    missed: "all",
    opTime: { grain: "day", offset: -1 },
    params: { full: true },
    priority: -3,
    paused: true,
  };

  test("keeps absent fields and clears null ones", async () => {
    const chainId = await chains.define(NODES);
    const { body: made } = await post(`/chains/${chainId}/schedules`, FULL);
    const path = `/chains/${chainId}/schedules/${String(made["scheduleId"])}`;
    const { body: kept } = await put(path, { name: "other", cron: NIGHTLY.cron });
    expect(kept).toEqual({ ...made, name: "other", updatedAt: aTime });
    const { body: cleared } = await put(path, { ...NIGHTLY, opTime: null, params: {}, priority: 0, paused: false });
    expect(cleared).toMatchObject({ opTime: null, params: {}, priority: 0, paused: false, missed: "all" });
  });

  test("is refused without an opTime if the chain waits for tables", async () => {
    const chainId = await chains.define([{ id: "load", type: "noop", waitsFor: ["DW_A"] }]);
    const without = await post(`/chains/${chainId}/schedules`, NIGHTLY);
    expect(refusal(without)).toEqual([400, "SCHEDULE_INVALID"]);
    expect(without.body["error"]).toContain("waits for tables such as `DW_A`");
    const { status, body } = await post(`/chains/${chainId}/schedules`, FULL);
    expect(status).toBe(200);
    const path = `/chains/${chainId}/schedules/${String(body["scheduleId"])}`;
    expect((await put(path, NIGHTLY)).status).toBe(200);
    expect(refusal(await put(path, { ...NIGHTLY, opTime: null }))).toEqual([400, "SCHEDULE_INVALID"]);
  });
});

test("a schedule can be read while a transaction locks it", async () => {
  const chainId = await chains.define(NODES);
  const { body: made } = await post(`/chains/${chainId}/schedules`, NIGHTLY);
  const scheduleId = String(made["scheduleId"]);
  const holder = await database.db.dedicated("test");
  try {
    await holder.query("begin");
    await holder.query("select from chains.schedule where schedule_id = $1 for update", [scheduleId]);
    expect((await get(`/chains/${chainId}/schedules/${scheduleId}`)).body).toEqual(made);
  } finally {
    await holder.end();
  }
});
