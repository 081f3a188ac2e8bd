/** Traces as a collector receives them, from a server in its own process, because a process has one tracer. */
import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { json } from "node:stream/consumers";
import { expect, onTestFinished, test } from "vitest";
import { useDatabase } from "../../../test/database.ts";
import { startServer } from "../../../test/server.ts";
import { until } from "../../../test/until.ts";

interface Span {
  traceId: string;
  spanId: string;
  parentSpanId?: string;
  name: string;
  kind: number;
  status: { code?: number };
  attributes: { key: string; value: Record<string, unknown> }[];
  startTimeUnixNano: string;
  endTimeUnixNano: string;
}

/** The part of the OTLP/HTTP format that the tests read. */
interface Export {
  resourceSpans: {
    resource: { attributes: { key: string; value: { stringValue?: string } }[] };
    scopeSpans: { spans: Span[] }[];
  }[];
}

const SERVER_KIND = 2;
const CLIENT_KIND = 3;
const database = useDatabase();

async function startCollector(): Promise<{ url: string; spans: Span[]; services: Set<string | undefined> }> {
  const spans: Span[] = [];
  const services = new Set<string | undefined>();
  const server = createServer((request, response) => {
    if (request.url === "/v1/traces") void receive(request, response);
    else response.writeHead(404).end();
  }).listen(0, "127.0.0.1");
  async function receive(request: IncomingMessage, response: ServerResponse): Promise<void> {
    for (const { resource, scopeSpans } of ((await json(request)) as Export).resourceSpans) {
      services.add(resource.attributes.find(({ key }) => key === "service.name")?.value.stringValue);
      spans.push(...scopeSpans.flatMap((scope) => scope.spans));
    }
    response.setHeader("content-type", "application/json").end("{}");
  }
  await once(server, "listening");
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, spans, services };
}

test("a request is a span in its caller's trace, with its statements below it", async () => {
  const collector = await startCollector();
  const server = await startServer({
    database: { url: database.url },
    env: { OTEL_EXPORTER_OTLP_ENDPOINT: collector.url, OTEL_SERVICE_NAME: "millrace-test" },
  });
  const traceOf = (digit: string) => digit.repeat(32);
  const caller = "00f067aa0ba902b7";
  const call = (
    path: string,
    digit: string,
    init: Omit<RequestInit, "headers"> & { headers?: Record<string, string> } = {},
  ) =>
    fetch(server.url + path, {
      ...init,
      headers: {
        authorization: `Bearer ${server.adminKey}`,
        traceparent: `00-${traceOf(digit)}-${caller}-01`,
        ...init.headers,
      },
    });

  const body = JSON.stringify({ name: "traced", scopes: ["pipeline:read"] });
  const made = await call("/api/v1/keys", "a", {
    method: "POST",
    body,
    headers: { "content-type": "application/json" },
  });
  const { key } = (await made.json()) as { key: string };
  await call("/api/v1/pipeline/files", "b", { headers: { authorization: `Bearer ${key}` } });
  await call("/api/v1/keys", "c", { headers: { authorization: "Bearer wrong" } });
  await call("/nowhere", "d");
  await fetch(`${server.url}/healthz`);
  expect(await server.stop()).toBe(0); // Pending spans are sent before the exit.

  expect(collector.services).toEqual(new Set(["millrace-test"]));

  /** The request's own span, and the names of those directly below it. */
  function inTrace(digit: string) {
    const spans = collector.spans.filter(({ traceId }) => traceId === traceOf(digit));
    const [request, ...others] = spans.filter(({ kind }) => kind === SERVER_KIND);
    expect(others).toEqual([]);
    const below = spans.filter(({ kind, parentSpanId }) => kind === CLIENT_KIND && parentSpanId === request?.spanId);
    expect(below).toHaveLength(spans.length - 1);
    return { request, statements: below };
  }

  const post = inTrace("a");
  expect(post.request).toMatchObject({
    name: "POST /api/v1/keys",
    parentSpanId: caller,
    attributes: expect.arrayContaining([
      { key: "http.route", value: { stringValue: "/api/v1/keys" } },
      { key: "http.response.status_code", value: { intValue: 200 } },
    ]),
  });
  expect(post.statements.map(({ name }) => name).sort()).toEqual(["db kernel.audit.write", "db kernel.keys.insert"]);
  for (const { startTimeUnixNano, endTimeUnixNano } of post.statements) {
    expect(BigInt(endTimeUnixNano)).toBeGreaterThan(BigInt(startTimeUnixNano));
  }

  const get = inTrace("b");
  expect(get.request).toMatchObject({ name: "GET /api/v1/pipeline/files", parentSpanId: caller });
  // The first is the lookup of the caller's key.
  expect(get.statements.map(({ name }) => name)).toContain("db kernel.keys.find");
  expect(get.statements.length).toBeGreaterThan(1);

  expect(inTrace("c").request).toMatchObject({ name: "GET /api/v1/keys", status: { code: 0 } });
  expect(inTrace("d").request).toMatchObject({ name: "GET unknown" });

  const alone = collector.spans.find(({ name }) => name === "GET /healthz");
  expect(alone?.parentSpanId).toBeUndefined();
  expect(alone?.traceId).toMatch(/^[\da-f]{32}$/);
});

test("the span of a request whose caller disconnected is ended", async () => {
  const collector = await startCollector();
  const server = await startServer({
    database: { url: database.url },
    env: { OTEL_EXPORTER_OTLP_ENDPOINT: collector.url },
  });
  const disconnect = new AbortController();
  const waiting = fetch(`${server.url}/api/v1/pipeline/queues/shard-splitter/claim`, {
    method: "POST",
    headers: { authorization: `Bearer ${server.adminKey}`, "content-type": "application/json" },
    body: JSON.stringify({ worker: "leaver", wait_seconds: 30 }),
    signal: disconnect.signal,
  });
  const left = expect(waiting).rejects.toThrow("abort");
  const counted = async (name: string, label: string) =>
    (await (await fetch(`${server.url}/metrics`)).text())
      .split("\n")
      .some((line) => line.startsWith(name) && line.includes(label));
  await until(() => counted("millrace_db_statement_seconds", '"tracking.shard_splitter.claim"'), "the claim to wait");
  disconnect.abort();
  await left;
  await until(() => counted("millrace_http_request_seconds", 'status="499"'), "the server to notice");
  await server.stop();
  const span = collector.spans.find(({ name }) => name.startsWith("POST /api/v1/pipeline/queues/"));
  expect(span?.attributes).toContainEqual({ key: "http.response.status_code", value: { intValue: 499 } });
});

test("a request that fails in the server is marked as failed", async () => {
  const collector = await startCollector();
  const server = await startServer({
    database: { url: database.url },
    env: { OTEL_EXPORTER_OTLP_ENDPOINT: `${collector.url}/` },
  });
  await database.query("alter table kernel.api_key rename to hidden");
  onTestFinished(async () => void (await database.query("alter table kernel.hidden rename to api_key")));
  expect((await server.api.get("/api/v1/keys")).status).toBe(500);
  await server.stop();
  const failed = collector.spans.find(({ name }) => name === "GET /api/v1/keys");
  expect(failed?.status).toEqual({ code: 2 });
  expect(collector.services).toEqual(new Set(["millrace"]));
});

test("an unreachable collector does not keep the server from serving or stopping", async () => {
  const server = await startServer({
    database: { url: database.url },
    env: { OTEL_EXPORTER_OTLP_ENDPOINT: "http://127.0.0.1:9" },
  });
  expect((await server.api.get("/api/v1/keys")).status).toBe(200);
  expect(await server.stop()).toBe(0);
});
