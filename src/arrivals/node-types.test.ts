/** Nodes of chains that announce tables, run models, or wait for tables that the API announces. */
import { randomUUID } from "node:crypto";
import { describe, expect, onTestFinished, test } from "vitest";
import { scripted, useChains } from "../../test/chains.ts";
import type { Json } from "../../test/client.ts";
import { useDatabase } from "../../test/database.ts";
import { startMillrace, type TestMillrace } from "../../test/millrace.ts";
import { signal, until } from "../../test/until.ts";
import { findViolations } from "./store/invariants.ts";

const database = useDatabase();
const elsewhere = useDatabase();
const chains = useChains(database);
const DAY = "20250101";
const KPI = "/api/v1/kpi";

interface Task {
  status: string;
  generation: number;
  chainRunId: string | null;
}

/** A published model that depends on one table, both with unique names. */
async function newModel(
  fields: Json = {},
  { put, post } = chains.api,
): Promise<{ modelId: string; table: string; kpiId: string }> {
  const [modelId, table, kpiId] = ["m", "t", "K"].map((kind) => `${kind}${randomUUID().slice(0, 8)}`) as [
    string,
    string,
    string,
  ];
  const sql = `select '${kpiId}' as kpi_id, 5 as value`;
  const work = fields["chain"] === undefined ? { sql } : {};
  const body = {
    name: modelId,
    ...work,
    dependencies: [{ table }],
    kpis: fields["chain"] === undefined ? [kpiId] : [],
    ...fields,
  };
  expect((await put(`${KPI}/models/${modelId}`, body)).status).toBe(201);
  expect((await post(`${KPI}/models/${modelId}:publish`)).status).toBe(200);
  return { modelId, table, kpiId };
}

async function announce(table: string, { api }: Pick<TestMillrace, "api"> = chains): Promise<Json> {
  const { status, body } = await api.send("/api/open/kpi/srcTableComplete", {
    method: "POST",
    headers: { "content-type": "application/json", prefer: "respond-async" },
    body: JSON.stringify({ srcTableName: table, opTime: DAY }),
  });
  expect(status).toBe(200);
  return body;
}

/** Oldest first. */
async function tasksOf(modelId: string, { get } = chains.api): Promise<Task[]> {
  const { body } = await get<{ items: Task[] }>(`${KPI}/task-logs?modelId=${modelId}`);
  return body.items.toReversed();
}

const start = async (nodes: Parameters<typeof chains.define>[0]) =>
  chains.start(await chains.define(nodes), { opTime: DAY });

/** The work of a model that runs a chain with this script. */
async function chainOf(script: Parameters<typeof scripted>[1]): Promise<string> {
  const name = `work ${randomUUID()}`;
  await chains.define([scripted("work", script)], { name });
  return name;
}

describe("a node of the type `arrive`", () => {
  test("announces a table for the run's opTime, which runs the models that wait for it", async () => {
    const { modelId, table, kpiId } = await newModel();
    const runId = await start([
      { id: "load", type: "noop" },
      { id: "announce", type: "arrive", cfg: { table }, dependsOn: ["load"] },
    ]);
    await chains.reaches(runId, "SUCCESS");
    const { artifact } = await chains.node(runId, "announce");
    expect(artifact).toEqual({ table, opTime: DAY, isNews: true, triggeredModels: [modelId] });
    await until(async () => (await tasksOf(modelId))[0]?.status === "SUCCESS", "the model to run");
    const { body } = await chains.api.get(`${KPI}/data?kpiId=${kpiId}&opTime=${DAY}`);
    expect(body["items"]).toMatchObject([{ value: 5, generation: 1 }]);
  });

  test("fails for good without an opTime", async () => {
    const chainId = await chains.define([
      { id: "announce", type: "arrive", cfg: { table: "t" }, retry: { maxAttempts: 3 } },
    ]);
    const runId = await chains.start(chainId);
    await chains.reaches(runId, "FAILED");
    expect(await chains.node(runId, "announce")).toMatchObject({
      attempt: 1,
      lastError: expect.stringMatching(/needs an opTime/),
    });
  });
});

