/** The acceptance cases of the JobChain specification, one test each under its number, against the whole of Millrace. */
import { randomUUID } from "node:crypto";
import { describe, expect, test } from "vitest";
import { fails, holds, scripted, useChains } from "../../test/chains.ts";
import type { Json } from "../../test/client.ts";
import { useDatabase } from "../../test/database.ts";
import { signal } from "../../test/until.ts";

const chains = useChains(useDatabase());
const get = <Body = Json>(path: string) => chains.api.get<Body>(`/api/v1${path}`);
const post = (path: string, body?: unknown) => chains.api.post(`/api/v1${path}`, body);
const put = (path: string, body: unknown) => chains.api.put(`/api/v1${path}`, body);

/** As JSON text, like the callers of the specification send it. */
const DAG_JSON = JSON.stringify({
  nodes: [
    { id: "extract", type: "noop" },
    { id: "load", type: "noop", dependsOn: ["extract"] },
  ],
});

interface Chain {
  chainId: string;
  name: string;
  dagJson: string;
  version: number;
}
const create = async () => (await chains.api.post<Chain>("/api/v1/chains", newChain())).body;
const newChain = (fields: Json = {}) => ({ name: `orders ${randomUUID()}`, dagJson: DAG_JSON, ...fields });

describe("definitions", () => {
  test("1. creating a chain answers its chainId and version 1", async () => {
    const chain = newChain({ description: "every night" });
    const { status, body } = await post("/chains", chain);
    expect(status).toBe(200);
    expect(body).toMatchObject({
      chainId: expect.stringMatching(/^[\da-f-]{36}$/),
      name: chain.name,
      description: "every night",
      enabled: true,
      version: 1,
    });
  });

  test("2. creating a chain under a name that is taken is refused with 400", async () => {
    const chain = newChain();
    await post("/chains", chain);
    expect(await post("/chains", chain)).toMatchObject({ status: 400, body: { code: "CHAIN_NAME_TAKEN" } });
  });

  test("3. creating a chain without nodes is refused with 400: dag must have nodes", async () => {
    for (const dagJson of ['{"nodes":[]}', "{}"]) {
      expect(await post("/chains", newChain({ dagJson }))).toMatchObject({
        status: 400,
        body: { error: expect.stringContaining("dag must have nodes"), code: "DAG_INVALID" },
      });
    }
  });

  test("4. updating a chain from its present version makes the next version", async () => {
    const { chainId, name, dagJson, version } = await create();
    const { status, body } = await put(`/chains/${chainId}`, { name, dagJson, version, description: "new" });
    expect([status, body["version"], body["description"]]).toEqual([200, 2, "new"]);
  });

  test("5. updating a chain from an old version is refused with 409", async () => {
    const { chainId, name, dagJson, version } = await create();
    const update = { name, dagJson, version };
    await put(`/chains/${chainId}`, update);
    expect(await put(`/chains/${chainId}`, update)).toMatchObject({
      status: 409,
      body: { code: "VERSION_CONFLICT" },
    });
  });

  test("6. starting a disabled chain is refused with 409: chain is disabled", async () => {
    const { chainId } = await create();
    expect(await post(`/chains/${chainId}:disable`)).toMatchObject({ status: 200, body: { enabled: false } });
    expect(await post(`/chains/${chainId}:start`)).toMatchObject({
      status: 409,
      body: { error: expect.stringContaining("chain is disabled"), code: "CHAIN_DISABLED" },
    });
  });
});

describe("queries", () => {
  test("7. the page of chains can be filtered by keyword and by enabled", async () => {
    const keyword = randomUUID();
    const on = newChain({ name: `on ${keyword}` });
    const off = newChain({ name: `off ${keyword}`, enabled: false });
    for (const chain of [on, off]) await post("/chains", chain);
    const names = async (query: string) => {
      const { status, body } = await get<{ items: { name: string }[] }>(`/chains?page=1&size=20&${query}`);
      expect(status).toBe(200);
      return body.items.map(({ name }) => name);
    };
    expect(await names(`keyword=${keyword}&enabled=`)).toEqual([off.name, on.name]);
    expect(await names(`keyword=${keyword}&enabled=true`)).toEqual([on.name]);
    expect(await names(`keyword=${keyword}&enabled=false`)).toEqual([off.name]);
  });

  test("8. the detail of a chain holds its dagJson", async () => {
    const { chainId } = await create();
    const { status, body } = await get(`/chains/${chainId}`);
    expect(status).toBe(200);
    expect(JSON.parse(String(body["dagJson"]))).toEqual(JSON.parse(DAG_JSON));
  });
});

