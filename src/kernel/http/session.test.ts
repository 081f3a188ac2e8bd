/** Signing in to the console: the cookie, who it stands for, which calls it counts for, and how it ends. */
import { once } from "node:events";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import type { Json } from "../../../test/client.ts";
import { useDatabase } from "../../../test/database.ts";
import { startHttp, type TestHttp, type TestHttpOptions } from "../../../test/http.ts";
import { ADMIN_KEY } from "../../../test/millrace.ts";
import { until } from "../../../test/until.ts";
import { audit } from "../auth/audit.ts";
import { createConsoleAccess } from "../auth/console-access.ts";
import { openDb } from "../data/db.ts";
import { createWake } from "../work/wake.ts";
import { actorOf } from "./server.ts";
import { sessionRoutes } from "./session-routes.ts";

const database = useDatabase();
let http: TestHttp;
let acted = 0;
let waiting = 0;

function start(options: Partial<TestHttpOptions> = {}): Promise<TestHttp> {
  return startHttp({
    db: database.db,
    routes(server, { keys, sessions, links }) {
      sessionRoutes(server, { db: options.db ?? database.db, keys, sessions, links });
      server.get("/runs", { config: { scope: "run:read" } }, async ({ caller: { name } }) => ({ name }));
      server.get("/assets", { config: { scope: "lineage:read" } }, async ({ caller: { tenantId } }) => ({ tenantId }));
      server.get("/open", { config: { scope: "public" } }, async () => ({}));
      const control = { config: { scope: "run:control", bodyOptional: true } } as const;
      server.post("/act", control, async (request) => {
        acted += 1;
        await audit(database.db, actorOf(request), "test.act", "it", { because: "a test" });
        return {};
      });
      server.get("/waits", { config: { scope: "run:read" } }, async (request) => {
        const ended = request.accessEnds();
        waiting += 1;
        if (!ended.aborted) await once(ended, "abort");
        return {};
      });
    },
    ...options,
  });
}

beforeAll(async () => {
  http = await start();
});
afterAll(() => http.stop());

interface Sent {
  method?: string;
  headers?: Record<string, string>;
  body?: object;
}

/** Without a key. */
async function send(path: string, { method, headers, body }: Sent = {}, to = http) {
  const response = await fetch(to.url + path, {
    method: method ?? (body ? "POST" : "GET"),
    headers: { ...(body ? { "content-type": "application/json" } : {}), ...headers },
    ...(body ? { body: JSON.stringify(body) } : {}),
  });
  return { status: response.status, headers: response.headers, body: (await response.json()) as Json };
}

const makeKey = (scopes: string[], more: { tenantId?: number; rateLimitPerMinute?: number; name?: string } = {}) =>
  http.keys.create(database.db, { name: "Ann", scopes, ...more }, "test");
const revoke = (id: string) => database.db.tx((tx) => http.keys.revoke(tx, id));

/** The cookie as a browser sends it. */
async function signIn(body: { key: string } | { code: string }, to = http): Promise<string> {
  const { status, headers } = await send("/session", { body }, to);
  expect(status).toBe(200);
  return (headers.get("set-cookie") ?? "").split(";", 1)[0] as string;
}

const codeOf = ({ status, body }: { status: number; body: Json }) => [status, body["code"]];
const fromPage = (cookie: string) => ({ cookie, "sec-fetch-site": "same-origin", "x-millrace-console": "1" });
const newLink = async (headers: Record<string, string> = { authorization: `Bearer ${ADMIN_KEY}` }, to = http) =>
  String((await send("/session/links", { method: "POST", headers }, to)).body["code"]);

