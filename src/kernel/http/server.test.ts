/** What the server does for every route: request ids, keys and scopes, limits, and refusals while it stops. */
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { connect } from "node:net";
import { text } from "node:stream/consumers";
import { Type } from "typebox";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Json } from "../../../test/client.ts";
import { useDatabase } from "../../../test/database.ts";
import { startHttp, type TestHttp, type TestHttpOptions } from "../../../test/http.ts";
import { signal, until } from "../../../test/until.ts";
import { CATALOGUE } from "../../modules.ts";
import { errors } from "./schemas.ts";
import type { Http } from "./server.ts";

const database = useDatabase();
const SCOPES = Object.keys(CATALOGUE.scopes);
let http: TestHttp;

/** One route for each scope, such as `/needs/pipeline:read`, one for clients that do not retry after 429, and a public one. */
function routes(server: Http): void {
  for (const scope of SCOPES) {
    server.get(`/needs/${scope.replace(":", "::")}`, { config: { scope } }, async ({ caller }) => ({ ...caller }));
  }
  server.get("/sink", { config: { scope: "lineage:write", busyStatus: 503 } }, async () => ({}));
  server.get("/open", { config: { scope: "public" } }, async ({ caller }) => ({ ...caller }));
}

async function start(options: Partial<TestHttpOptions>): Promise<TestHttp> {
  return startHttp({ db: database.db, routes, ...options });
}

function makeKey(scopes: string[], more: { tenantId?: number; rateLimitPerMinute?: number } = {}) {
  return http.keys.create(database.db, { name: "made by a test", scopes, ...more }, "test");
}

const withKey = (key: string) => ({ headers: { authorization: `Bearer ${key}` } });
const withoutKey = (url: string) =>
  fetch(url).then(async (r) => ({ status: r.status, body: (await r.json()) as Json }));

beforeAll(async () => {
  http = await start({});
});
afterAll(() => http.stop());

describe("a request id", () => {
  const idFor = async (given: string) =>
    (await http.send("/open", { headers: { "x-request-id": given } })).headers.get("x-request-id");

  test.each(["a", "trace:42.7_x-y", "x".repeat(64)])("of the caller is kept: %s", async (given) => {
    expect(await idFor(given)).toBe(given);
  });

  test.each(["", "x".repeat(65), "has space", "a,b", "<b>", "{}", "é"])(
    "that is not safe in a log is replaced: %j",
    async (given) => {
      expect(await idFor(given)).toMatch(/^[\da-f]{8}-[\da-f-]{27}$/);
    },
  );

  test("is generated if there is none, a new one each time", async () => {
    const [first, second] = [await http.send("/open"), await http.send("/open")];
    expect(first.headers.get("x-request-id")).toMatch(/^[\da-f-]{36}$/);
    expect(first.headers.get("x-request-id")).not.toBe(second.headers.get("x-request-id"));
  });

  test("is in refusals too, wherever they are made", async () => {
    for (const path of ["/nowhere", "/needs/admin", "/%zz"]) {
      const headers = { "x-request-id": "mine", authorization: "Bearer wrong" };
      const answer = await http.send(path, { headers });
      expect(answer.status).toBeGreaterThanOrEqual(400);
      expect(answer.headers.get("x-request-id")).toBe("mine");
    }
  });
});

