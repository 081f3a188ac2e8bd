/** The API that starts runs: single starts, Idempotency-Keys, and backfills over a range of opTimes. */
import { randomUUID } from "node:crypto";
import { describe, expect, test } from "vitest";
import { refusal, scripted, useChains } from "../../../test/chains.ts";
import type { Json } from "../../../test/client.ts";
import { useDatabase } from "../../../test/database.ts";

const database = useDatabase();
const chains = useChains(database);
const get = <Body = Json>(path: string) => chains.api.get<Body>(`/api/v1${path}`);
const post = <Body = Json>(path: string, body?: unknown) => chains.api.post<Body>(`/api/v1${path}`, body);

const NODES = [
  { id: "a", type: "noop" },
  { id: "b", type: "noop", dependsOn: ["a"] },
];
const UNKNOWN_ID = "00000000-0000-4000-8000-000000000000";
/** The name of the test's own key. */
const ADMIN = "MILLRACE_ADMIN_KEY";
const newName = () => `chain ${randomUUID()}`;

describe("starting a chain", () => {
  test("passes on params, opTime and priority", async () => {
    const name = newName();
    const echo = scripted("echo", ({ params, opTime }) => ({ artifact: { params, opTime } }));
    const chainId = await chains.define([echo], { name });
    const params = { table: "订单", n: 1, deep: { list: [1, null, "x"] } };
    const runId = await chains.start(chainId, { params, opTime: "20250101", priority: -5 });
    expect(await chains.reaches(runId, "SUCCESS")).toMatchObject({
      chainId,
      jobName: name,
      jobId: null,
      params,
      opTime: "20250101",
      priority: -5,
      trigger: "api",
      triggeredBy: ADMIN,
    });
    expect((await chains.node(runId, "echo")).artifact).toEqual({ params, opTime: "20250101" });
  });

  test.each([
    ["nothing", undefined],
    ["null", null],
    ["an empty object", {}],
    ["an opTime that is null", { opTime: null }],
  ])("works with %s as its body", async (_, body) => {
    const { status, body: answer } = await post(`/chains/${await chains.define(NODES)}:start`, body);
    expect([status, Object.keys(answer)]).toEqual([200, ["runId"]]);
    expect(await chains.reaches(String(answer["runId"]), "SUCCESS")).toMatchObject({
      params: {},
      opTime: null,
      priority: 0,
    });
  });

  test("works without a content type, too", async () => {
    const chainId = await chains.define(NODES);
    expect((await chains.api.send(`/api/v1/chains/${chainId}:start`, { method: "POST" })).status).toBe(200);
  });

  test.each([
    ["params that are not an object", { params: [1] }],
    ["an opTime with a space", { opTime: "2025 01" }],
    ["a priority that is not an integer", { priority: 0.5 }],
    ["an unknown field", { parms: {} }],
  ])("refuses %s", async (_, body) => {
    const chainId = await chains.define(NODES);
    expect(refusal(await post(`/chains/${chainId}:start`, body))).toEqual([400, "VALIDATION_FAILED"]);
    expect((await get(`/runs?chainId=${chainId}`)).body).toMatchObject({ total: 0 });
  });

  test("needs an opTime if nodes wait for tables, and names the tables", async () => {
    const chainId = await chains.define([{ id: "load", type: "noop", waitsFor: ["DW_ORDER", "DW_ITEM"] }]);
    const answer = await post(`/chains/${chainId}:start`);
    expect(refusal(answer)).toEqual([400, "OP_TIME_NEEDED"]);
    expect(answer.body["error"]).toContain("DW_ORDER, DW_ITEM");
    const runId = await chains.start(chainId, { opTime: "20250101" });
    await chains.reaches(runId, "RUNNING");
    expect((await chains.node(runId, "load")).waitingFor).toBe("the tables DW_ITEM, DW_ORDER");
    await post(`/runs/${runId}:stop`);
  });
});

