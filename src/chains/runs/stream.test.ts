/** Live views of a run: what a client receives, when the stream ends, and the limits of the server. */
import { EventEmitter } from "node:events";
import { Agent, get as httpGet, type IncomingMessage } from "node:http";
import type { FastifyReply } from "fastify";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { fails, holds, scripted, useChains } from "../../../test/chains.ts";
import type { Json } from "../../../test/client.ts";
import { useDatabase } from "../../../test/database.ts";
import { startHttp } from "../../../test/http.ts";
import { ADMIN_KEY, startMillrace } from "../../../test/millrace.ts";
import { signal, until } from "../../../test/until.ts";
import { createWake } from "../../kernel/work/wake.ts";
import { createRunStreams } from "./stream.ts";

const database = useDatabase();
const chains = useChains(database);

interface Stream {
  response: Response;
  /** The events received so far. */
  events: { kind: string; data: Json }[];
  /** The newest data of each node. */
  nodes(): Record<string, Json>;
  /** Resolves when the server ends the stream. */
  ended: Promise<void>;
  disconnect(): void;
}

async function watch(url: string): Promise<Stream> {
  const control = new AbortController();
  onTestFinished(() => control.abort());
  const response = await fetch(url, { headers: { authorization: `Bearer ${ADMIN_KEY}` }, signal: control.signal });
  const events: Stream["events"] = [];
  const ended = (async () => {
    let text = "";
    for await (const bytes of response.body ?? []) {
      text += Buffer.from(bytes).toString();
      const parts = text.split("\n\n");
      text = parts.pop() ?? "";
      for (const part of parts) {
        const [, kind, data] = /^event: (\w+)\ndata: (.*)$/.exec(part) ?? [];
        if (kind !== undefined) events.push({ kind, data: JSON.parse(data ?? "") as Json });
      }
    }
  })();
  ended.catch(() => {}); // Most tests disconnect and do not wait for the end.
  const nodes = () => {
    const received = events.filter(({ kind }) => kind === "nodes").flatMap(({ data }) => data as unknown as Json[]);
    return Object.fromEntries(received.map((node) => [String(node["nodeId"]), node]));
  };
  return { response, events, nodes, ended, disconnect: () => control.abort() };
}

const watchRun = (runId: string) => watch(`${chains.url}/api/v1/runs/${runId}/stream`);
const NEVER = new AbortController().signal;
const last = <Item>(items: readonly Item[]) => items.at(-1);