describe("a key", () => {
  test("that is missing is 401", async () => {
    const response = await fetch(`${http.url}/needs/pipeline:read`);
    expect(response.status).toBe(401);
    expect(response.headers.get("www-authenticate")).toBe("Bearer");
    expect(await response.json()).toEqual({
      code: "UNAUTHENTICATED",
      error: "This call needs a key. Send `Authorization: Bearer <key>`.",
    });
  });

  test.each([
    ["that does not exist", `Bearer mlr_${"A".repeat(43)}`, "This key is not known, or it was revoked."],
    ["of another shape", "Bearer secret", "This key is not known, or it was revoked."],
    ["in another scheme", "Basic dXNlcjpwYXNz", "The header holds no bearer key."],
    ["without its scheme", `mlr_${"A".repeat(43)}`, "The header holds no bearer key."],
    ["that is empty", "Bearer", "The header holds no bearer key."],
    ["with something behind it", `Bearer mlr_${"A".repeat(43)} x`, "The header holds no bearer key."],
  ])("%s is refused", async (_, authorization, reason) => {
    expect(await http.send("/needs/pipeline:read", { headers: { authorization } })).toMatchObject({
      status: 401,
      body: {
        code: "UNAUTHENTICATED",
        error: `${reason} Send \`Authorization: Bearer <key>\`.`,
      },
    });
  });

  test("can call what its scopes allow and nothing else", async () => {
    const { key } = await makeKey(["pipeline:read", "run:control"]);
    const reached = await reachedBy(key);
    expect(reached).toEqual(["run:control", "pipeline:read"]);
    expect(await http.send("/needs/pipeline:write", withKey(key))).toMatchObject({
      status: 403,
      body: {
        code: "FORBIDDEN",
        error: "This key may not do that: it lacks the scope pipeline:write.",
        details: { scope: "pipeline:write" },
      },
    });
  });

  test("with the scope admin can call everything", async () => {
    const { key } = await makeKey(["admin"]);
    expect(await reachedBy(key)).toEqual(SCOPES);
  });

  test("that is bound to a tenant can call only lineage, whatever its scopes", async () => {
    const { key } = await makeKey(["admin", "pipeline:read"], { tenantId: 7 });
    expect(await reachedBy(key)).toEqual(["lineage:read", "lineage:write"]);
    const { key: reader } = await makeKey(["lineage:read", "kpi:read"], { tenantId: 7 });
    expect(await reachedBy(reader)).toEqual(["lineage:read"]);
    expect((await http.send("/needs/lineage:read", withKey(reader))).body).toMatchObject({ tenantId: "7" });
    expect((await http.send("/needs/kpi:read", withKey(reader))).body).toMatchObject({
      code: "FORBIDDEN",
      error: "This key may not do that: it is bound to a tenant and reaches lineage only.",
    });
  });

  test("that was revoked is refused from the next request on", async () => {
    const { id, key } = await makeKey(["kpi:read"]);
    expect((await http.send("/needs/kpi:read", withKey(key))).status).toBe(200);
    await database.db.tx((tx) => http.keys.revoke(tx, id));
    expect((await http.send("/needs/kpi:read", withKey(key))).status).toBe(401);
  });

  test("from the environment is an admin without a row", async () => {
    expect((await http.send("/needs/admin")).body).toMatchObject({ name: "MILLRACE_ADMIN_KEY", keyId: null });
  });

  test("is not read on public routes, so that health does not depend on the database", async () => {
    expect((await http.send("/open", withKey("wrong"))).body).toMatchObject({ name: "anonymous", scopes: [] });
  });

  async function reachedBy(key: string): Promise<string[]> {
    const answers = await Promise.all(
      SCOPES.map(async (scope) => ({ scope, status: (await http.send(`/needs/${scope}`, withKey(key))).status })),
    );
    expect(answers.every(({ status }) => status === 200 || status === 403)).toBe(true);
    return answers.filter(({ status }) => status === 200).map(({ scope }) => scope);
  }
});

test("a caller without a key has the anonymous scopes, and a wrong key is still wrong", async () => {
  const trusting = await start({ anonymousScopes: ["pipeline:read"] });
  try {
    expect(await withoutKey(`${trusting.url}/needs/pipeline:read`)).toMatchObject({
      status: 200,
      body: { name: "anonymous", keyId: null },
    });
    expect(await withoutKey(`${trusting.url}/needs/pipeline:write`)).toMatchObject({ status: 401 });
    expect((await trusting.send("/needs/pipeline:read", withKey("wrong"))).status).toBe(401);
  } finally {
    await trusting.stop();
  }
});

