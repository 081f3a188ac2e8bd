import { beforeEach, describe, expect, onTestFinished, test } from "vitest";
import { useDatabase } from "../../../test/database.ts";
import { silentLog } from "../../../test/log.ts";
import { noHints } from "../../../test/no-hints.ts";
import { until } from "../../../test/until.ts";
import type { Actor } from "../../kernel/auth/audit.ts";
import type { Db } from "../../kernel/data/db.ts";
import { openPulse } from "../../kernel/work/pulse.ts";
import { createWake } from "../../kernel/work/wake.ts";
import { lockGraph } from "../store/graph-lock.ts";
import { moveTenant, type NewTenant } from "../store/tenants.ts";
import { TENANT_STATES, type TenantState } from "./states.ts";
import { createTenants, type TenantsDeps } from "./tenants.ts";

const database = useDatabase();
const actor: Actor = {
  caller: { name: "a test", keyId: null, scopes: ["admin"], tenantId: null, source: null, rateLimitPerMinute: null },
  address: "127.0.0.1",
  requestId: "r1",
};
const clock = { at: Date.parse("2026-01-01T00:00:00Z"), now: () => clock.at };
const nobody = () => ({ code: undefined, name: undefined });

let lookups = 0;
const counting = (): Db => ({
  ...database.db,
  rows(asking, values) {
    if (asking.name === "lineage.tenant.find") lookups += 1;
    return database.db.rows(asking, values);
  },
});

/** As in a process of its own. */
async function start(settings: Partial<TenantsDeps["settings"]> = {}) {
  const db = counting();
  const pulse = await openPulse({ db, log: silentLog });
  const wake = createWake({ pulse, log: silentLog });
  onTestFinished(async () => {
    await wake.stop();
    await pulse.stop();
  });
  return createTenants({
    db,
    wake,
    hints: noHints,
    clock,
    settings: { createTenants: false, clockToleranceSeconds: 300, ...settings },
  });
}

const tenant = (id: number, more: Partial<NewTenant> = {}): NewTenant => ({
  id: String(id),
  code: `code-${id}`,
  name: `Tenant ${id}`,
  state: "NEW",
  rateLimitPerMinute: null,
  bodyLimitBytes: null,
  ...more,
});

beforeEach(async () => {
  await database.query("delete from lineage.tenant");
  lookups = 0;
});

describe("looking a tenant up", () => {
  test("costs one statement for many events, and another after some seconds", async () => {
    const tenants = await start();
    await tenants.create(tenant(7, { rateLimitPerMinute: 60, bodyLimitBytes: 4_096 }), actor);
    const found = await Promise.all([tenants.find("7"), tenants.find("7"), tenants.find("7")]);
    expect(found[2]).toEqual({
      id: "7",
      code: "code-7",
      name: "Tenant 7",
      state: "NEW",
      cutoverTime: null,
      rateLimitPerMinute: 60,
      bodyLimitBytes: 4_096,
      model: null,
    });
    expect(lookups).toBe(1);
    clock.at += 10_001;
    await tenants.find("7");
    expect(lookups).toBe(2);
  });

  test("does not remember that there was none", async () => {
    const tenants = await start();
    expect(await tenants.find("7")).toBeUndefined();
    await tenants.create(tenant(7), actor);
    expect(await tenants.find("7")).toBeDefined();
  });

  test("does not remember a failure", async () => {
    let fails = true;
    const wake = createWake();
    const db: Db = {
      ...database.db,
      rows: (asking, values) => (fails ? Promise.reject(new Error("away")) : database.db.rows(asking, values)),
    };
    const tenants = createTenants({
      db,
      wake,
      hints: noHints,
      clock,
      settings: { createTenants: false, clockToleranceSeconds: 0 },
    });
    await expect(tenants.find("7")).rejects.toThrow("away");
    fails = false;
    await tenants.create(tenant(7), actor);
    expect(await tenants.find("7")).toBeDefined();
  });

  test("shows a change at once here, and as soon as the hint arrives in other processes", async () => {
    const [here, there] = [await start(), await start()];
    await here.create(tenant(7), actor);
    await Promise.all([here.find("7"), there.find("7")]);
    await here.update("7", { name: "Seven" }, actor);
    expect(await here.find("7")).toMatchObject({ name: "Seven" });
    // The clock stands still, so only the hint can make the other one forget.
    await until(async () => (await there.find("7"))?.name === "Seven", "the other process to know the new name");
  });
});

describe("a tenant that is not known", () => {
  test("is refused", async () => {
    await expect((await start()).admit("7", nobody)).rejects.toMatchObject({
      code: "TENANT_UNKNOWN",
      status: 403,
      message: "There is no tenant 7. Create it with POST /api/v1/lineage/tenants.",
    });
  });

  test("is made on first sight where the settings say so, and is ready", async () => {
    const tenants = await start({ createTenants: true });
    expect(await tenants.admit("7", () => ({ code: "acme", name: "Acme" }))).toMatchObject({
      code: "acme",
      name: "Acme",
      state: "READY",
    });
    expect(await tenants.admit("8", nobody)).toMatchObject({ code: "t8", name: "t8" });
    // The code is taken, so it gets another; text that Postgres cannot store is changed.
    expect(await tenants.admit("9", () => ({ code: "acme", name: "A\0B" }))).toMatchObject({
      code: "t9",
      name: "A\uFFFDB",
    });
    expect(await tenants.admit("10", () => ({ code: "x".repeat(100), name: undefined }))).toMatchObject({
      code: "x".repeat(64),
    });
  });

  test("is made once by many processes", async () => {
    const processes = await Promise.all(Array.from({ length: 4 }, () => start({ createTenants: true })));
    const seen = await Promise.all(
      processes.map((tenants, n) => tenants.admit("7", () => ({ code: `c${n}`, name: undefined }))),
    );
    expect(new Set(seen.map(({ code }) => code)).size).toBe(1);
  });
});