describe("signing in with a key", () => {
  test("sets a cookie that no script reads and no other site sends, and says who it is", async () => {
    const { id, key } = await makeKey(["run:read"]);
    const { status, headers, body } = await send("/session", { body: { key } });
    expect(status).toBe(200);
    expect(headers.get("set-cookie")).toMatch(
      /^millrace=k[\w-]{43}; Path=\/; Max-Age=604800; HttpOnly; SameSite=Strict$/,
    );
    expect(headers.get("cache-control")).toBe("no-store");
    const who = { name: "Ann", keyId: id, scopes: ["run:read"], via: "session", expiresAt: expect.any(String) };
    expect(body).toEqual(who);
    const cookie = (headers.get("set-cookie") ?? "").split(";", 1)[0] as string;
    expect(await send("/session", { headers: { cookie } })).toMatchObject({ status: 200, body: who });
    const inHours = (Date.parse(String(body["expiresAt"])) - Date.now()) / 3_600_000;
    expect(inHours).toBeGreaterThan(11.9);
    expect(inHours).toBeLessThan(12.1);
  });

  test("behind a proxy that says TLS sets a cookie of this host for TLS only, and no other counts there", async () => {
    const proxied = await start({ trustedProxies: ["127.0.0.1"] });
    onTestFinished(proxied.stop);
    const tls = { "x-forwarded-proto": "https" };
    const { headers } = await send("/session", { body: { key: ADMIN_KEY }, headers: tls }, proxied);
    const set = headers.get("set-cookie") ?? "";
    expect(set).toMatch(/^__Host-millrace=e[\w-]{43}; Path=\/; Max-Age=604800; HttpOnly; SameSite=Strict; Secure$/);
    const cookie = set.split(";", 1)[0] as string;
    expect((await send("/runs", { headers: { ...tls, cookie } }, proxied)).status).toBe(200);
    const plain = cookie.replace("__Host-", "");
    expect(codeOf(await send("/runs", { headers: { ...tls, cookie: plain } }, proxied))).toEqual([
      401,
      "UNAUTHENTICATED",
    ]);
    // From anybody else the header says nothing.
    const direct = await send("/session", { body: { key: ADMIN_KEY }, headers: tls });
    expect(direct.headers.get("set-cookie")).toMatch(/^millrace=(?!.*Secure)/);
  });

  test("stores the token only as a hash", async () => {
    const token = (await signIn({ key: ADMIN_KEY })).slice("millrace=".length);
    const rows = await database.query("select encode(hash, 'escape') as text, s.* from kernel.console_session s");
    expect(JSON.stringify(rows)).not.toContain(token.slice(1, 20));
  });

  test.each<[string, object, number, string]>([
    ["an unknown key", { key: `mlr_${"A".repeat(43)}` }, 401, "SIGN_IN_REFUSED"],
    ["another text", { key: "secret" }, 401, "SIGN_IN_REFUSED"],
    ["an unknown code", { code: `k${"A".repeat(43)}` }, 401, "SIGN_IN_REFUSED"],
    ["another text as code", { code: "" }, 401, "SIGN_IN_REFUSED"],
    ["nothing", {}, 400, "VALIDATION_FAILED"],
    ["both", { key: ADMIN_KEY, code: "x" }, 400, "VALIDATION_FAILED"],
    ["a number", { key: 1 }, 400, "VALIDATION_FAILED"],
  ])("is refused for %s, without a cookie", async (_, body, status, code) => {
    const answer = await send("/session", { body });
    expect(codeOf(answer)).toEqual([status, code]);
    expect(answer.headers.get("set-cookie")).toBeNull();
  });

  test("is refused to a page of another site, which could sign people in as somebody else", async () => {
    const headers = { origin: "http://evil.example" };
    expect(codeOf(await send("/session", { body: { key: ADMIN_KEY }, headers }))).toEqual([403, "CROSS_SITE"]);
  });

  test("again replaces the session of the browser", async () => {
    const before = await signIn({ key: ADMIN_KEY });
    const { status } = await send("/session", { body: { key: ADMIN_KEY }, headers: { cookie: before } });
    expect(status).toBe(200);
    expect(codeOf(await send("/runs", { headers: { cookie: before } }))).toEqual([401, "SESSION_EXPIRED"]);
  });

  test("leaves a row in the audit log", async () => {
    const { id, key } = await makeKey(["run:read"]);
    await signIn({ key });
    const rows = await database.query("select * from kernel.audit_log where key_id = $1", [id]);
    expect(rows).toMatchObject([{ actor: "Ann", action: "session.start", details: { by: "key", via: "console" } }]);
  });
});