describe("a rate limit", () => {
  let limited: TestHttp;
  beforeAll(async () => {
    limited = await start({ rateLimitPerMinute: 3, anonymousScopes: ["run:read"] });
  });
  afterAll(() => limited.stop());

  /** How many of these requests are answered, and the first refusal. */
  async function ask(times: number, path: string, key: string) {
    const answers = [];
    for (let i = 0; i < times; i += 1) answers.push(await limited.send(path, withKey(key)));
    return {
      answered: answers.filter(({ status }) => status === 200).length,
      refused: answers.find(({ status }) => status !== 200),
    };
  }

  test("counts each key separately, over all routes, and says when to try again", async () => {
    const [one, other] = [await makeKey(["admin"]), await makeKey(["admin"])];
    expect((await ask(2, "/needs/kpi:read", one.key)).answered).toBe(2);
    const { answered, refused } = await ask(2, "/needs/run:read", one.key);
    expect(answered).toBe(1);
    expect(refused).toMatchObject({ status: 429, body: { code: "RATE_LIMITED", details: { limit: 3 } } });
    const seconds = Number(refused?.headers.get("retry-after"));
    expect(seconds).toBeGreaterThanOrEqual(1);
    expect(seconds).toBeLessThanOrEqual(60);
    expect(refused?.body["error"]).toBe(`This key made more than 3 requests in a minute. Try again in ${seconds} s.`);
    expect((await ask(3, "/needs/kpi:read", other.key)).answered).toBe(3);
  });

  test("is answered with 503 where clients would drop their data after 429", async () => {
    const { key } = await makeKey(["admin"]);
    const { answered, refused } = await ask(4, "/sink", key);
    expect(answered).toBe(3);
    expect(refused).toMatchObject({ status: 503, body: { code: "SENDING_TOO_FAST", details: { limit: 3 } } });
    expect(Number(refused?.headers.get("retry-after"))).toBeGreaterThanOrEqual(1);
  });

  test("may be a key's own, lower or higher", async () => {
    const [slow, fast] = [
      await makeKey(["admin"], { rateLimitPerMinute: 1 }),
      await makeKey(["admin"], { rateLimitPerMinute: 5 }),
    ];
    expect((await ask(2, "/needs/kpi:read", slow.key)).answered).toBe(1);
    const { answered, refused } = await ask(6, "/needs/kpi:read", fast.key);
    expect(answered).toBe(5);
    expect(refused?.body["details"]).toMatchObject({ limit: 5 });
  });

  test("of one key applies where the server has none, and other keys have none", async () => {
    const [slow, free] = [await makeKey(["admin"], { rateLimitPerMinute: 1 }), await makeKey(["admin"])];
    const statuses = async ({ key }: { key: string }) => {
      const answers = [];
      for (let i = 0; i < 3; i += 1) answers.push((await http.send("/needs/kpi:read", withKey(key))).status);
      return answers;
    };
    expect(await statuses(slow)).toEqual([200, 429, 429]);
    expect(await statuses(free)).toEqual([200, 200, 200]);
  });

  test("counts callers without a key by their address", async () => {
    const statuses = [];
    for (let i = 0; i < 4; i += 1) statuses.push((await withoutKey(`${limited.url}/needs/run:read`)).status);
    expect(statuses).toEqual([200, 200, 200, 429]);
    expect((await withoutKey(`${limited.url}/needs/run:read`)).body["error"]).toMatch(
      /^This address made more than 3 r/,
    );
  });

  test("does not apply to public routes, including the reference", async () => {
    for (const path of ["/open", "/docs/json", "/openapi.json"]) {
      for (let i = 0; i < 5; i += 1) expect((await fetch(limited.url + path)).status).toBe(200);
    }
  });
});

test("an address that guesses keys is limited, and valid keys from there still work", async () => {
  const guessed = await start({});
  const guess = () => guessed.send("/needs/kpi:read", withKey(`mlr_${randomBytes(32).toString("base64url")}`));
  try {
    const { key } = await guessed.keys.create(database.db, { name: "good", scopes: ["kpi:read"] }, "test");
    expect((await guessed.send("/needs/kpi:read", withKey(key))).status).toBe(200);
    for (let i = 0; i < 60; i += 1) expect((await guess()).status).toBe(401);
    const refused = await guess();
    expect(refused).toMatchObject({ status: 429, body: { code: "RATE_LIMITED", details: { limit: 60 } } });
    expect(Number(refused.headers.get("retry-after"))).toBeGreaterThanOrEqual(1);
    expect((await guessed.send("/needs/kpi:read", withKey(key))).status).toBe(200);
    expect((await guessed.send("/needs/admin")).status).toBe(200);
    expect((await guessed.send("/open")).status).toBe(200);
  } finally {
    await guessed.stop();
  }
});