describe("a client", () => {
  test("receives the run and all its nodes, then only changes, and finally the end", async () => {
    const gate = signal();
    const runId = await chains.run([
      { id: "first", type: "noop" },
      scripted("gate", async () => ({ artifact: await gate.promise })),
      { id: "last", type: "noop", dependsOn: ["gate"] },
    ]);
    await chains.nodeReaches(runId, "first", "SUCCESS");
    await chains.nodeReaches(runId, "gate", "RUNNING");

    const { response, events, nodes, ended } = await watchRun(runId);
    expect(response.status).toBe(200);
    expect(response.headers.get("content-type")).toBe("text/event-stream; charset=utf-8");
    expect(response.headers.get("cache-control")).toBe("no-store");
    await until(() => events.length >= 2, "the present state");
    const { dagJson: _, dag: __, previous: ___, ...run } = await chains.reaches(runId, "RUNNING");
    expect(events).toEqual([
      { kind: "run", data: run },
      { kind: "nodes", data: await chains.nodes(runId) },
    ]);

    const before = events.length;
    gate.resolve();
    await ended;
    expect(last(events)).toEqual({ kind: "end", data: { status: "SUCCESS" } });
    expect(last(events.filter(({ kind }) => kind === "run"))?.data).toMatchObject({
      status: "SUCCESS",
      counts: { SUCCESS: 3 },
    });
    expect(nodes()).toMatchObject({ gate: { status: "SUCCESS" }, last: { status: "SUCCESS" } });
    const received = events.slice(before).filter(({ kind }) => kind === "nodes");
    expect(JSON.stringify(received)).not.toContain('"nodeId":"first"');
  });

  test("receives the progress of a node", async () => {
    const gate = signal();
    const runId = await chains.run([
      scripted("load", async ({ progress }) => {
        progress(0.25, "one of four");
        await gate.promise;
        return {};
      }),
    ]);
    const { nodes } = await watchRun(runId);
    await until(() => nodes()["load"]?.["progress"] === 0.25, "the progress");
    expect(nodes()["load"]).toMatchObject({ status: "RUNNING", progressNote: "one of four" });
    gate.resolve();
  });

  test("receives the child run of a node", async () => {
    const name = `inner of ${Date.now()}`;
    await chains.define([scripted("work", holds)], { name });
    const runId = await chains.run([{ id: "outer", type: "chain", cfg: { name } }]);
    const { nodes } = await watchRun(runId);
    const child = await until(
      () => (nodes()["outer"]?.["childRunId"] ?? undefined) as string | undefined,
      "the inner run",
    );
    expect((await chains.node(runId, "outer"))["childRunId"]).toBe(child);
    await chains.api.post(`/api/v1/runs/${runId}:stop`);
  });

  test("that reconnects receives everything again, also after the end", async () => {
    const runId = await chains.run([{ id: "good", type: "noop" }, scripted("bad", fails)]);
    const first = await watchRun(runId);
    await until(() => first.events.length >= 2, "the present state");
    first.disconnect();
    await chains.reaches(runId, "FAILED");

    const second = await watchRun(runId);
    await second.ended;
    expect(second.events.map(({ kind }) => kind)).toEqual(["run", "nodes", "end"]);
    expect(second.events[0]?.data).toMatchObject({ runId, status: "FAILED" });
    expect(second.events[1]?.data).toEqual(await chains.nodes(runId));
    expect(second.events[2]?.data).toEqual({ status: "FAILED" });
  });

  test("misses nothing if the server's clock is ahead of the database's", async () => {
    vi.useFakeTimers({ toFake: ["Date"], now: Date.now() + 3_600_000 });
    onTestFinished(() => void vi.useRealTimers());
    const gate = signal();
    const runId = await chains.run([scripted("gate", async () => ({ artifact: await gate.promise }))]);
    const { events, nodes, ended } = await watchRun(runId);
    await until(() => nodes()["gate"]?.["status"] === "RUNNING", "the node to run");
    gate.resolve();
    await ended;
    expect(nodes()["gate"]).toMatchObject({ status: "SUCCESS" });
    expect(last(events)).toMatchObject({ kind: "end" });
  });

  test("of an unknown run receives an ordinary error, and HEAD is not supported", async () => {
    const path = "/api/v1/runs/00000000-0000-4000-8000-000000000000/stream";
    expect(await chains.api.get(path)).toMatchObject({ status: 400, body: { code: "RUN_NOT_FOUND" } });
    expect((await chains.api.send(path, { method: "HEAD" })).status).toBe(405);
  });
});

