import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { createOutbound } from "../../kernel/net/outbound.ts";
import { systemClock } from "../../kernel/time/clock.ts";
import { httpType } from "./http.ts";
import { nodeContext, type RecordedContext } from "./node-context.fixture.ts";
import { mayRetry } from "./node-type.ts";
import { createRegistry } from "./registry.ts";

type Handler = (request: IncomingMessage, response: ServerResponse) => unknown;

let handler: Handler;
const server = createServer((request, response) => void handler(request, response));
const outbound = createOutbound({ allowPrivate: true });
const guarded = createOutbound({ allowPrivate: false, setting: "ALLOW_PRIVATE" });
let origin: string;

beforeAll(async () => {
  await once(server.listen(0, "127.0.0.1"), "listening");
  origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
afterAll(async () => {
  await outbound.close();
  await guarded.close();
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
});

const noGates = { take: () => expect.fail("no gate is named"), feedback: () => expect.fail("no gate is named") };
/** The log of the last node. */
let lines: RecordedContext["lines"];

/** Runs a node as the engine does: the registry checks its cfg and adds defaults. */
async function run(cfg: object, { signal = new AbortController().signal, through = outbound } = {}): Promise<unknown> {
  const type = httpType({ outbound: through, gates: noGates, clock: systemClock });
  const checked = createRegistry([type]).complete("http", cfg);
  if ("problems" in checked) throw new Error(checked.problems.map(({ message }) => message).join("\n"));
  const ctx = nodeContext({ key: "run-1/call/2", signal });
  lines = ctx.lines;
  const { artifact } = await type.execute(ctx, checked.cfg as Parameters<typeof type.execute>[1]);
  return artifact;
}

async function failureOf(...given: Parameters<typeof run>): Promise<{ message: string; retry: boolean }> {
  const error = await run(...given).then(
    () => expect.fail("the node succeeded"),
    (thrown: unknown) => thrown as Error,
  );
  return { message: error.message, retry: mayRetry(error) };
}

/** Responds with the request. */
const echo: Handler = async (request, response) => {
  const { method, url, headers } = request;
  const answer = JSON.stringify({ method, url, headers, body: await text(request) });
  response.writeHead(200, { "content-type": "application/json; charset=utf-8" }).end(answer);
};
const answering =
  (status: number, body = "", headers: Record<string, string> = {}): Handler =>
  (_, response) =>
    response.writeHead(status, headers).end(body);

describe("the request", () => {
  test("is a GET without a body by default", async () => {
    handler = echo;
    expect(await run({ url: `${origin}/a?b=c` })).toMatchObject({
      body: { method: "GET", url: "/a?b=c", body: "", headers: { "idempotency-key": "run-1/call/2" } },
    });
  });

  test.each([
    ["text as it is", "a=1&b=2", "a=1&b=2", undefined],
    ["an object as JSON", { a: [1, null] }, '{"a":[1,null]}', "application/json"],
    ["null as JSON", null, "null", "application/json"],
    ["false as JSON", false, "false", "application/json"],
  ])("carries %s", async (_, body, sent, contentType) => {
    handler = echo;
    const { body: seen } = (await run({ method: "POST", url: origin, body })) as { body: Record<string, unknown> };
    expect(seen).toMatchObject({ method: "POST", body: sent });
    expect((seen["headers"] as Record<string, string>)["content-type"]).toBe(contentType);
  });

  test("sends the node's own headers, which override the defaults in any case", async () => {
    handler = echo;
    const headers = { "X-Mine": "1", "Idempotency-Key": "mine", "Content-Type": "application/vnd.mine+json" };
    expect(await run({ method: "PUT", url: origin, headers, body: {} })).toMatchObject({
      body: { headers: { "x-mine": "1", "idempotency-key": "mine", "content-type": "application/vnd.mine+json" } },
    });
  });
});

describe("the artifact", () => {
  test("has the status, a few headers and the parsed body", async () => {
    handler = answering(201, '{"id": 7}', { "content-type": "application/problem+json", etag: '"1"', "x-other": "x" });
    expect(await run({ url: origin })).toEqual({
      status: 201,
      headers: { "content-type": "application/problem+json", etag: '"1"' },
      body: { id: 7 },
    });
  });

  test.each([
    ["text of another type", "text/plain", '{"id": 7}', '{"id": 7}'],
    ["JSON after a byte order mark", "application/json", '\uFEFF{"id": 7}', { id: 7 }],
    ["an empty body", "application/json", "", null],
  ])("holds %s", async (_, type, body, expected) => {
    handler = answering(200, body, { "content-type": type });
    expect(await run({ url: origin })).toMatchObject({ body: expected });
  });

  test("holds invalid JSON as text, with a warning in the log", async () => {
    handler = answering(200, "OK", { "content-type": "application/json" });
    expect(await run({ url: origin })).toMatchObject({ body: "OK" });
    expect(lines.at(-1)).toEqual({
      level: "warn",
      text: "the content type is application/json, but the body is not JSON; it is kept as text",
    });
  });

  test("is limited: a body of more than 1 MB fails for good", async () => {
    handler = answering(200, "x".repeat(1_048_576));
    expect(await run({ url: origin })).toHaveProperty("body.length", 1_048_576);
    handler = answering(200, "x".repeat(1_048_577));
    expect(await failureOf({ url: origin })).toEqual({
      message: `GET ${origin}/ answered 200 with more than 1048576 bytes.`,
      retry: false,
    });
  });
});

describe("the status", () => {
  test.each([
    [204, undefined],
    [404, 404],
    [404, "4xx"],
    [302, [200, "3xx"]],
    [503, ["2xx", 503]],
  ])("%i is accepted by %j", async (status, expectStatus) => {
    handler = answering(status);
    const cfg = { url: origin, ...(expectStatus === undefined ? {} : { expectStatus }) };
    expect(await run(cfg)).toMatchObject({ status });
  });

  test.each([
    [400, false],
    [404, false],
    [408, true],
    [409, false],
    [425, true],
    [429, true],
    [500, true],
    [503, true],
  ])("%i that was not expected may be retried: %s", async (status, retry) => {
    handler = answering(status, "no,\n\0not now");
    expect(await failureOf({ url: origin })).toEqual({
      message: `GET ${origin}/ answered ${status}: no, not now`,
      retry,
    });
  });

  test("200 fails when another one is expected", async () => {
    handler = answering(200);
    expect(await failureOf({ url: origin, expectStatus: [201, "4xx"] })).toEqual({
      message: `GET ${origin}/ answered 200.`,
      retry: false,
    });
  });

  test("of a redirect fails, with the reason in the message", async () => {
    handler = answering(301, "", { location: "/elsewhere" });
    expect(await failureOf({ url: origin })).toEqual({
      message: `GET ${origin}/ answered 301 (redirects are not followed).`,
      retry: false,
    });
  });

  test("is checked before the size of the body, and the message shows the start of the body", async () => {
    handler = answering(500, "x".repeat(2_000_000));
    expect(await failureOf({ url: origin })).toEqual({
      message: `GET ${origin}/ answered 500: ${"x".repeat(500)}`,
      retry: true,
    });
  });
});

describe("expectBody", () => {
  beforeEach(() => {
    handler = answering(200, '{"state": "busy", "done": 3}', { "content-type": "application/json", "x-left": "0" });
  });

  test("accepts a response for which it is true", async () => {
    const expectBody = 'status == 200 && body.done >= 3 && headers["x-left"] == "0"';
    expect(await run({ url: origin, expectBody })).toMatchObject({ body: { done: 3 } });
  });

  test.each([
    ['body.state == "ready"', 'but `body.state == "ready"` is not true: {"state": "busy", "done": 3}'],
    ["body.done", 'but `body.done` is not true: {"state": "busy", "done": 3}'],
    ["body.result.ok", expect.stringMatching(/^but expectBody `body\.result\.ok` failed: .*result/)],
  ])("fails a response for which `%s` is not true, with a retry", async (expectBody, rest) => {
    const { message, retry } = await failureOf({ url: origin, expectBody });
    const [answered, ...others] = message.split(", ");
    expect(answered).toBe(`GET ${origin}/ answered 200`);
    expect(others.join(", ")).toEqual(rest);
    expect(retry).toBe(true);
  });

  test("that is invalid fails for good before anything is sent", async () => {
    handler = () => expect.fail("a request was sent");
    const { message, retry } = await failureOf({ url: origin, expectBody: "bdoy.x ==" });
    expect(message).toMatch(/^expectBody: `bdoy\.x ==` is not valid/);
    expect(retry).toBe(false);
    expect(lines).toEqual([]);
  });
});

describe("a request that fails", () => {
  test("may be retried when the connection breaks", async () => {
    handler = (request) => request.socket.destroy();
    expect(await failureOf({ url: origin })).toEqual({
      message: `GET ${origin}/ failed: other side closed`,
      retry: true,
    });
  });

  test("may be retried when the port is closed", async () => {
    const free = createServer();
    await once(free.listen(0, "127.0.0.1"), "listening");
    const { port } = free.address() as AddressInfo;
    await new Promise((resolve) => free.close(resolve));
    expect(await failureOf({ url: `http://127.0.0.1:${port}/` })).toEqual({
      message: `GET http://127.0.0.1:${port}/ failed: connect ECONNREFUSED 127.0.0.1:${port}`,
      retry: true,
    });
  });

  test("names the error of each address of a host, which Node's own message leaves out", async () => {
    const errors = ["::1", "127.0.0.1"].map((address) => new Error(`connect ECONNREFUSED ${address}:9`));
    const through = { ...outbound, request: () => Promise.reject(new AggregateError(errors)) };
    expect(await failureOf({ url: "http://localhost:9/" }, { through })).toMatchObject({
      message: "GET http://localhost:9/ failed: connect ECONNREFUSED ::1:9; connect ECONNREFUSED 127.0.0.1:9",
    });
  });

  test("may be retried when it times out", async () => {
    handler = () => {};
    expect(await failureOf({ url: origin, timeoutMs: 50 })).toEqual({
      message: `GET ${origin}/ failed: there was no complete answer within 50 ms`,
      retry: true,
    });
  });

  test("is final when the address is refused", async () => {
    expect(await failureOf({ url: `${origin}/` }, { through: guarded })).toEqual({
      message: `GET ${origin}/ failed: 127.0.0.1 is not a public address; set ALLOW_PRIVATE=true to permit it.`,
      retry: false,
    });
  });

  test("is final when the URL is wrong", async () => {
    expect(await failureOf({ url: "www.example.com" })).toEqual({
      message: "GET (no valid URL) failed: The URL is not valid; write a complete one, such as https://host/path.",
      retry: false,
    });
  });

  test("throws the signal's reason when it was aborted", async () => {
    const stop = new AbortController();
    handler = () => stop.abort(new Error("the run was stopped"));
    await expect(run({ url: origin }, { signal: stop.signal })).rejects.toThrow(/^the run was stopped$/);
  });
});

test("the request and the response are logged", async () => {
  handler = answering(202, "yes");
  await run({ method: "DELETE", url: `${origin}/x` });
  expect(lines).toEqual([
    { level: "info", text: `DELETE ${origin}/x` },
    { level: "info", text: "202, 3 bytes" },
  ]);
});

test("neither logs nor messages show the credentials and the query of the URL", async () => {
  handler = answering(403, "no");
  const url = `${origin.replace("//", "//me:secret@")}/x?token=secret`;
  for (const through of [outbound, guarded]) {
    const { message } = await failureOf({ url }, { through });
    expect(message).toMatch(`GET ${origin}/x `);
    expect(message).not.toContain("secret");
    expect(JSON.stringify(lines)).not.toContain("secret");
  }
});