describe("a request", () => {
  const config = { scope: "public" } as const;

  test("must be complete after a minute, but its answer may take longer", async () => {
    const answer = signal();
    const hasty = await start({
      routes(server) {
        expect(server.server.requestTimeout).toBe(60_000);
        // A minute is too long for a test. The last one is read, though this is not documented, when the server listens.
        Object.assign(server.server, { requestTimeout: 50, headersTimeout: 50, connectionsCheckingInterval: 10 });
        server.post("/slow", { config }, async () => {
          await answer.promise;
          return { done: true };
        });
      },
    });
    try {
      const polling = hasty.send("/slow", { body: {} });
      const socket = connect(hasty.port, "127.0.0.1");
      socket.write("POST /slow HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{");
      const refusal = await text(socket);
      expect(refusal).toMatch(/^HTTP\/1.1 400 /);
      expect(refusal).toContain("The request was not complete in time.");
      answer.resolve();
      expect(await polling).toMatchObject({ status: 200, body: { done: true } });
    } finally {
      await hasty.stop();
    }
  });

  test("whose caller disconnected is counted once, with status 499", async () => {
    const [asked, answer] = [signal(), signal()];
    const left = await start({
      routes: (server) =>
        void server.get("/slow", { config }, async () => {
          asked.resolve();
          await answer.promise;
          return {};
        }),
    });
    const counted = async () =>
      (await left.metrics.render()).split("\n").filter((line) => line.includes('request_seconds_count{method="GET"'));
    const disconnected = 'millrace_http_request_seconds_count{method="GET",route="/slow",status="499"} 1';
    try {
      const disconnect = new AbortController();
      const asking = expect(fetch(`${left.url}/slow`, { signal: disconnect.signal })).rejects.toThrow("abort");
      await asked.promise;
      disconnect.abort();
      await asking;
      await until(async () => (await counted()).length > 0, "the request to be counted");
      expect(await counted()).toEqual([disconnected]);
      answer.resolve();
      expect((await left.send("/slow")).status).toBe(200);
      expect((await counted()).sort()).toEqual([disconnected.replace("499", "200"), disconnected]);
    } finally {
      await left.stop();
    }
  });
});

