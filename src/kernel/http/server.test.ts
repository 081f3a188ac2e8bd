/** What the server does for every route: request ids, keys and scopes, rate limits, and turning away while it stops. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Json } from "../../../test/client.ts";
import { useDatabase } from "../../../test/database.ts";
import { startHttp, type TestHttp, type TestHttpOptions } from "../../../test/http.ts";
import { SCOPES, type Scope } from "../auth/scopes.ts";
import type { Http } from "./server.ts";

const database = useDatabase();
let http: TestHttp;

/** One route for each scope, such as `/needs/pipeline:read`, and one that everyone may call. */
function routes(server: Http): void {
  for (const scope of SCOPES) {
    server.get(`/needs/${scope.replace(":", "::")}`, { config: { scope } }, async ({ caller }) => ({ ...caller }));
  }
  server.get("/open", { config: { scope: "public" } }, async ({ caller }) => ({ ...caller }));
}

async function start(options: Partial<TestHttpOptions>): Promise<TestHttp> {
  return startHttp({ db: database.db, routes, ...options });
}

function makeKey(scopes: Scope[], more: { tenantId?: number; rateLimitPerMinute?: number } = {}) {
  return http.keys.create(database.db, { name: "made by a test", scopes, ...more }, "test");
}

const withKey = (key: string) => ({ headers: { authorization: `Bearer ${key}` } });
const withoutKey = (url: string) => fetch(url).then(async (r) => ({ status: r.status, body: (await r.json()) as Json }));

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
    "that could not stand in a log is replaced: %j",
    async (given) => {
      expect(await idFor(given)).toMatch(/^[\da-f]{8}-[\da-f-]{27}$/);
    },
  );

  test("is made where none was given, a new one each time", async () => {
    const [first, second] = [await http.send("/open"), await http.send("/open")];
    expect(first.headers.get("x-request-id")).toMatch(/^[\da-f-]{36}$/);
    expect(first.headers.get("x-request-id")).not.toBe(second.headers.get("x-request-id"));
  });

  test("comes with refusals too, wherever they are made", async () => {
    for (const path of ["/nowhere", "/needs/admin", "/%zz"]) {
      const headers = { "x-request-id": "mine", authorization: "Bearer wrong" };
      const answer = await http.send(path, { headers });
      expect(answer.status).toBeGreaterThanOrEqual(400);
      expect(answer.headers.get("x-request-id")).toBe("mine");
    }
  });
});