describe("runs", () => {
  test("9. starting a chain answers the runId of a new run, every time", async () => {
    const { chainId } = await create();
    const first = await post(`/chains/${chainId}:start`);
    const second = await post(`/chains/${chainId}:start`);
    expect(first).toMatchObject({ status: 200, body: { runId: expect.stringMatching(/^[\da-f-]{36}$/) } });
    expect(second.body["runId"]).not.toBe(first.body["runId"]);
  });

  test("10. a run goes from PENDING to RUNNING to SUCCESS or FAILED", async () => {
    const goOn = new Map(["good", "bad"].map((opTime) => [opTime, signal()]));
    const work = scripted("work", async ({ opTime }) => {
      await goOn.get(opTime ?? "")?.promise;
      if (opTime === "bad") throw new Error("no luck");
      return {};
    });
    const chainId = await chains.define([work], { maxActiveRuns: 1 });
    const statusOf = async (runId: string) => (await get(`/runs/${runId}`)).body["status"];

    const good = await chains.start(chainId, { opTime: "good" });
    await chains.reaches(good, "RUNNING");
    const bad = await chains.start(chainId, { opTime: "bad" });
    expect(await statusOf(bad)).toBe("PENDING");
    goOn.get("good")?.resolve();
    await chains.reaches(good, "SUCCESS");
    await chains.reaches(bad, "RUNNING");
    goOn.get("bad")?.resolve();
    await chains.reaches(bad, "FAILED");
  });

  test("11. the nodes of a run are all there from its start", async () => {
    const gate = scripted("gate", holds);
    const runId = await chains.run([gate, { id: "a", type: "noop", dependsOn: ["gate"] }, { id: "b", type: "noop" }]);
    const { status, body } = await get<{ nodeId: string }[]>(`/runs/${runId}/nodes`);
    expect(status).toBe(200);
    expect(body.map(({ nodeId }) => nodeId)).toEqual(["gate", "a", "b"]);
  });

  test("12. stopping a RUNNING run answers STOPPING, and in the end it is STOPPED", async () => {
    const runId = await chains.run([scripted("work", holds)]);
    await chains.nodeReaches(runId, "work", "RUNNING");
    expect(await post(`/runs/${runId}:stop`)).toMatchObject({ status: 200, body: { runId, status: "STOPPING" } });
    await chains.reaches(runId, "STOPPED");
  });

  test("13. a node can be retried when it is FAILED or STOPPED, which counts its attempt up, and not when it is SUCCESS", async () => {
    const nodes = [{ id: "good", type: "noop" }, scripted("bad", fails), scripted("long", holds)];
    const runId = await chains.run(nodes);
    await chains.nodeReaches(runId, "good", "SUCCESS");
    expect(await post(`/runs/${runId}/nodes/good:retry`)).toMatchObject({ status: 409 });

    await chains.nodeReaches(runId, "bad", "FAILED");
    expect(await post(`/runs/${runId}/nodes/bad:retry`)).toMatchObject({
      status: 200,
      body: { runId, nodeId: "bad", status: "RETRYING", attempt: 2 },
    });
    await chains.nodeReaches(runId, "bad", "FAILED");
    await chains.nodeReaches(runId, "long", "RUNNING");
    await post(`/runs/${runId}:stop`);
    await chains.nodeReaches(runId, "long", "STOPPED");
    await chains.reaches(runId, "STOPPED");
    expect(await post(`/runs/${runId}/nodes/long:retry`)).toMatchObject({
      status: 200,
      body: { nodeId: "long", status: "RETRYING", attempt: 2 },
    });
  });

  test("14. a node can be completed when it is FAILED, STOPPED or RUNNING, which makes it SUCCESS, and not when it is PENDING", async () => {
    const nodes = [
      scripted("bad", fails),
      scripted("long", holds),
      { id: "later", type: "noop", dependsOn: ["long"] },
      scripted("longer", holds),
    ];
    const runId = await chains.run(nodes);
    const complete = async (nodeId: string) => {
      const { status, body } = await post(`/runs/${runId}/nodes/${nodeId}:complete`, { artifactJson: '{"rows":1}' });
      return [status, body["status"]];
    };
    await chains.nodeReaches(runId, "bad", "FAILED");
    await chains.nodeReaches(runId, "long", "RUNNING");
    expect((await complete("later"))[0]).toBe(409);
    expect(await complete("bad")).toEqual([200, "SUCCESS"]);
    expect(await complete("long")).toEqual([200, "SUCCESS"]);
    await chains.nodeReaches(runId, "longer", "RUNNING");
    await post(`/runs/${runId}:stop`);
    await chains.reaches(runId, "STOPPED");
    expect(await complete("longer")).toEqual([200, "SUCCESS"]);
    expect((await chains.node(runId, "longer")).artifact).toEqual({ rows: 1 });
  });
});