describe("a tenant", () => {
  test.each([
    ["id", tenant(7, { code: "other" })],
    ["code", tenant(8, { code: "code-7" })],
  ])("is not made with an %s that is taken", async (_, second) => {
    const tenants = await start();
    await tenants.create(tenant(7), actor);
    await expect(tenants.create(second, actor)).rejects.toMatchObject({ code: "TENANT_EXISTS", status: 409 });
  });

  test("changes what it is told and nothing else", async () => {
    const tenants = await start();
    await tenants.create(tenant(7, { rateLimitPerMinute: 60, bodyLimitBytes: 4_096 }), actor);
    await tenants.create(tenant(8), actor);
    expect(await tenants.update("7", { rateLimitPerMinute: null }, actor)).toMatchObject({
      code: "code-7",
      rate_limit_per_minute: null,
      body_limit_bytes: 4_096,
    });
    await expect(tenants.update("7", { code: "code-8" }, actor)).rejects.toMatchObject({ code: "TENANT_EXISTS" });
    await expect(tenants.update("9", { name: "x" }, actor)).rejects.toMatchObject({ code: "TENANT_NOT_FOUND" });
  });

  test("leaves what was done to it in the audit log", async () => {
    await database.query("truncate kernel.audit_log");
    const tenants = await start();
    await tenants.create(tenant(7), actor);
    await tenants.update("7", { name: "Seven" }, actor);
    await tenants.startSync("7", null, actor);
    expect(await database.query("select details from kernel.audit_log where action = 'tenant.update'")).toEqual([
      { details: { name: "Seven", changes: [{ field: "name", from: tenant(7).name, to: "Seven" }] } },
    ]);
    expect(await database.query("select actor, action, target from kernel.audit_log order by id")).toEqual(
      ["tenant.create", "tenant.update", "tenant.sync-start"].map((action) => ({
        actor: "a test",
        action,
        target: "7",
      })),
    );
  });
});

/** Written down a second time, so that a move is added on purpose. */
const MOVES: Record<TenantState, string> = { NEW: "SYNCING READY", SYNCING: "READY", READY: "SYNCING" };

describe("the life of a tenant", () => {
  test.each(TENANT_STATES.flatMap((from) => TENANT_STATES.map((to) => ({ from, to }))))(
    "goes from $from to $to only if it may",
    async ({ from, to }) => {
      await database.query(
        "insert into lineage.tenant (id, code, name, state, cutover_time) values (7, 'c', 'n', $1, '2025-01-01Z')",
        [from],
      );
      const moved = await moveTenant(database.db, "7", to);
      expect(moved?.state).toBe(MOVES[from].split(" ").includes(to) ? to : undefined);
      const [row] = await database.query<{ state: string }>("select state from lineage.tenant");
      expect(row?.state).toBe(moved ? to : from);
    },
  );

  test("is known to the database in exactly these states", async () => {
    const [row] = await database.query<{ definition: string }>(
      "select pg_get_constraintdef(oid) as definition from pg_constraint where conname = 'tenant_state'",
    );
    const words = [...(row?.definition ?? "").matchAll(/'(\w+)'/g)].map(([, word]) => word);
    expect(new Set(words)).toEqual(new Set(TENANT_STATES));
  });

  test("has a cutover from the start of a sync on: the time that was given, or that of the database", async () => {
    const tenants = await start();
    await tenants.create(tenant(7), actor);
    const { cutover_time } = await tenants.startSync("7", null, actor);
    expect(Math.abs((cutover_time?.getTime() ?? 0) - Date.now())).toBeLessThan(60_000);
    await moveTenant(database.db, "7", "READY");
    const given = new Date("2025-12-31T12:00:00Z");
    expect(await tenants.startSync("7", given, actor)).toMatchObject({ state: "SYNCING", cutover_time: given });
    await expect(tenants.startSync("7", null, actor)).rejects.toMatchObject({
      code: "TENANT_WRONG_STATE",
      status: 409,
      message:
        "Cannot start a sync of tenant 7: it is SYNCING. " +
        "Finish the sync that is under way with POST /api/v1/lineage/tenants/7:ready.",
    });
    await expect(tenants.startSync("9", null, actor)).rejects.toMatchObject({ code: "TENANT_NOT_FOUND" });
  });

  test("starts a sync when the events that are being taken have been", async () => {
    const tenants = await start();
    await tenants.create(tenant(7, { state: "READY" }), actor);
    let isStarted = false;
    let starting: Promise<unknown> | undefined;
    await database.db.tx(async (tx) => {
      await lockGraph(tx, "7", "shared");
      starting = tenants.startSync("7", null, actor).finally(() => {
        isStarted = true;
      });
      await until(async () => {
        const waiting = await database.query(
          `select 1 from pg_locks l join pg_database d on d.oid = l.database
           where d.datname = current_database() and l.locktype = 'advisory' and not l.granted`,
        );
        return isStarted || waiting.length > 0;
      }, "the sync to wait");
      expect(isStarted).toBe(false);
    });
    await starting;
    expect(isStarted).toBe(true);
  });

  test("has no cutover in the future, but for what clocks may differ", async () => {
    const tenants = await start();
    await tenants.create(tenant(7), actor);
    await expect(tenants.startSync("7", new Date(clock.at + 301_000), actor)).rejects.toMatchObject({ status: 400 });
    expect(await tenants.startSync("7", new Date(clock.at + 299_000), actor)).toMatchObject({ state: "SYNCING" });
  });
});
