/** Keys, the audit log and the doctor over HTTP. */
import { beforeAll, beforeEach, describe, expect, onTestFinished, test } from "vitest";
import type { Json } from "../../../test/client.ts";
import { useDatabase } from "../../../test/database.ts";
import { startHttp, type TestHttp } from "../../../test/http.ts";
import { openRecordingDb, planForValues } from "../../../test/plans.ts";
import { CATALOGUE } from "../../modules.ts";
import { type Actor, audit, listAudit } from "../auth/audit.ts";
import type { SettingInForce } from "../config/in-force.ts";
import { statement } from "../data/statement.ts";
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
const SETTINGS: SettingInForce[] = [
  { name: "MILLRACE_PORT", value: "7400", isSecret: false, origin: "default", description: "The port." },
  { name: "MILLRACE_ADMIN_KEY", isSecret: true, origin: "environment", from: "MILLRACE_ADMIN_KEY", description: "It." },
];
let http: TestHttp;

beforeAll(async () => {
  const { db } = database;
  http = await startHttp({
    db,
    routes: (routes, { keys }) => adminSurfaces(routes, { db, keys, checks, catalogue: CATALOGUE, settings: SETTINGS }),
  });
  return () => http.stop();
});

describe("keys", () => {
  beforeEach(async () => {
    await database.query("truncate kernel.api_key, kernel.audit_log cascade");
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
    expect((await http.send("/keys")).body).toEqual({ items: [shown], scopes: expect.arrayContaining(["admin"]) });

    const own = { authorization: `Bearer ${String(key)}`, "x-request-id": "revoke" };
    const revoked = await http.send(`/keys/${String(shown["id"])}`, { method: "DELETE", headers: own });
    expect(revoked.body).toEqual({
      ...shown,
      usedAt: expect.stringMatching(/Z$/),
      revokedAt: expect.stringMatching(/Z$/),
    });
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
      actions: ["key.create", "key.revoke"],
    });
    expect(JSON.stringify(await database.query("select * from kernel.audit_log"))).not.toContain(String(key).slice(8));
  });

  describe("the audit log", () => {
    interface Entries {
      items: { action: string; target: string }[];
      next: string | null;
    }
    const entries = async (query: string, headers = {}) => {
      const { items } = (await http.send(`/audit?${query}`, { headers })).body as unknown as Entries;
      return items.map(({ action, target }) => `${action} ${target}`);
    };
    const write = (actor: string, action: string, target: string, at: string, keyId: string | null = null) =>
      database.query(
        `insert into kernel.audit_log (at, actor, key_id, action, target, address, request_id)
         values ($1, $2, $3, $4, $5, '::1', 'r')`,
        [at, actor, keyId, action, target],
      );

    test("is filtered by person, action, target and time, and by oneself", async () => {
      const mine = (await create({ name: "ann", scopes: ["admin"] })).body;
      await write("ann", "run.stop", "run-1", "2026-04-01T10:00:00Z");
      await write("ann", "run.stop", "run-2", "2026-04-02T10:00:00Z", String(mine["id"]));
      await write("bob", "chain.update", "run-of-bob", "2026-04-03T10:00:00Z");
      expect(await entries("who=ann")).toEqual(["run.stop run-2", "run.stop run-1"]);
      expect(await entries("action=chain.update")).toEqual(["chain.update run-of-bob"]);
      expect(await entries("what=run-&to=2026-05-01T00:00:00Z")).toHaveLength(3);
      expect(await entries("what=run-1")).toEqual(["run.stop run-1"]);
      expect(await entries("from=2026-04-02T10:00:00Z&to=2026-04-03T10:00:00Z")).toEqual(["run.stop run-2"]);
      // A name is not enough: another key may have had it.
      const own = { authorization: `Bearer ${String(mine["key"])}` };
      expect(await entries("who=me", own)).toEqual(["run.stop run-2"]);
      expect(await entries("who=me&action=key.create")).toEqual([`key.create ${String(mine["id"])}`]);
      expect((await http.send("/audit?from=yesterday")).status).toBe(400);
    });

    test("has the order in which things were done, also of what began before another and was done after it", async () => {
      const caller = { name: "ann", keyId: null, scopes: [], tenantId: null, source: null, rateLimitPerMinute: null };
      const actor: Actor = { caller, address: "::1", requestId: "r" };
      await database.db.tx(async (tx) => {
        await tx.rows(statement("test.begin", "select now()"));
        await database.db.tx((other) => audit(other, actor, "run.stop", "first"));
        await audit(tx, actor, "run.stop", "second");
      });
      expect(await entries("who=ann")).toEqual(["run.stop second", "run.stop first"]);
    });

    test("has neither gaps nor repetitions between the pages of entries of one moment", async () => {
      for (const target of ["a", "b", "c", "d", "e"]) await write("ann", "run.stop", target, "2026-04-01T10:00:00Z");
      const seen: string[] = [];
      for (let before = ""; ; ) {
        const { items, next } = (await http.send(`/audit?who=ann&limit=2${before}`)).body as unknown as Entries;
        seen.push(...items.map(({ target }) => target));
        if (next === null) break;
        before = `&before=${next}`;
      }
      expect(seen).toEqual(["e", "d", "c", "b", "a"]);
    });

    test.each([
      ["actor", { actor: "ann" }, "audit_log_actor"],
      ["key", { keyId: "00000000-0000-4000-8000-000000000001" }, "audit_log_key"],
      ["action", { action: "run.stop" }, "audit_log_action"],
      ["target", { target: "rare" }, "audit_log_target"],
      ["time", { from: new Date("2020-01-01"), to: new Date("2020-01-02") }, "audit_log_newest"],
    ])("finds what is rare by %s without reading the rest", async (_, filter, index) => {
      await database.query(
        `insert into kernel.audit_log (at, actor, key_id, action, target, address, request_id)
         select now(), 'bob', gen_random_uuid(), 'key.create', 'often' || n, '::1', 'r' from generate_series(1, 5000) n`,
      );
      await write("ann", "run.stop", "rare", "2020-01-01T10:00:00Z", "00000000-0000-4000-8000-000000000001");
      await database.query("analyze kernel.audit_log");
      const recording = openRecordingDb(database.connection);
      onTestFinished(() => recording.db.close());
      const none = { actor: null, keyId: null, action: null, target: null, from: null, to: null, before: null };
      // As the pool of reads plans it.
      const db = { ...recording.db, read: recording.db.rows };
      await planForValues(db);
      recording.calls.clear();
      expect(await listAudit(db, { ...none, ...filter }, 100)).toHaveLength(1);
      const facts = await recording.explainLast([...recording.calls.keys()].at(-1) ?? "");
      expect(facts.indexes).toContain(index);
      expect(facts.pages).toBeLessThan(20);
    });
  });

  test.each([
    [{ scopes: ["admin"] }, "The body lacks the field `name`."],
    [{ name: "", scopes: ["admin"] }, "The field `name` must not have fewer than 1 character."],
    [
      { name: "a\nb", scopes: ["admin"] },
      "The field `name` is not acceptable: A name without control characters, among them those that change the direction of text.",
    ],
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

test("the settings in force are for admins", async () => {
  expect((await http.send("/settings")).body).toEqual({ items: SETTINGS });
  const reader = await http.keys.create(database.db, { name: "reader", scopes: ["kpi:read"] }, "test");
  expect((await http.send("/settings", { headers: { authorization: `Bearer ${reader.key}` } })).status).toBe(403);
});