describe("a session", () => {
  test("may do what its key may, and nothing else", async () => {
    const { key } = await makeKey(["run:read"]);
    const cookie = await signIn({ key });
    expect(await send("/runs", { headers: { cookie } })).toMatchObject({ status: 200, body: { name: "Ann" } });
    expect(codeOf(await send("/assets", { headers: { cookie } }))).toEqual([403, "FORBIDDEN"]);
    const bound = await signIn({ key: (await makeKey(["admin"], { tenantId: 7 })).key });
    expect((await send("/assets", { headers: { cookie: bound } })).body).toEqual({ tenantId: "7" });
    expect(codeOf(await send("/runs", { headers: { cookie: bound } }))).toEqual([403, "FORBIDDEN"]);
    expect((await send("/session", { headers: { cookie: bound } })).body).toMatchObject({ tenantId: 7 });
  });

  test("counts for the rate limit of its key, together with the key itself", async () => {
    const { key } = await makeKey(["admin"], { rateLimitPerMinute: 3 });
    const cookie = await signIn({ key });
    const statuses = [];
    for (const headers of [
      { cookie },
      { authorization: `Bearer ${key}` },
      { cookie },
      { cookie },
    ] as Sent["headers"][]) {
      statuses.push((await send("/runs", headers ? { headers } : {})).status);
    }
    expect(statuses).toEqual([200, 200, 200, 429]);
  });

  test("acts in the name of its key, and the audit log tells that it came by the console", async () => {
    const { id, key } = await makeKey(["admin"]);
    const act = (headers: Record<string, string>) => send("/act", { method: "POST", headers });
    expect((await act(fromPage(await signIn({ key })))).status).toBe(200);
    expect((await act({ authorization: `Bearer ${key}` })).status).toBe(200);
    const rows = await database.query(
      "select actor, details from kernel.audit_log where key_id = $1 and action = 'test.act' order by id",
      [id],
    );
    expect(rows).toEqual([
      { actor: "Ann", details: { because: "a test", via: "console" } },
      { actor: "Ann", details: { because: "a test" } },
    ]);
  });

  test("does not count where there is a key, not even a wrong one", async () => {
    const cookie = await signIn({ key: ADMIN_KEY });
    const { key } = await makeKey(["run:read"], { name: "Bob" });
    const authorization = `Bearer ${key}`;
    expect((await send("/runs", { headers: { cookie, authorization } })).body).toEqual({ name: "Bob" });
    const wrong = { cookie, authorization: "Bearer wrong" };
    expect(codeOf(await send("/runs", { headers: wrong }))).toEqual([401, "UNAUTHENTICATED"]);
  });

  test("is found among other cookies", async () => {
    const cookie = await signIn({ key: ADMIN_KEY });
    const headers = { cookie: `theme=dark; xmillrace=1; ${cookie}; millraces=2` };
    expect((await send("/runs", { headers })).status).toBe(200);
  });

  test.each(["millrace=", "millrace=x", `millrace=k${"A".repeat(43)}`, `millrace=e${"A".repeat(43)}`])(
    "that does not exist is SESSION_EXPIRED: %s",
    async (cookie) => {
      const answer = await send("/runs", { headers: { cookie } });
      expect(answer).toMatchObject({ status: 401, body: { error: "This session has ended. Sign in again." } });
      expect(answer.body["code"]).toBe("SESSION_EXPIRED");
      expect((await send("/open", { headers: { cookie } })).status).toBe(200);
    },
  );

  test("costs no statement for each request", async () => {
    const statements: string[] = [];
    const db = openDb({ connection: database.connection, onStatement: (name) => void statements.push(name) });
    const counted = await start({ db });
    onTestFinished(async () => {
      await counted.stop();
      await db.close();
    });
    const cookie = await signIn({ key: (await makeKey(["run:read"])).key }, counted);
    statements.length = 0;
    for (let i = 0; i < 10; i += 1) await send("/runs", { headers: { cookie } }, counted);
    expect(statements).toEqual(["kernel.console_session.find"]);
  });
});