describe("a start with an Idempotency-Key", () => {
  const startWith = (chainId: string, key: string, body: unknown = {}) =>
    chains.api.send(`/api/v1/chains/${chainId}:start`, {
      method: "POST",
      headers: { "content-type": "application/json", "idempotency-key": key },
      body: JSON.stringify(body),
    });
  const runsOf = async (chainId: string) => (await get(`/runs?chainId=${chainId}`)).body["total"];

  test("returns the same run when it is repeated, with its fields in any order", async () => {
    const chainId = await chains.define(NODES);
    const first = await startWith(chainId, "k1", { params: { a: 1, b: 2 }, opTime: "20250101" });
    const again = await startWith(chainId, "k1", { opTime: "20250101", params: { b: 2, a: 1 }, priority: 0 });
    expect(again).toMatchObject({ status: 200, body: first.body });
    expect(await runsOf(chainId)).toBe(1);
    expect((await startWith(chainId, "k2", { params: { a: 1, b: 2 }, opTime: "20250101" })).body).not.toEqual(
      first.body,
    );
  });

  test("with another request is refused and names the run", async () => {
    const chainId = await chains.define(NODES);
    const { body } = await startWith(chainId, "k1", { opTime: "20250101" });
    const answer = await startWith(chainId, "k1", { opTime: "20250102" });
    expect(refusal(answer)).toEqual([409, "IDEMPOTENCY_CONFLICT"]);
    expect(answer.body["details"]).toEqual({ key: "k1", runId: body["runId"] });
    expect(await runsOf(chainId)).toBe(1);
  });

  test("holds for its chain only", async () => {
    const [one, other] = [await chains.define(NODES), await chains.define(NODES)];
    expect((await startWith(one, "k1")).body).not.toEqual((await startWith(other, "k1")).body);
  });

  test("is new again after 24 hours", async () => {
    const chainId = await chains.define(NODES);
    const { body: first } = await startWith(chainId, "k1");
    const age = (interval: string) =>
      database.query("update chains.start_key set created_at = now() - $2::interval where chain_id = $1", [
        chainId,
        interval,
      ]);
    await age("23 hours 59 minutes");
    expect((await startWith(chainId, "k1")).body).toEqual(first);
    await age("24 hours 1 minute");
    const { status, body: second } = await startWith(chainId, "k1", { priority: 1 });
    expect(status).toBe(200);
    expect(second["runId"]).not.toBe(first["runId"]);
    expect((await startWith(chainId, "k1", { priority: 1 })).body).toEqual(second);
  });

  test("makes one run for many concurrent requests", async () => {
    const chainId = await chains.define(NODES);
    const answers = await Promise.all(Array.from({ length: 10 }, () => startWith(chainId, "k1")));
    expect(new Set(answers.map(({ body }) => body["runId"])).size).toBe(1);
    expect(answers.every(({ status }) => status === 200)).toBe(true);
    expect(await runsOf(chainId)).toBe(1);
  });

  test("that was refused does not use up its key", async () => {
    const chainId = await chains.define(NODES, { enabled: false });
    expect(refusal(await startWith(chainId, "k1"))).toEqual([409, "CHAIN_DISABLED"]);
    await post(`/chains/${chainId}:enable`);
    expect((await startWith(chainId, "k1", { priority: 3 })).status).toBe(200);
    expect(refusal(await startWith(UNKNOWN_ID, "k1"))).toEqual([400, "CHAIN_NOT_FOUND"]);
  });

  test("returns the same run even if the chain was disabled meanwhile", async () => {
    const chainId = await chains.define(NODES);
    const { body } = await startWith(chainId, "k1");
    await post(`/chains/${chainId}:disable`);
    expect(await startWith(chainId, "k1")).toMatchObject({ status: 200, body });
  });

  test.each(["", "two words", "x".repeat(256)])("refuses the key `%s`", async (key) => {
    const chainId = await chains.define(NODES);
    expect(refusal(await startWith(chainId, key))).toEqual([400, "VALIDATION_FAILED"]);
  });
});

describe("a backfill", () => {
  const backfill = (chainId: string, body: Json) =>
    post<{ opTimes: string[]; runs: { opTime: string; runId: string }[] }>(`/chains/${chainId}:backfill`, body);

  test("starts a run for each opTime of the range, both ends included", async () => {
    const chainId = await chains.define(NODES);
    const { status, body } = await backfill(chainId, {
      from: "20240228",
      to: "20240301",
      params: { full: true },
      priority: 7,
    });
    const opTimes = ["20240228", "20240229", "20240301"];
    expect([status, body.opTimes, body.runs.map(({ opTime }) => opTime)]).toEqual([200, opTimes, opTimes]);
    for (const { opTime, runId } of body.runs) {
      expect(await chains.reaches(runId, "SUCCESS")).toMatchObject({
        opTime,
        params: { full: true },
        priority: 7,
        trigger: "backfill",
        triggeredBy: ADMIN,
      });
    }
  });

  test("with dryRun only lists the opTimes", async () => {
    const chainId = await chains.define(NODES, { enabled: false });
    const { status, body } = await backfill(chainId, { from: "202411", to: "202502", dryRun: true });
    expect([status, body]).toEqual([200, { opTimes: ["202411", "202412", "202501", "202502"], runs: [] }]);
    expect((await get(`/runs?chainId=${chainId}`)).body).toMatchObject({ total: 0 });
  });

  test("starts no run of a disabled chain", async () => {
    const chainId = await chains.define(NODES, { enabled: false });
    const answer = await post(`/chains/${chainId}:backfill`, { from: "202411", to: "202502" });
    expect(refusal(answer)).toEqual([409, "CHAIN_DISABLED"]);
    expect((await get(`/runs?chainId=${chainId}`)).body).toMatchObject({ total: 0 });
  });

  test.each([
    ["an opTime without an order", { from: "monday", to: "friday" }],
    ["the wrong way round", { from: "20250102", to: "20250101" }],
    ["two grains", { from: "202501", to: "20250102" }],
    ["another grain than it says", { from: "202501", to: "202502", grain: "day" }],
    ["a day that does not exist", { from: "20250230", to: "20250301" }],
    ["more than 10,000 opTimes", { from: "2020010100", to: "2025010100" }],
    ["a grain that does not exist", { from: "202501", to: "202502", grain: "week" }],
    ["no end", { from: "202501" }],
  ])("refuses %s", async (_, body) => {
    const chainId = await chains.define(NODES);
    expect(refusal(await post(`/chains/${chainId}:backfill`, body))[0]).toBe(400);
    expect(refusal(await post(`/chains/${chainId}:backfill`, { ...body, dryRun: true }))[0]).toBe(400);
    expect((await get(`/runs?chainId=${chainId}`)).body).toMatchObject({ total: 0 });
  });

  test("of a chain that does not exist is refused, also as a dryRun", async () => {
    for (const dryRun of [true, false]) {
      const answer = await post(`/chains/${UNKNOWN_ID}:backfill`, { from: "202501", to: "202502", dryRun });
      expect(refusal(answer)).toEqual([400, "CHAIN_NOT_FOUND"]);
    }
  });
});