describe("the server", () => {
  test("counts a client that disconnected with status 499", async () => {
    const runId = await chains.run([scripted("work", holds)]);
    const { events, disconnect } = await watchRun(runId);
    await until(() => events.length > 0, "the first event");
    disconnect();
    await until(async () => {
      const metrics = await (await fetch(`${chains.url}/metrics`)).text();
      return /millrace_http_request_seconds_count\{.*runs\/:runId\/stream",status="499"\} [1-9]/.test(metrics);
    }, "the 499");
  });

  test("limits the number of streams, and accepts another when one has ended", async () => {
    const runId = await chains.run([scripted("work", holds)]);
    const wake = createWake();
    const streams = createRunStreams({ db: database.db, wake, streamsMax: 1 });
    const http = await startHttp({
      db: database.db,
      routes: (routes) =>
        void routes.get("/stream", { config: { scope: "public" } }, async (_request, reply) => {
          await streams.send(runId, reply, NEVER);
          return reply;
        }),
    });
    onTestFinished(async () => {
      streams.stop();
      await http.stop();
    });
    const first = await watch(`${http.url}/stream`);
    await until(() => first.events.length > 0, "the first event");
    const refused = await http.send("/stream");
    expect(refused).toMatchObject({ status: 503, body: { code: "OVERLOADED" } });
    expect(Number(refused.headers.get("retry-after"))).toBeGreaterThan(0);

    first.disconnect();
    const second = await until(async () => {
      const again = await watch(`${http.url}/stream`);
      return again.response.status === 200 && again;
    }, "room for another");
    await until(() => second.events.length > 0, "the first event");
    streams.stop();
    await second.ended;
    expect(await http.send("/stream")).toMatchObject({ status: 503, body: { code: "SHUTTING_DOWN" } });
  });

  test("that stops does not wait for streams, not even on kept-alive connections", async () => {
    const { app, url } = await startMillrace(database);
    const runId = await chains.run([scripted("work", holds)]);
    const agent = new Agent({ keepAlive: true });
    onTestFinished(() => agent.destroy());
    const headers = { authorization: `Bearer ${ADMIN_KEY}` };
    const response = await new Promise<IncomingMessage>((resolve, reject) => {
      httpGet(`${url}/api/v1/runs/${runId}/stream`, { agent, headers }, resolve).on("error", reject);
    });
    const ended = new Promise((resolve) => response.on("end", resolve));
    response.resume();
    await app.stop();
    await ended;
  });
});

test("a client receives a change of waitingFor although the node itself does not change", async () => {
  const gates = [signal(), signal()] as const;
  const runId = await chains.run([
    ...gates.map((gate, n) => scripted(`p${n}`, async () => ({ artifact: await gate.promise }))),
    { id: "child", type: "noop", dependsOn: ["p0", "p1"] },
  ]);
  const { nodes, ended } = await watchRun(runId);
  await until(() => nodes()["child"]?.["waitingFor"] === "2 parents to end", "the first look");
  // Rows that were just updated are read again anyway.
  await database.query("update chains.job_run_node set updated_at = now() - interval '1 hour' where node_id = 'child'");
  gates[0].resolve();
  await until(() => nodes()["child"]?.["waitingFor"] === "1 parent to end", "one parent less");
  gates[1].resolve();
  await ended;
  expect(nodes()["child"]).toMatchObject({ status: "SUCCESS", waitingFor: null });
});

/** A stream to a client that reads everything at once, or nothing until `drain`. */
function sendTo(client: "fast" | "slow", runId: string, accessEnds: AbortSignal = NEVER) {
  const written: string[] = [];
  const raw = Object.assign(new EventEmitter(), {
    writeHead: () => {},
    write: (text: string) => written.push(text) > 0 && client === "fast",
    end: () => void written.push("(end)"),
  });
  const reply = { hijack: () => {}, getHeaders: () => ({}), raw } as unknown as FastifyReply;
  const streams = createRunStreams({ db: database.db, wake: createWake() });
  return { raw, written, streams, sending: streams.send(runId, reply, accessEnds) };
}

test("a client that reads slowly receives nothing more until it has read", async () => {
  const runId = await chains.run([scripted("work", holds)]);
  await chains.nodeReaches(runId, "work", "RUNNING");
  const { raw, written, streams, sending } = sendTo("slow", runId);
  await until(() => written.length > 0, "the first event");
  await new Promise(setImmediate);
  expect(written).toEqual([expect.stringMatching(/^event: run/)]);
  raw.emit("drain");
  await until(() => written.length > 1, "the next");
  expect(written[1]).toMatch(/^event: nodes/);
  streams.stop();
  await sending;
});

describe("a client whose key is revoked", () => {
  test("is told so while it reads slowly, and the server goes on", async () => {
    const runId = await chains.run([scripted("work", holds)]);
    const access = new AbortController();
    const { written, sending } = sendTo("slow", runId, access.signal);
    await until(() => written.length > 0, "the first event");
    access.abort();
    await sending;
    await new Promise(setImmediate); // An unhandled rejection, which ends a server, fails this run of Vitest now.
    expect(written.slice(1)).toEqual([expect.stringMatching(/^event: error\n.*UNAUTHENTICATED/), "(end)"]);
  });

  test("receives nothing after the end of the stream", async () => {
    const runId = await chains.run([{ id: "only", type: "noop" }]);
    await chains.reaches(runId, "SUCCESS");
    const access = new AbortController();
    const { written, sending } = sendTo("fast", runId, access.signal);
    await sending;
    access.abort();
    expect(written.at(-1)).toBe("(end)");
  });
});
