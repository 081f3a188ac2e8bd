/** The routes of no module: health and metrics with and without a database, the front page, keys, the audit log, the doctor. */
import { once } from "node:events";
import { connect, createServer, type Socket } from "node:net";
import { beforeAll, beforeEach, describe, expect, onTestFinished, test } from "vitest";
import type { Json } from "../../../test/client.ts";
import { useDatabase } from "../../../test/database.ts";
import { startHttp, type TestHttp } from "../../../test/http.ts";
import { until } from "../../../test/until.ts";
import { type Db, openDb } from "../db.ts";
import type { DoctorCheck } from "../doctor.ts";
import { METRICS } from "../telemetry/metrics.ts";
import { frontPage } from "./front-page.ts";
import { adminSurfaces, publicSurfaces } from "./surfaces.ts";

const database = useDatabase();
const page = {
  version: "1.2.3",
  roles: ["api", "worker"],
  database: "a <Postgres> & more",
  startedAt: new Date("2025-01-01T00:00:00Z"),
};
const checks: DoctorCheck[] = [
  { name: "fine", look: async () => ({ verdict: "ok", found: "All is well." }) },
  { name: "ailing", look: async () => ({ verdict: "warning", found: "It coughs.", advice: "Rest." }) },
  {
    name: "failing",
    look: async () => {
      throw new Error("no pulse");
    },
  },
];
let http: TestHttp;

function start(db: Db): Promise<TestHttp> {
  return startHttp({
    db,
    routes(routes, { keys, metrics }) {
      metrics.gauge("millrace_db_connections", () => [{ labels: { state: "idle" }, value: db.stats().idle }]);
      publicSurfaces(routes, { db, metrics, page });
      adminSurfaces(routes, { db, keys, checks });
    },
  });
}

beforeAll(async () => {
  http = await start(database.db);
  return () => http.stop();
});

describe("health", () => {
  test("says alive and ready while all is well", async () => {
    expect(await http.send("/healthz")).toMatchObject({ status: 200, body: { status: "alive" } });
    expect(await http.send("/readyz")).toMatchObject({ status: 200, body: { status: "ready" } });
  });

  test("says alive but not ready while the database is away, and ready again when it is back", async () => {
    const wire = await cuttableWire();
    const db = openDb({ connection: { connectionString: wire.url } });
    onTestFinished(() => db.close());
    const cut = await start(db);
    onTestFinished(cut.stop);
    expect((await cut.send("/readyz")).status).toBe(200);

    await wire.cut();
    const notReady = await until(async () => {
      const answer = await cut.send("/readyz");
      return answer.status === 503 && answer;
    }, "the loss to be noticed");
    expect(notReady.body).toMatchObject({ code: "DATABASE_UNAVAILABLE" });
    expect(notReady.headers.get("retry-after")).toBe("2");
    for (const path of ["/healthz", "/metrics", "/"]) {
      const stale = { headers: { authorization: `Bearer mlr_${"A".repeat(43)}` } };
      expect((await cut.send(path, stale)).status).toBe(200);
    }

    await wire.mend();
    expect((await cut.send("/readyz")).status).toBe(200);
  });

  /** A port that leads to the test's Postgres until it is cut. */
  async function cuttableWire(): Promise<{ url: string; cut(): Promise<void>; mend(): Promise<void> }> {
    const target = new URL(database.url);
    const host = target.searchParams.get("host") ?? target.hostname;
    const port = Number(target.port || 5432);
    const sockets = new Set<Socket>();
    const server = createServer((near) => {
      const far = host.startsWith("/") ? connect(`${host}/.s.PGSQL.${port}`) : connect(port, host);
      for (const socket of [near, far]) {
        sockets.add(socket);
        socket.on("error", () => {}).on("close", () => sockets.delete(socket));
      }
      near.pipe(far).pipe(near);
    }).listen(0, "127.0.0.1");
    await once(server, "listening");
    const address = server.address() as { port: number };
    const cut = async () => {
      for (const socket of sockets) socket.destroy();
      if (server.listening) await new Promise((resolve) => server.close(resolve));
    };
    onTestFinished(cut);
    const url = new URL(target);
    url.searchParams.delete("host");
    url.host = `127.0.0.1:${address.port}`;
    return {
      url: url.href,
      cut,
      async mend() {
        server.listen(address.port, "127.0.0.1");
        await once(server, "listening");
      },
    };
  }
});