describe("a node of the type `model`", () => {
  test("runs a model and has its result as the artifact", async () => {
    const { modelId, table } = await newModel();
    await announce(table);
    await until(async () => (await tasksOf(modelId))[0]?.status === "SUCCESS", "the first run");
    const runId = await start([{ id: "run", type: "model", cfg: { modelId } }]);
    await chains.reaches(runId, "SUCCESS");
    expect((await chains.node(runId, "run")).artifact).toMatchObject({ computeCount: 1, storageCount: 1 });
    expect(await tasksOf(modelId)).toMatchObject([{ generation: 1 }, { generation: 2, status: "SUCCESS" }]);
  });

  test("fails for good while a table is missing, unless it is forced", async () => {
    const { modelId, table } = await newModel();
    const runId = await start([{ id: "run", type: "model", cfg: { modelId }, retry: { maxAttempts: 3 } }]);
    await chains.reaches(runId, "FAILED");
    expect(await chains.node(runId, "run")).toMatchObject({ attempt: 1, lastError: expect.stringContaining(table) });
    expect(await tasksOf(modelId)).toEqual([]);
    await chains.reaches(await start([{ id: "run", type: "model", cfg: { modelId, force: true } }]), "SUCCESS");
  });

  test("runs the model again when it failed and the node has another attempt", async () => {
    let runs = 0;
    const chain = await chainOf(() => {
      runs += 1;
      if (runs === 1) throw new Error("not yet");
      return {};
    });
    const { modelId } = await newModel({ chain });
    const runId = await start([
      { id: "run", type: "model", cfg: { modelId, force: true }, retry: { maxAttempts: 2, backoffMs: 1 } },
    ]);
    await chains.reaches(runId, "SUCCESS");
    expect(await tasksOf(modelId)).toMatchObject([
      { generation: 1, status: "FAILED" },
      { generation: 2, status: "SUCCESS" },
    ]);
  });

  test("waits for a run in flight, and then runs the model once more", async () => {
    const gate = signal();
    const chain = await chainOf(async () => {
      await gate.promise;
      return {};
    });
    const { modelId, table } = await newModel({ chain });
    await announce(table);
    await until(async () => (await tasksOf(modelId))[0]?.status === "RUNNING", "the model to run");
    const runId = await start([{ id: "run", type: "model", cfg: { modelId } }]);
    await chains.nodeReaches(runId, "run", "RUNNING");
    gate.resolve();
    await chains.reaches(runId, "SUCCESS");
    expect(await tasksOf(modelId)).toMatchObject([
      { generation: 1, status: "SUCCESS" },
      { generation: 2, status: "SUCCESS" },
    ]);
  });

  test("continues in another process when its own stops, and waits for the same run of the model", async () => {
    const open = async (roles: string) => {
      const millrace = await startMillrace(elsewhere, {
        env: { MILLRACE_ROLES: roles },
        chains: { nodeTypes: ["./scripted-node.js"], drainSeconds: 0 },
      });
      onTestFinished(() => millrace.app.stop());
      return millrace;
    };
    const [{ api }, leaving] = [await open("api,scheduler"), await open("worker")];
    const gate = signal();
    const work = scripted("work", async ({ signal: stopped }) => {
      await Promise.race([gate.promise, new Promise((_, no) => stopped.addEventListener("abort", no))]);
      return {};
    });
    await api.post("/api/v1/chains", { name: "work", dagJson: { nodes: [work] } });
    const { modelId } = await newModel({ chain: "work" }, api);
    const nodes = [{ id: "run", type: "model", cfg: { modelId, force: true } }];
    const { body: chain } = await api.post("/api/v1/chains", { name: "outer", dagJson: { nodes } });
    const { body: run } = await api.post(`/api/v1/chains/${String(chain["chainId"])}:start`, { opTime: DAY });
    await until(async () => (await tasksOf(modelId, api))[0]?.chainRunId, "the model to run");
    await open("worker");
    await leaving.app.stop();
    gate.resolve();
    const ended = await until(async () => {
      const { body } = await api.get(`/api/v1/runs/${String(run["runId"])}`);
      return body["status"] !== "RUNNING" && body;
    }, "the run to end");
    expect(ended).toMatchObject({ status: "SUCCESS" });
    const done = await tasksOf(modelId, api);
    expect(done.map(({ status, generation }) => [status, generation])).toEqual([["SUCCESS", 1]]);
    expect(await findViolations(elsewhere.db)).toEqual([]);
  });
});

describe("a node that waits for tables", () => {
  const waiting = (...tables: string[]) => start([{ id: "n", type: "noop", waitsFor: tables }]);
  const newTable = () => `t ${randomUUID()}`;

  test("continues when the last of them is announced to the API", async () => {
    const [one, other] = [newTable(), newTable()];
    const runId = await waiting(one, other);
    await announce(one);
    await chains.nodeReaches(runId, "n", "PENDING");
    await announce(other);
    await chains.reaches(runId, "SUCCESS");
  });

  test("does not wait for a table that has already arrived", async () => {
    const table = newTable();
    await announce(table);
    await chains.reaches(await waiting(table), "SUCCESS");
  });

  test("continues when a node announces a table or a model produces it", async () => {
    const [announced, produced] = [newTable(), newTable()];
    const { modelId } = await newModel({ produces: produced });
    const runId = await waiting(announced, produced);
    await start([{ id: "announce", type: "arrive", cfg: { table: announced } }]);
    await start([{ id: "run", type: "model", cfg: { modelId, force: true } }]);
    await chains.reaches(runId, "SUCCESS");
  });

  test("matches table names in any case, with tableCase: ignore", async () => {
    const other = await startMillrace(elsewhere, {
      env: { MILLRACE_ROLES: "api,scheduler,worker" },
      arrivals: { tableCase: "ignore" },
    });
    onTestFinished(() => other.app.stop());
    const nodes = [
      { id: "n", type: "noop", waitsFor: ["Orders"] },
      { id: "m", type: "noop", waitsFor: ["Items"] },
    ];
    const { body: chain } = await other.api.post("/api/v1/chains", { name: "waits", dagJson: { nodes } });
    const { body: run } = await other.api.post(`/api/v1/chains/${String(chain["chainId"])}:start`, { opTime: DAY });
    const show = async (path = "") => (await other.api.get<Json[]>(`/api/v1/runs/${String(run["runId"])}${path}`)).body;
    const isDone = async (nodeId: string) =>
      (await show("/nodes")).some((node) => node["nodeId"] === nodeId && node["status"] === "SUCCESS");
    const began = performance.now();
    await announce("orders", other);
    await until(() => isDone("n"), "the first node");
    expect(await isDone("m")).toBe(false);
    await announce("ITEMS", other);
    await until(() => isDone("m"), "the second node");
    expect(performance.now() - began).toBeLessThan(NOTIFIED_MS_MAX);
  });
});

/** Without the notification the timers would find it, after ten seconds or more. */
const NOTIFIED_MS_MAX = 8_000;

test("the invariants hold", async () => {
  expect(await findViolations(database.db)).toEqual([]);
});