describe("a call with the cookie", () => {
  const own = () => `http://127.0.0.1:${http.port}`;
  const page = { "x-millrace-console": "1" };

  test.each<[string, () => Record<string, string>]>([
    ["a page of this server makes it", () => ({ ...page, origin: own(), "sec-fetch-site": "same-origin" })],
    ["a page of this server makes it, over plain HTTP", () => ({ ...page, origin: own() })],
    [
      "a proxy has changed the host, and the browser vouches",
      () => ({ ...page, origin: "http://x", "sec-fetch-site": "same-origin" }),
    ],
  ])("changes something if %s", async (_, headers) => {
    const cookie = await signIn({ key: ADMIN_KEY });
    const before = acted;
    expect((await send("/act", { method: "POST", headers: { cookie, ...headers() } })).status).toBe(200);
    expect(acted).toBe(before + 1);
  });

  test.each<[string, () => Record<string, string>]>([
    ["nothing says where it comes from", () => page],
    ["the header of the page is missing", () => ({ origin: own(), "sec-fetch-site": "same-origin" })],
    ["the header of the page is another", () => ({ origin: own(), "x-millrace-console": "true" })],
    ["it comes from another site", () => ({ ...page, "sec-fetch-site": "cross-site" })],
    ["it comes from another port or a subdomain", () => ({ ...page, "sec-fetch-site": "same-site" })],
    ["no page makes it", () => ({ ...page, "sec-fetch-site": "none" })],
    ["its origin is another", () => ({ ...page, origin: "http://evil.example" })],
    ["its origin is another port", () => ({ ...page, origin: "http://127.0.0.1:1" })],
    ["its origin is hidden", () => ({ ...page, origin: "null" })],
    [
      "its own origin is not believed by the browser",
      () => ({ ...page, origin: own(), "sec-fetch-site": "cross-site" }),
    ],
  ])("is CROSS_SITE and changes nothing if %s", async (_, headers) => {
    const cookie = await signIn({ key: ADMIN_KEY });
    const before = acted;
    expect(codeOf(await send("/act", { method: "POST", headers: { cookie, ...headers() } }))).toEqual([
      403,
      "CROSS_SITE",
    ]);
    expect(codeOf(await send("/session", { method: "DELETE", headers: { cookie, ...headers() } }))[0]).toBe(403);
    expect(acted).toBe(before);
    expect((await send("/session", { headers: { cookie } })).status).toBe(200);
  });

  test.each<[string, () => Record<string, string>, number]>([
    ["of a page of this server", () => ({ "sec-fetch-site": "same-origin" }), 200],
    ["that a person types", () => ({ "sec-fetch-site": "none" }), 200],
    ["of another site", () => ({ "sec-fetch-site": "cross-site" }), 403],
    ["of another port", () => ({ "sec-fetch-site": "same-site" }), 403],
    ["of another origin", () => ({ origin: "http://evil.example" }), 403],
  ])("is a read %s", async (_, headers, status) => {
    const cookie = await signIn({ key: ADMIN_KEY });
    expect((await send("/runs", { headers: { cookie, ...headers() } })).status).toBe(status);
  });
});