describe("a key", () => {
  test("that is missing is asked for", async () => {
    const response = await fetch(`${http.url}/needs/pipeline:read`);
    expect(response.status).toBe(401);
    expect(response.headers.get("www-authenticate")).toBe("Bearer");
    expect(await response.json()).toEqual({
      code: "UNAUTHENTICATED",
      error: "This call needs a key. Send `Authorization: Bearer <key>`.",
    });
  });

  test.each([
    ["that nobody made", `Bearer mlr_${"A".repeat(43)}`],
    ["of another shape", "Bearer secret"],
    ["in another scheme", "Basic dXNlcjpwYXNz"],
    ["without its scheme", `mlr_${"A".repeat(43)}`],
    ["that is empty", "Bearer"],
    ["with something behind it", `Bearer mlr_${"A".repeat(43)} x`],
  ])("%s is refused", async (_, authorization) => {
    expect(await http.send("/needs/pipeline:read", { headers: { authorization } })).toMatchObject({
      status: 401,
      body: {
        code: "UNAUTHENTICATED",
        error: "This key is not known, or it was revoked. Send `Authorization: Bearer <key>`.",
      },
    });
  });

  test("reaches what its scopes name and nothing else", async () => {
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

  test("with the scope admin reaches everything", async () => {
    const { key } = await makeKey(["admin"]);
    expect(await reachedBy(key)).toEqual(SCOPES);
  });

  test("that is bound to a tenant reaches lineage and nothing else, whatever its scopes say", async () => {
    const { key } = await makeKey(["admin", "pipeline:read"], { tenantId: 7 });
    expect(await reachedBy(key)).toEqual(["lineage:read", "lineage:write"]);
    const { key: reader } = await makeKey(["lineage:read", "kpi:read"], { tenantId: 7 });
    expect(await reachedBy(reader)).toEqual(["lineage:read"]);
    expect((await http.send("/needs/lineage:read", withKey(reader))).body).toMatchObject({ tenantId: "7" });
  });

  test("that was revoked is refused from the next request on", async () => {
    const { id, key } = await makeKey(["kpi:read"]);
    expect((await http.send("/needs/kpi:read", withKey(key))).status).toBe(200);
    await http.keys.revoke(database.db, id);
    http.keys.forget();
    expect((await http.send("/needs/kpi:read", withKey(key))).status).toBe(401);
  });

  test("from the environment is an admin without a row", async () => {
    expect((await http.send("/needs/admin")).body).toMatchObject({ name: "MILLRACE_ADMIN_KEY", keyId: null });
  });

  test("is not looked at where everyone may come, so that health does not hang on the database", async () => {
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

  /** How many of so many requests are answered, and the first refusal. */
  async function ask(times: number, path: string, key: string) {
    const answers = [];
    for (let i = 0; i < times; i += 1) answers.push(await limited.send(path, withKey(key)));
    return {
      answered: answers.filter(({ status }) => status === 200).length,
      refused: answers.find(({ status }) => status !== 200),
    };
  }

  test("counts each key by itself, over all routes, and says when to come again", async () => {
    const [one, other] = [await makeKey(["admin"]), await makeKey(["admin"])];
    expect((await ask(2, "/needs/kpi:read", one.key)).answered).toBe(2);
    const { answered, refused } = await ask(2, "/needs/run:read", one.key);
    expect(answered).toBe(1);
    expect(refused).toMatchObject({ status: 429, body: { code: "RATE_LIMITED", details: { limit: 3 } } });
    const seconds = Number(refused?.headers.get("retry-after"));
    expect(seconds).toBeGreaterThanOrEqual(1);
    expect(seconds).toBeLessThanOrEqual(60);
    expect(refused?.body["error"]).toBe(
      `This key made more than 3 requests in a minute. Try again in ${seconds} s.`,
    );
    expect((await ask(3, "/needs/kpi:read", other.key)).answered).toBe(3);
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

  test("counts callers without a key by their address", async () => {
    const statuses = [];
    for (let i = 0; i < 4; i += 1) statuses.push((await withoutKey(`${limited.url}/needs/run:read`)).status);
    expect(statuses).toEqual([200, 200, 200, 429]);
  });

  test("spares what is open to everyone, the reference included", async () => {
    for (const path of ["/open", "/docs/json", "/openapi.json"]) {
      for (let i = 0; i < 5; i += 1) expect((await fetch(limited.url + path)).status).toBe(200);
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

  test("is described in /openapi.json unless it is hidden, and /docs shows it", async () => {
    const { body } = await http.send("/openapi.json");
    expect(body).toMatchObject({ openapi: "3.1.0", info: { title: "Millrace", version: "0.0.0" } });
    expect(Object.keys(body["paths"] as object)).toContain("/needs/pipeline:read");
    expect(Object.keys(body["paths"] as object)).not.toContain("/openapi.json");
    expect((await fetch(`${http.url}/docs`)).headers.get("content-type")).toContain("text/html");
  });

  test("is counted by its pattern and status, and unknown ones under one name", async () => {
    await http.send("/needs/admin");
    await http.send("/one/nowhere");
    await http.send("/another/nowhere");
    const text = await http.metrics.render();
    expect(text).toMatch(/request_seconds_count\{method="GET",route="\/needs\/admin",status="200"\} \d/);
    expect(text).toMatch(/request_seconds_count\{method="GET",route="unknown",status="404"\} \d/);
    expect(text).not.toContain("nowhere");
  });
});

test("a stopping server turns new requests away, and says when to try again", async () => {
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
