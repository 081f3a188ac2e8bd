/** Keys, the audit log and the doctor over HTTP. */
import { beforeAll, beforeEach, describe, expect, onTestFinished, test } from "vitest";
import type { Json } from "../../../test/client.ts";
import { useDatabase } from "../../../test/database.ts";
import { startHttp, type TestHttp } from "../../../test/http.ts";
import { CATALOGUE } from "../../modules.ts";
import type { DoctorCheck } from "../doctor.ts";
import { adminSurfaces } from "./admin.ts";

const database = useDatabase();
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

beforeAll(async () => {
  const { db } = database;
  http = await startHttp({
    db,
    routes: (routes, { keys }) => adminSurfaces(routes, { db, keys, checks, catalogue: CATALOGUE }),
  });
  return () => http.stop();
});

describe("keys", () => {
  beforeEach(async () => {
    await database.query("truncate kernel.api_key, kernel.audit_log");
  });
  const create = (body: Json, headers = {}) => http.send("/keys", { body, headers });
  const count = async (table: string) => (await database.query(`select from kernel.${table}`)).length;

  test("are created, listed without the key, and revoked, and the audit log names the actor", async () => {
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
        { action: "key.revoke", actor: "加载", keyId: target, target, requestId: "revoke", details: { name: "加载" } },
        {
          action: "key.create",
          actor: "MILLRACE_ADMIN_KEY",
          keyId: null,
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
    [{ name: "", scopes: ["admin"] }, "The field `name` must not have fewer than 1 character."],
    [{ name: "a\nb", scopes: ["admin"] }, "The field `name` is not acceptable: A name without control characters."],
    [{ name: "x".repeat(129), scopes: ["admin"] }, "The field `name` must not have more than 128 characters."],
    [{ name: "x", scopes: [] }, "The field `scopes` must not have fewer than 1 item."],
    [{ name: "x", scopes: ["admin"], tenantId: "1" }, "The field `tenantId` must be an integer."],
    [{ name: "x", scopes: ["admin"], tenantId: 2 ** 60 }, "The field `tenantId` must be <= 9007199254740991."],
    [{ name: "x", scopes: ["admin"], rateLimitPerMinute: 0 }, "The field `rateLimitPerMinute` must be >= 1."],
    [{ name: "x", scopes: ["admin"], rateLimit: 1, key: "mlr_mine" }, "The body has the unknown field `rateLimit`."],
  ])("are not created from %j", async (body, sentence) => {
    expect(await create(body)).toMatchObject({ status: 400, body: { code: "VALIDATION_FAILED", error: sentence } });
    expect(await count("api_key")).toBe(0);
    expect(await count("audit_log")).toBe(0);
  });

  test("are neither created nor revoked when the audit log cannot be written", async () => {
    const { id } = (await create({ name: "kept", scopes: ["admin"] })).body;
    await makeRefusal("trigger refuse before insert on kernel.audit_log execute function refuse()");
    expect((await create({ name: "unseen", scopes: ["admin"] })).status).toBe(500);
    expect((await http.send(`/keys/${String(id)}`, { method: "DELETE" })).status).toBe(500);
    expect(await database.query("select name, revoked_at from kernel.api_key")).toEqual([
      { name: "kept", revoked_at: null },
    ]);
  });

  test("leave no audit row when the action itself fails, even at its commit", async () => {
    const { id } = (await create({ name: "kept", scopes: ["admin"] })).body;
    await makeRefusal(
      `constraint trigger refuse after insert or update on kernel.api_key deferrable initially deferred
       for each row execute function refuse()`,
    );
    expect((await create({ name: "unseen", scopes: ["admin"] })).status).toBe(500);
    expect((await http.send(`/keys/${String(id)}`, { method: "DELETE" })).status).toBe(500);
    expect(await database.query("select action from kernel.audit_log")).toEqual([{ action: "key.create" }]);
  });

  /** Until the end of the test. */
  async function makeRefusal(trigger: string): Promise<void> {
    await database.query(
      "create function refuse() returns trigger language plpgsql as $$ begin raise exception 'refused'; end $$",
    );
    await database.query(`create ${trigger}`);
    onTestFinished(async () => void (await database.query("drop function refuse() cascade")));
  }

  test("that do not exist cannot be revoked, and the attempt leaves no audit row", async () => {
    const id = "01890000-0000-7000-8000-000000000000";
    expect(await http.send(`/keys/${id}`, { method: "DELETE" })).toMatchObject({
      status: 404,
      body: { code: "KEY_NOT_FOUND", details: { id } },
    });
    expect((await http.send("/keys/7", { method: "DELETE" })).body["error"]).toBe("The path's `id` must be a UUID.");
    expect(await count("audit_log")).toBe(0);
  });

  test("and all other routes here need the scope admin", async () => {
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

  test("is read newest first, in pages, with nothing repeated or missing", async () => {
    const seen: number[] = [];
    let next: string | null = "";
    let pages = 0;
    while (next !== null) {
      const { body } = await http.send(`/audit?limit=60${next === "" ? "" : `&before=${next}`}`);
      seen.push(...targets(body));
      next = body["next"] as string | null;
      pages += 1;
    }
    expect(seen).toEqual(Array.from({ length: 250 }, (_, i) => 250 - i));
    expect(pages).toBe(5);
  });

  test("has a hundred rows by default, and a thousand at most", async () => {
    expect(targets((await http.send("/audit")).body)).toHaveLength(100);
    expect(targets((await http.send("/audit?limit=1000")).body)).toHaveLength(250);
    for (const query of ["limit=1001", "limit=0", "before=x", "before=-1", `before=${"9".repeat(19)}`, "page=2"]) {
      expect((await http.send(`/audit?${query}`)).status).toBe(400);
    }
  });
});

test("the doctor lists its findings, and a check that fails is a finding too", async () => {
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