describe("with anonymous scopes", () => {
  let trusting: TestHttp;
  beforeAll(async () => {
    trusting = await start({ anonymousScopes: ["run:read", "admin"] });
  });
  afterAll(() => trusting.stop());

  test("a caller without a cookie is anonymous, and one with a cookie is not", async () => {
    expect((await send("/runs", {}, trusting)).body).toEqual({ name: "anonymous" });
    expect((await send("/session", {}, trusting)).body).toEqual({
      name: "anonymous",
      scopes: ["run:read", "admin"],
      via: "anonymous",
    });
    const { key } = await makeKey(["lineage:read"]);
    const cookie = await signIn({ key }, trusting);
    expect((await send("/session", { headers: { cookie } }, trusting)).body).toMatchObject({ name: "Ann" });
    expect(codeOf(await send("/runs", { headers: { cookie } }, trusting))).toEqual([403, "FORBIDDEN"]);
  });

  test("a session that has ended is not anonymous, so that a page does not go on as somebody else", async () => {
    const headers = { cookie: `millrace=k${"A".repeat(43)}` };
    expect(codeOf(await send("/runs", { headers }, trusting))).toEqual([401, "SESSION_EXPIRED"]);
  });

  test("an anonymous admin has no key, and so can make no link", async () => {
    expect(codeOf(await send("/session/links", { method: "POST" }, trusting))).toEqual([403, "FORBIDDEN"]);
  });
});

test("GET /session without scopes is 401, and with a key says so", async () => {
  expect(codeOf(await send("/session"))).toEqual([401, "UNAUTHENTICATED"]);
  expect((await send("/session", { headers: { authorization: `Bearer ${ADMIN_KEY}` } })).body).toEqual({
    name: "MILLRACE_ADMIN_KEY",
    scopes: ["admin"],
    via: "key",
  });
});

