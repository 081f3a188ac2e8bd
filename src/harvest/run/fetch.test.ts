/** One page over real HTTP, with gates that note what is asked of them. */
import { createServer, type RequestListener } from "node:http";
import type { AddressInfo } from "node:net";
import { expect, onTestFinished, test } from "vitest";
import type { GateSignal } from "../../kernel/gate/permits.ts";
import type { TakeOptions, TakeRequest } from "../../kernel/gate/take.ts";
import { createOutbound } from "../../kernel/net/outbound.ts";
import { compiledOf, draft } from "../spec/definition.fixture.ts";
import type { RequestContext } from "../spec/render.ts";
import { compileSource } from "./compiled.ts";
import { createFailures } from "./failures.ts";
import { type Fetched, fetchPage } from "./fetch.ts";
import { RunStats } from "./run-stats.ts";

interface Observed {
  fetched: Fetched;
  requests: number;
  released: number;
  stats: RunStats;
  /** The levels that the metric of failed requests counts. */
  levels: string[];
  taken: (TakeRequest & TakeOptions)[];
  warned: string[];
}

async function fetched(
  answer: RequestListener,
  changes: Record<string, unknown>,
  {
    feedback = async () => {},
    isClosed = false,
    isPausedMeanwhile = false,
  }: {
    feedback?: (key: string, signal: GateSignal) => Promise<void>;
    isClosed?: boolean;
    /** While the request waits for its permit. */
    isPausedMeanwhile?: boolean;
  } = {},
): Promise<Observed> {
  let requests = 0;
  let released = 0;
  let isPaused = false;
  const server = createServer((request, response) => {
    requests += 1;
    answer(request, response);
  });
  await new Promise<void>((resolve) => void server.listen(0, "127.0.0.1", resolve));
  const host = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  if (isClosed) await new Promise((resolve) => void server.close(resolve));
  const outbound = createOutbound({ allowPrivate: [host] });
  onTestFinished(async () => {
    await outbound.close();
    server.closeAllConnections();
    server.close();
  });
  const of = Object.entries(changes).map(([path, value]) => [`endpoints.list.${path}`, value]);
  const { snapshot } = compiledOf(draft({ baseUrl: `http://${host}`, ...Object.fromEntries(of) }), {
    allowPrivate: [host],
  });
  const taken: Observed["taken"] = [];
  const warned: string[] = [];
  const levels: string[] = [];
  const deps = {
    outbound,
    gates: {
      take: async (request: TakeRequest, options: TakeOptions) => {
        taken.push({ ...request, ...options });
        isPaused = isPausedMeanwhile;
        return {
          kind: "permit",
          waitedMs: 0,
          dueAtMs: 0,
          ratePerSec: 5,
          release: async () => void (released += 1),
        } as const;
      },
      feedback,
    },
    clock: { now: () => Date.now() },
    metrics: {
      count: (name: string, { level }: { level?: string }) =>
        void (name === "patra_ingest_errors_total" && levels.push(String(level))),
      observe: () => {},
      gauge: () => {},
    } as never,
    log: { warn: (_fields: object, message: string) => void warned.push(message) },
    random: () => 0,
  };
  const requester = {
    taskId: "1",
    priority: 100,
    labels: { source: "books", endpoint: "list", op: "HARVEST" },
    stats: new RunStats(),
    failures: createFailures(),
    signal: new AbortController().signal,
    isPaused: () => isPaused,
  };
  const context: RequestContext = {
    window: { from: "2026-08-01", until: "2026-08-01", to: "2026-08-02" },
    page: { size: 50, number: 1, offset: 0, token: null, url: null },
    params: {},
    plan: { id: "p", from: null, to: null },
    now: "2026-08-03T00:00:00.000Z",
    isFirst: true,
    isProbe: false,
  };
  const endpoint = compileSource(snapshot).list;
  return {
    fetched: await fetchPage(deps, requester, { endpoint, context, isSingleUse: false, isStart: false }),
    requests,
    released,
    stats: requester.stats,
    levels,
    taken,
    warned,
  };
}

const page: RequestListener = (_, response) => {
  response.writeHead(200, { "content-type": "application/json", "x-concurrency-limit": "3" });
  response.end(JSON.stringify({ total: 0, items: [] }));
};