test("metrics come in the Prometheus text format under all their declared names", async () => {
  const response = await fetch(`${http.url}/metrics`);
  expect(response.headers.get("content-type")).toBe("text/plain; version=0.0.4; charset=utf-8");
  const text = await response.text();
  for (const [name, { kind, help }] of Object.entries(METRICS)) {
    expect(text).toContain(`# HELP ${name} ${help}\n# TYPE ${name} ${kind}\n`);
  }
});

describe("the front page", () => {
  test("says what runs, and nothing on it can be taken for markup", async () => {
    const response = await fetch(`${http.url}/`);
    expect(response.headers.get("content-type")).toBe("text/html; charset=utf-8");
    expect(response.headers.get("content-security-policy")).toContain("default-src 'none'");
    const html = await response.text();
    for (const shown of ["1.2.3", "api, worker", "2025-01-01T00:00:00.000Z", "a &lt;Postgres&gt; &amp; more"]) {
      expect(html).toContain(`<dd>${shown}</dd>`);
    }
  });

  test("escapes an ampersand once", () => {
    expect(frontPage({ ...page, database: "&lt;script>" })).toContain("<dd>&amp;lt;script&gt;</dd>");
  });
});

describe("keys", () => {
  beforeEach(async () => {
    await database.query("truncate kernel.api_key, kernel.audit_log");
  });
  const create = (body: Json, headers = {}) => http.send("/keys", { body, headers });
  const count = async (table: string) => (await database.query(`select from kernel.${table}`)).length;

  test("are made, listed without the key, and revoked, and the audit log says by whom", async () => {
    const made = await create({ name: "加载", scopes: ["admin"], rateLimitPerMinute: 5 }, { "x-request-id": "make" });
    expect(made.status).toBe(200);
    const { key, ...shown } = made.body;
    expect(key).toMatch(/^mlr_/);
    expect(shown).toEqual({
      id: expect.stringMatching(/^[\da-f-]{36}$/),
      name: "加载",
      hint: String(key).slice(0, 8),
      scopes: ["admin"],
      rateLimitPerMinute: 5,
      createdAt: expect.stringMatching(/^\d{4}-.*Z$/),
      createdBy: "MILLRACE_ADMIN_KEY",
    });
    expect((await http.send("/keys")).body).toEqual({ items: [shown] });

    const own = { authorization: `Bearer ${String(key)}`, "x-request-id": "revoke" };
    const revoked = await http.send(`/keys/${String(shown["id"])}`, { method: "DELETE", headers: own });
    expect(revoked.body).toEqual({ ...shown, revokedAt: expect.stringMatching(/Z$/) });
    expect((await http.send("/keys", { headers: own })).status).toBe(401);

    const target = shown["id"];
    expect((await http.send("/audit")).body).toMatchObject({
      items: [
        { action: "key.revoke", actor: "加载", target, requestId: "revoke", details: { name: "加载" } },
        {
          action: "key.create",
          actor: "MILLRACE_ADMIN_KEY",
          target,
          requestId: "make",
          address: "127.0.0.1",
          details: { name: "加载", scopes: ["admin"] },
        },
      ],
      next: null,
    });
    expect(JSON.stringify(await database.query("select * from kernel.audit_log"))).not.toContain(String(key).slice(8));
  });

  test.each([
    [{ scopes: ["admin"] }, "The body lacks the field `name`."],
    [{ name: "", scopes: ["admin"] }, "The field `name` must not have fewer than 1 characters."],
    [{ name: "a\nb", scopes: ["admin"] }, "The field `name` is not acceptable: A name without control characters."],
    [{ name: "x".repeat(129), scopes: ["admin"] }, "The field `name` must not have more than 128 characters."],
    [{ name: "x", scopes: [] }, "The field `scopes` must not have fewer than 1 items."],
    [{ name: "x", scopes: ["admin"], tenantId: "1" }, "The field `tenantId` must be an integer."],
    [{ name: "x", scopes: ["admin"], tenantId: 2 ** 60 }, "The field `tenantId` must be <= 9007199254740991."],
    [{ name: "x", scopes: ["admin"], rateLimitPerMinute: 0 }, "The field `rateLimitPerMinute` must be >= 1."],
    [
      { name: "x", scopes: ["admin"], rateLimit: 1, key: "mlr_mine" },
      "The body has the unknown field `rateLimit`.",
    ],
  ])("are not made from %j", async (body, sentence) => {
    expect(await create(body)).toMatchObject({ status: 400, body: { code: "VALIDATION_FAILED", error: sentence } });
    expect(await count("api_key")).toBe(0);
    expect(await count("audit_log")).toBe(0);
  });

  test("are neither made nor revoked when the audit log cannot be written", async () => {
    const { id } = (await create({ name: "kept", scopes: ["admin"] })).body;
    await database.query(`create function refuse() returns trigger language plpgsql as
                          $$ begin raise exception 'the audit log is full'; end $$`);
    await database.query("create trigger refuse before insert on kernel.audit_log execute function refuse()");
    onTestFinished(async () => void (await database.query("drop function refuse() cascade")));
    expect((await create({ name: "unseen", scopes: ["admin"] })).status).toBe(500);
    expect((await http.send(`/keys/${String(id)}`, { method: "DELETE" })).status).toBe(500);
    expect(await database.query("select name, revoked_at from kernel.api_key")).toEqual([
      { name: "kept", revoked_at: null },
    ]);
  });

  test("that do not exist cannot be revoked, and the attempt leaves no audit row", async () => {
    const id = "01890000-0000-7000-8000-000000000000";
    expect(await http.send(`/keys/${id}`, { method: "DELETE" })).toMatchObject({
      status: 404,
      body: { code: "KEY_NOT_FOUND", details: { id } },
    });
    expect((await http.send("/keys/7", { method: "DELETE" })).body["error"]).toBe("The path's `id` must be a UUID.");
    expect(await count("audit_log")).toBe(0);
  });

  test("and everything else here are for admins only", async () => {
    const { key } = await http.keys.create(database.db, { name: "x", scopes: ["pipeline:read"] }, "test");
    const headers = { authorization: `Bearer ${key}` };
    for (const path of ["/keys", "/audit", "/doctor"]) expect((await http.send(path, { headers })).status).toBe(403);
    expect((await http.send("/keys", { headers, body: { name: "y", scopes: ["admin"] } })).status).toBe(403);
    expect((await http.send("/keys/x", { headers, method: "DELETE" })).status).toBe(403);
    expect(await count("api_key")).toBe(1);
  });
});