describe("a session ends", () => {
  const age = (column: "used_at" | "created_at", keyId: string, interval: string) =>
    database.query(`update kernel.console_session set ${column} = now() - $2::interval where key_id = $1`, [
      keyId,
      interval,
    ]);
  const usedMinutesAgo = async (keyId: string) => {
    const [row] = await database.query<{ minutes: number }>(
      "select extract(epoch from now() - used_at)::float8 / 60 as minutes from kernel.console_session where key_id = $1",
      [keyId],
    );
    return row?.minutes ?? Number.NaN;
  };

  async function waitsWith(cookie: string): Promise<Promise<{ status: number }>[]> {
    const before = waiting;
    const open = send("/waits", { headers: { cookie } });
    await until(() => waiting > before, "the request to wait");
    return [open];
  }

  test("when its key is revoked, at once, with the requests that are open", async () => {
    const { id, key } = await makeKey(["run:read"]);
    const cookie = await signIn({ key });
    expect((await send("/runs", { headers: { cookie } })).status).toBe(200);
    const [open] = await waitsWith(cookie);
    await revoke(id);
    expect(codeOf(await send("/runs", { headers: { cookie } }))).toEqual([401, "SESSION_EXPIRED"]);
    expect((await open)?.status).toBe(200);
  });

  test("when its person signs out, and the other sessions of the key go on", async () => {
    const { key } = await makeKey(["run:read"]);
    const [one, other] = [await signIn({ key }), await signIn({ key })];
    const [open] = await waitsWith(one);
    const left = await send("/session", { method: "DELETE", headers: fromPage(one) });
    expect(left).toMatchObject({ status: 200, body: { ended: true } });
    expect(left.headers.get("set-cookie")).toBe("millrace=; Path=/; Max-Age=0; HttpOnly; SameSite=Strict");
    expect((await open)?.status).toBe(200);
    expect(codeOf(await send("/session", { headers: { cookie: one } }))).toEqual([401, "SESSION_EXPIRED"]);
    expect((await send("/session", { headers: { cookie: other } })).status).toBe(200);
    const again = await send("/session", { method: "DELETE", headers: fromPage(one) });
    expect(again).toMatchObject({ status: 200, body: { ended: false } });
    expect((await send("/session", { method: "DELETE" })).body).toEqual({ ended: false });
  });

  test("after 12 hours without use, and a use is noted at most every few minutes, as one of its key too", async () => {
    const { id, key } = await makeKey(["run:read"]);
    const cookie = await signIn({ key });
    await age("used_at", id, "4 minutes");
    const fresh = await start();
    onTestFinished(fresh.stop);
    expect((await send("/runs", { headers: { cookie } }, fresh)).status).toBe(200);
    expect(await usedMinutesAgo(id)).toBeGreaterThan(3.9);
    await age("used_at", id, "11 hours 59 minutes");
    await database.query("update kernel.api_key set used_at = now() - interval '1 hour' where id = $1", [id]);
    expect((await send("/session", { headers: { cookie } })).status).toBe(200);
    expect(await usedMinutesAgo(id)).toBeLessThan(3.9);
    const justUsed = "select from kernel.api_key where id = $1 and used_at > now() - interval '1 minute'";
    expect(await database.query(justUsed, [id])).toHaveLength(1);
    await age("used_at", id, "12 hours");
    const later = await start();
    onTestFinished(later.stop);
    expect(codeOf(await send("/runs", { headers: { cookie } }, later))).toEqual([401, "SESSION_EXPIRED"]);
  });

  test("after seven days, however much it is used", async () => {
    const { id, key } = await makeKey(["run:read"]);
    const cookie = await signIn({ key });
    await age("created_at", id, "6 days 23 hours");
    const { body } = await send("/session", { headers: { cookie } });
    expect(Date.parse(String(body["expiresAt"])) - Date.now()).toBeLessThanOrEqual(3_600_000);
    await age("created_at", id, "7 days");
    const later = await start();
    onTestFinished(later.stop);
    expect(codeOf(await send("/runs", { headers: { cookie } }, later))).toEqual([401, "SESSION_EXPIRED"]);
  });

  test("when its key has 100 newer ones, and expired ones are deleted by the next sign-in", async () => {
    const { id, key } = await makeKey(["run:read"]);
    const [expired] = await database.query<{ id: string }>(
      `insert into kernel.api_key (id, name, hash, hint, scopes, created_by)
       values (gen_random_uuid(), 'old', '\\x01', 'x', '{}', 'test') returning id`,
    );
    await database.query(
      `insert into kernel.console_session (hash, key_id, created_at, used_at)
       select sha256(n::text::bytea), $1::uuid, now() - interval '1 hour', now() from generate_series(1, 100) n
       union all select sha256('old'), $2::uuid, now() - interval '1 day', now() - interval '13 hours'`,
      [id, expired?.id],
    );
    const cookie = await signIn({ key });
    expect((await send("/runs", { headers: { cookie } })).status).toBe(200);
    const count = "select count(*)::int as n from kernel.console_session where key_id = $1";
    expect(await database.query(count, [id])).toEqual([{ n: 100 }]);
    expect(await database.query(count, [expired?.id])).toEqual([{ n: 0 }]);
  });

  test("when MILLRACE_ADMIN_KEY is changed or removed, if it was signed in with that", async () => {
    const processWith = (adminKey?: string) =>
      createConsoleAccess({ db: database.db, wake: createWake(), clock: { now: Date.now }, adminKey });
    const token = (await signIn({ key: ADMIN_KEY })).slice("millrace=".length);
    expect(await processWith(ADMIN_KEY).sessions.find(token)).toMatchObject({
      name: "MILLRACE_ADMIN_KEY",
      keyId: null,
    });
    expect(await processWith(`${ADMIN_KEY}!`).sessions.find(token)).toBeUndefined();
    expect(await processWith().sessions.find(token)).toBeUndefined();
    const link = await newLink();
    const accepted = (adminKey?: string) => processWith(adminKey).links.redeem(link, "127.0.0.1", async () => {});
    expect([await accepted(`${ADMIN_KEY}!`), await accepted(), await accepted(ADMIN_KEY)]).toEqual([
      false,
      false,
      true,
    ]);
  });
});