describe("a route", () => {
  test("that names no scope stops the start", async () => {
    const forgetful = (schema: object) =>
      start({ routes: (server) => void server.get("/oops", { schema }, async () => ({})) });
    await expect(forgetful({})).rejects.toThrow("route /oops names no scope");
    await expect(forgetful({ hide: true })).rejects.toThrow("route /oops names no scope");
  });

  test("that accepts any query parameter stops the start, unless it says why it does", async () => {
    const open = (config: { openQuery?: true }, querystring?: object) =>
      start({
        routes: (server) =>
          void server.get(
            "/oops",
            { config: { scope: "public", ...config }, schema: querystring ? { querystring } : {} },
            async () => ({}),
          ),
      });
    const query = Type.Object({ limit: Type.Optional(Type.Integer()) });
    await expect(open({}, query)).rejects.toThrow("route /oops has an open query schema");
    for (const [config, schema, status] of [
      [{ openQuery: true }, query, 200],
      [{}, undefined, 400],
    ] as const) {
      const server = await open(config, schema);
      expect((await server.send("/oops?x=1")).status).toBe(status);
      await server.stop();
    }
  });

  test("that stays open learns when the key is revoked or the token expires", async () => {
    let waits = 0;
    const caller = {
      name: "x",
      keyId: null,
      scopes: ["admin"],
      tenantId: null,
      source: null,
      rateLimitPerMinute: null,
    };
    const server = await start({
      assertions: { verify: async () => ({ ...caller, expiresAtMs: Date.now() + 50 }) },
      routes: (routed) =>
        void routed.get("/waits", { config: { scope: "admin" } }, async (request) => {
          const ended = request.accessEnds();
          waits += 1;
          if (!ended.aborted) await once(ended, "abort");
          return {};
        }),
    });
    try {
      expect((await server.send("/waits", withKey("a.b.c"))).status).toBe(200);
      const { id, key } = await server.keys.create(database.db, { name: "waits", scopes: ["admin"] }, "test");
      const waiting = server.send("/waits", withKey(key));
      await until(() => waits === 2, "the request to wait");
      await database.db.tx((tx) => server.keys.revoke(tx, id));
      expect((await waiting).status).toBe(200);
    } finally {
      await server.stop();
    }
  });

  test("is described in /openapi.json unless it is hidden, and /docs shows it", async () => {
    const { body } = await http.send("/openapi.json");
    expect(body).toMatchObject({ openapi: "3.1.0", info: { title: "Millrace", version: "0.0.0" } });
    expect(Object.keys(body["paths"] as object)).toContain("/needs/pipeline:read");
    expect(Object.keys(body["paths"] as object)).not.toContain("/openapi.json");
    expect((await fetch(`${http.url}/docs`)).headers.get("content-type")).toContain("text/html");
    // Otherwise the browser's storage would keep a key.
    const script = await (await fetch(`${http.url}/docs/static/swagger-initializer.js`)).text();
    expect(script).toMatch(/"?persistAuthorization"?: ?false/);
  });

  test("is described in the same bytes at /openapi.json and in /docs, and answered with 304 to a caller that has them", async () => {
    const first = await fetch(`${http.url}/openapi.json`);
    expect(first.headers.get("content-type")).toBe("application/json; charset=utf-8");
    const etag = first.headers.get("etag") ?? "";
    const bytes = await first.text();
    const inReference = await fetch(`${http.url}/docs/json`);
    expect(inReference.headers.get("etag")).toBe(etag);
    expect(await inReference.text()).toBe(bytes);
    const again = await fetch(`${http.url}/openapi.json`, { headers: { "if-none-match": etag } });
    expect([again.status, await again.text()]).toEqual([304, ""]);
    const older = await fetch(`${http.url}/openapi.json`, { headers: { "if-none-match": '"of another version"' } });
    expect([older.status, await older.text()]).toEqual([200, bytes]);
  });

  test("is described with the common answers of the server and its own", async () => {
    const schema = { response: { 200: Type.Object({}), ...errors(404) } };
    const described = await start({
      routes(server) {
        server.get("/open", { config: { scope: "public" }, schema }, async () => ({}));
        server.get("/keyed", { config: { scope: "admin" }, schema: { ...schema } }, async () => ({}));
        const body = Type.Object({});
        server.post("/keyed", { config: { scope: "admin" }, schema: { ...schema, body } }, async () => ({}));
      },
    });
    try {
      const { body } = await described.send("/openapi.json");
      const paths = body["paths"] as Record<string, Record<string, { responses: Record<string, Json> }>>;
      const answersOf = (path: string, method: string) => Object.keys(paths[path]?.[method]?.responses ?? {});
      expect(answersOf("/open", "get")).toEqual(["200", "404", "503"]);
      expect(answersOf("/keyed", "get")).toEqual(["200", "401", "403", "404", "429", "503"]);
      expect(answersOf("/keyed", "post")).toEqual(["200", "401", "403", "404", "413", "415", "429", "503"]);
      for (const answer of Object.values(paths["/keyed"]?.["post"]?.responses ?? {})) {
        expect(answer["description"]).toMatch(/./);
      }
    } finally {
      await described.stop();
    }
  });

  test("is measured by its pattern and status, and unknown ones under one name", async () => {
    await http.send("/needs/admin");
    await http.send("/one/nowhere");
    await http.send("/another/nowhere");
    const rendered = await http.metrics.render();
    expect(rendered).toMatch(/request_seconds_count\{method="GET",route="\/needs\/admin",status="200"\} \d/);
    expect(rendered).toMatch(/request_seconds_count\{method="GET",route="unknown",status="404"\} \d/);
    expect(rendered).not.toContain("nowhere");
  });
});

test("a stopping server refuses new requests, and says when to try again", async () => {
  let stopping = false;
  const ending = await start({ isStopping: () => stopping });
  try {
    expect((await ending.send("/needs/admin")).status).toBe(200);
    stopping = true;
    const answer = await ending.send("/needs/admin");
    expect(answer).toMatchObject({
      status: 503,
      body: { code: "SHUTTING_DOWN", error: "This process is stopping. Try again in 2 s." },
    });
    expect(answer.headers.get("retry-after")).toBe("2");
    expect(ending.lines).toEqual([]);
  } finally {
    await ending.stop();
  }
});

test("a request that ends after its answer, while the server stops, does not keep the connection open", async () => {
  const stopping = await start({});
  const socket = connect(stopping.port, "127.0.0.1");
  socket.write("POST /needs/admin HTTP/1.1\r\nHost: millrace\r\nContent-Length: 2\r\n\r\n{");
  const [answer] = (await once(socket, "data")) as [Buffer];
  expect(String(answer)).toMatch(/^HTTP\/1\.1 4\d\d /);
  const stopped = stopping.stop();
  const refuses = () =>
    fetch(`${stopping.url}/open`).then(
      () => false,
      () => true,
    );
  await until(refuses, "the server to stop listening");
  socket.write("}");
  await stopped; // Within the test's time-out, which is shorter than the time for which connections are kept alive.
});