test("a body that never ends is given up after the time that all of it may take", async () => {
  const drip: RequestListener = (_, response) => {
    response.writeHead(200, { "content-type": "application/json" });
    const timer = setInterval(() => response.write(" "), 20);
    response.on("close", () => clearInterval(timer));
  };
  const observed = await fetched(drip, {
    "http.connectTimeoutMs": 100,
    "http.readTimeoutMs": 100,
    "retry.maxAttempts": 1,
  });
  expect(observed.fetched).toMatchObject({ kind: "unreachable", reason: expect.stringContaining("within 500 ms") });
  expect(observed.taken).toMatchObject([{ slotTtlMs: 30_500 }]);
});

test("the slot of a request outlives the longest time-out", async () => {
  const { taken } = await fetched(page, { "http.readTimeoutMs": 120_000, "http.connectTimeoutMs": 120_000 });
  expect(taken).toMatchObject([{ slotTtlMs: 630_000 }]);
});

test("a request takes the permits of the redirects that it may follow, and the credits of one request", async () => {
  const { taken } = await fetched(page, { "http.redirects": 2, "rateLimit.cost": 3 });
  expect(taken[0]?.gates).toEqual([{ key: "books", cost: 9, spend: { credits: 3 } }]);
});

test.each([true, false])("a body beyond its limit fails at once, compression %s", async (compression) => {
  const large: RequestListener = (_, response) => {
    response.writeHead(200, { "content-type": "application/json" });
    response.end(JSON.stringify({ total: 1, items: [{ id: "1", note: "x".repeat(2_000) }] }));
  };
  const observed = await fetched(large, { "http.compression": compression, "http.responseBytesMax": 1_024 });
  expect(observed.fetched).toMatchObject({ kind: "failed", reason: expect.stringMatching(/1,?024.*responseBytesMax/) });
  expect(observed.requests).toBe(1);
});

test.each<[string, RequestListener, Fetched["kind"]]>([
  ["a connection that is closed", (request) => void request.socket.destroy(), "unreachable"],
  ["503", (_, response) => void response.writeHead(503).end(), "unreachable"],
  ["408", (_, response) => void response.writeHead(408).end(), "unreachable"],
  ["an answer that says nothing yet", (_, response) => void response.end('{"version": "6.9"}'), "unreachable"],
  ["400", (_, response) => void response.writeHead(400).end(), "failed"],
  ["HTML", (_, response) => void response.end("<html>"), "failed"],
  ["another document", (_, response) => void response.end('{"other": []}'), "failed"],
])("whether a source is down after all attempts: %s", async (_, answer, kind) => {
  const changes = { "retry.maxAttempts": 2, "retry.baseMs": 1, "retry.capMs": 1 };
  expect((await fetched(answer, changes)).fetched.kind).toBe(kind);
});

test.each([
  { status: 400, levels: ["L2"] },
  { status: 401, levels: ["L4"] },
  { status: 503, levels: ["L1", "L1"] },
])("each request that fails is counted once, with its level: $status", async ({ status, levels }) => {
  const changes = { "retry.maxAttempts": 2, "retry.baseMs": 1, "retry.capMs": 1 };
  const observed = await fetched((_, response) => void response.writeHead(status).end(), changes);
  expect(observed.levels).toEqual(levels);
  expect(observed.stats).toMatchObject({ requests: levels.length, failures: levels.length });
  expect(observed.stats.errors.map(({ level }) => level)).toEqual(levels);
});

test("a request whose task was paused while it waited for its turn is not sent, and its slot is free", async () => {
  const observed = await fetched(page, {}, { isPausedMeanwhile: true });
  expect(observed).toMatchObject({ fetched: { kind: "park", reason: "it was paused" }, requests: 0, released: 1 });
  expect(observed.stats.requests).toBe(0);
});

test("a source without a listener is unreachable", async () => {
  const { fetched: found } = await fetched(
    page,
    { "retry.maxAttempts": 2, "retry.baseMs": 1 },
    {
      isClosed: true,
    },
  );
  expect(found).toMatchObject({ kind: "unreachable", reason: expect.stringMatching(/ECONNREFUSED.*\(2 attempts\)/) });
});

test("limits that the gate does not take are logged, and the page counts", async () => {
  const observed = await fetched(page, {}, { feedback: async () => Promise.reject(new Error("refused")) });
  expect(observed.fetched).toMatchObject({ kind: "page" });
  expect(observed.warned).toEqual(["a gate did not take what a source says of its limits"]);
});