describe("a link", () => {
  test("signs in once, with the key that made it, and leaves a row in the audit log", async () => {
    const { id, key } = await makeKey(["admin"], { name: "Eve" });
    const code = await newLink({ authorization: `Bearer ${key}` });
    expect(code).toMatch(/^k[\w-]{43}$/);
    const cookie = await signIn({ code });
    expect((await send("/session", { headers: { cookie } })).body).toMatchObject({ name: "Eve", scopes: ["admin"] });
    expect(await send("/session", { body: { code } })).toMatchObject({
      status: 401,
      body: {
        code: "SIGN_IN_REFUSED",
        error: "This link was used already, or it has expired. `millrace console` prints a new one.",
      },
    });
    const rows = await database.query("select action, details from kernel.audit_log where key_id = $1 order by id", [
      id,
    ]);
    expect(rows).toMatchObject([{ action: "session.link" }, { action: "session.start", details: { by: "link" } }]);
    expect(JSON.stringify(rows)).not.toContain(code.slice(1, 20));
  });

  test("made by a session signs in with the key of that session", async () => {
    const cookie = await signIn({ key: (await makeKey(["admin"], { name: "Eve" })).key });
    const second = await signIn({ code: await newLink(fromPage(cookie)) });
    expect((await send("/session", { headers: { cookie: second } })).body).toMatchObject({ name: "Eve" });
  });

  test("of the environment's admin signs in as that", async () => {
    const cookie = await signIn({ code: await newLink() });
    expect((await send("/session", { headers: { cookie } })).body).toMatchObject({ name: "MILLRACE_ADMIN_KEY" });
  });

  test("needs the scope admin", async () => {
    const { key } = await makeKey(["run:read"]);
    const headers = { authorization: `Bearer ${key}` };
    expect(codeOf(await send("/session/links", { method: "POST", headers }))).toEqual([403, "FORBIDDEN"]);
  });

  test("is valid for 15 minutes, and no longer than its key", async () => {
    const minutes = async () =>
      (
        await database.query<{ minutes: number }>(
          "select extract(epoch from max(expires_at) - now())::float8 / 60 as minutes from kernel.console_link",
        )
      )[0]?.minutes;
    const late = await newLink();
    expect(await minutes()).toBeGreaterThan(14.9);
    expect(await minutes()).toBeLessThanOrEqual(15);
    await database.query("update kernel.console_link set expires_at = now()");
    expect((await send("/session", { body: { code: late } })).status).toBe(401);
    const { id, key } = await makeKey(["admin"]);
    const code = await newLink({ authorization: `Bearer ${key}` });
    await revoke(id);
    expect((await send("/session", { body: { code } })).status).toBe(401);
  });

  test("is not guessed: an address that sends 60 unknown codes in a minute must wait, and a valid one still works", async () => {
    const guessed = await start();
    onTestFinished(guessed.stop);
    const guess = (n: number) =>
      send("/session", { body: { code: `k${String(n).padStart(43, "A")}` } }, guessed).then(({ status }) => status);
    const statuses = await Promise.all(Array.from({ length: 61 }, (_, n) => guess(n)));
    expect(statuses.filter((status) => status === 401)).toHaveLength(60);
    expect(statuses.filter((status) => status === 429)).toHaveLength(1);
    await signIn({ code: await newLink(undefined, guessed) }, guessed);
  });
});

test("the description of the API has the routes", async () => {
  const { body } = await http.send("/openapi.json");
  const paths = body["paths"] as Record<string, object>;
  expect(Object.keys(paths["/session"] ?? {}).sort()).toEqual(["delete", "get", "post"]);
  expect(Object.keys(paths["/session/links"] ?? {})).toEqual(["post"]);
});