describe("the audit log", () => {
  beforeAll(async () => {
    await database.query("truncate kernel.audit_log");
    await database.query(`insert into kernel.audit_log (actor, action, target, address, request_id)
                          select 'someone', 'test', n::text, '127.0.0.1', 'r' from generate_series(1, 250) n`);
  });
  const targets = (body: Json) => (body["items"] as Json[]).map(({ target }) => Number(target));

  test("is read newest first, page by page, with nothing doubled or left out", async () => {
    const seen: number[] = [];
    let next: unknown = "";
    let pages = 0;
    while (next !== null) {
      const { body } = await http.send(`/audit?limit=60${next === "" ? "" : `&before=${String(next)}`}`);
      seen.push(...targets(body));
      next = body["next"];
      pages += 1;
    }
    expect(seen).toEqual(Array.from({ length: 250 }, (_, i) => 250 - i));
    expect(pages).toBe(5);
  });

  test("gives a hundred rows unless asked for more, and a thousand at most", async () => {
    expect(targets((await http.send("/audit")).body)).toHaveLength(100);
    expect(targets((await http.send("/audit?limit=1000")).body)).toHaveLength(250);
    for (const query of ["limit=1001", "limit=0", "before=x", "before=-1", `before=${"9".repeat(19)}`, "page=2"]) {
      expect((await http.send(`/audit?${query}`)).status).toBe(400);
    }
  });
});

test("the doctor tells what it found, and a check that fails is a finding too", async () => {
  expect((await http.send("/doctor")).body).toEqual({
    findings: [
      { check: "fine", verdict: "ok", found: "All is well." },
      { check: "ailing", verdict: "warning", found: "It coughs.", advice: "Rest." },
      {
        check: "failing",
        verdict: "broken",
        found: "The check itself failed: no pulse",
        advice: "See the server's log.",
      },
    ],
  });
});
