/** Keys: creation, lookup, cache, revocation in every process, and the first key. */
import { randomBytes } from "node:crypto";
import { afterAll, beforeAll, beforeEach, describe, expect, onTestFinished, test } from "vitest";
import { useDatabase } from "../../../test/database.ts";
import { silentLog } from "../../../test/log.ts";
import { noHints } from "../../../test/no-hints.ts";
import { signal, until } from "../../../test/until.ts";
import { type Db, openDb } from "../data/db.ts";
import { statement } from "../data/statement.ts";
import type { Clock } from "../time/clock.ts";
import { openPulse } from "../work/pulse.ts";
import { createWake } from "../work/wake.ts";
import { createKeys, type Keys } from "./keys.ts";

const ADMIN_KEY = "a-key-that-only-the-tests-know-of";
const REMEMBERED_MS = 10_000;
const ADDRESS = "127.0.0.1";

const CLOSE_GATE = statement("test.keys.close_gate", "select pg_advisory_xact_lock(1)");

const database = useDatabase();
/** The statements about keys. Others, such as hints of earlier tests, can come at any time. */
let statements: string[] = [];
let counting: Db;
let nowMs = 0;
const clock: Clock = { now: () => nowMs };
let keys: Keys;

beforeAll(() => {
  counting = openDb({
    connection: database.connection,
    onStatement: (name) => void (name.startsWith("kernel.keys.") && statements.push(name)),
  });
});
afterAll(() => counting.close());
beforeEach(async () => {
  await database.query("delete from kernel.api_key");
  keys = await startProcess({});
  statements = [];
});

/** The keys of one of several processes on the same database. */
async function startProcess({ db = counting, adminKey }: { db?: Db; adminKey?: string }): Promise<Keys> {
  const pulse = await openPulse({ db, log: silentLog });
  const wake = createWake({ pulse, log: silentLog });
  onTestFinished(async () => {
    await wake.stop();
    await pulse.stop();
  });
  return createKeys({ db, wake, hints: noHints, clock, adminKey });
}

const revoke = (process: Keys, id: string) => database.db.tx((tx) => process.revoke(tx, id));
const make = () => keys.create(database.db, { name: "loader", scopes: ["pipeline:write"] }, "me");
const waitingLocks = async () =>
  (
    await database.query(
      "select from pg_locks where not granted and database = (select oid from pg_database where datname = current_database())",
    )
  ).length;
const rowCount = async () => (await database.query("select from kernel.api_key")).length;

describe("a key", () => {
  test("is shown once and stored only as a hash", async () => {
    const { key, hint } = await make();
    expect(key).toMatch(/^mlr_[\w-]{43}$/);
    expect(key.startsWith(hint)).toBe(true);
    expect(hint).toHaveLength(8);
    const stored = JSON.stringify(await database.query("select *, encode(hash, 'escape') as text from kernel.api_key"));
    expect(stored).not.toContain(key.slice(8));
    expect(JSON.stringify(await keys.list())).not.toContain(key.slice(8));
  });

  test("is found with all its fields", async () => {
    const given = { name: "spark", scopes: ["lineage:write"] as const, tenantId: 7, source: "COMPUTE_ENGINE" };
    const { id, key } = await keys.create(database.db, { ...given, rateLimitPerMinute: 60 }, "me");
    expect(await keys.find(key, ADDRESS)).toEqual({
      name: "spark",
      keyId: id,
      scopes: ["lineage:write"],
      tenantId: "7",
      source: "COMPUTE_ENGINE",
      rateLimitPerMinute: 60,
    });
    expect(await keys.list()).toMatchObject([{ id, name: "spark", created_by: "me", revoked_at: null }]);
  });

  test("is looked up once and then cached for ten seconds", async () => {
    const { key } = await make();
    for (let i = 0; i < 5; i += 1) expect(await keys.find(key, ADDRESS)).toMatchObject({ name: "loader" });
    expect(statements).toEqual(["kernel.keys.find"]);
    nowMs += REMEMBERED_MS - 1;
    await keys.find(key, ADDRESS);
    expect(statements).toHaveLength(1);
    nowMs += 1;
    await keys.find(key, ADDRESS);
    expect(statements).toHaveLength(2);
    nowMs -= 3_600_000; // The clock was set back.
    await keys.find(key, ADDRESS);
    expect(statements).toHaveLength(3);
  });

  test("notes its use, at most once a minute, and the first of several processes notes it for all", async () => {
    const { key } = await make();
    const usedAt = async () => (await keys.list())[0]?.used_at ?? null;
    expect(await usedAt()).toBeNull();
    await keys.find(key, ADDRESS);
    const first = await usedAt();
    expect(first).not.toBeNull();
    await (await startProcess({})).find(key, ADDRESS);
    expect(await usedAt()).toEqual(first);
    await database.query("update kernel.api_key set used_at = now() - interval '61 seconds'");
    await (await startProcess({})).find(key, ADDRESS);
    expect((await usedAt())?.getTime()).toBeGreaterThan(first?.getTime() ?? Number.NaN);
  });

  test("with one changed character is unknown", async () => {
    const { key } = await make();
    const other = key.slice(0, -2) + (key.at(-2) === "A" ? "B" : "A") + key.at(-1);
    expect(await keys.find(other, ADDRESS)).toBeUndefined();
  });
});

describe("a key of another form", () => {
  test.each([
    "",
    "x",
    "mlr_",
    `mlr_${"A".repeat(42)}`,
    `mlr_${"A".repeat(44)}`,
    `mlr_${"A".repeat(42)}!`,
    "x".repeat(47),
  ])("is refused without a statement: %j", async (key) => {
    expect(await keys.find(key, ADDRESS)).toBeUndefined();
    expect(statements).toEqual([]);
  });

  test("has another form than every created key", async () => {
    for (let i = 0; i < 20; i += 1) expect(await keys.find((await make()).key, ADDRESS)).toBeDefined();
  });
});

describe("an address that sends many unknown keys", () => {
  const unknown = () => `mlr_${randomBytes(32).toString("base64url")}`;
  const refused = { code: "RATE_LIMITED" };
  async function guess(times: number): Promise<void> {
    for (let i = 0; i < times; i += 1) expect(await keys.find(unknown(), ADDRESS)).toBeUndefined();
  }

  test("is told to wait from then on, and other addresses are not", async () => {
    await guess(60);
    await expect(keys.find(unknown(), ADDRESS)).rejects.toMatchObject(refused);
    expect(await keys.find(unknown(), "127.0.0.2")).toBeUndefined();
    nowMs += 60_000;
    expect(await keys.find(unknown(), ADDRESS)).toBeUndefined();
  });

  test("can still use every valid key, even one that was never used before", async () => {
    const { key } = await make();
    await guess(60);
    await expect(keys.find(unknown(), ADDRESS)).rejects.toMatchObject(refused);
    expect(await keys.find(key, ADDRESS)).toMatchObject({ name: "loader" });
  });

  test("costs few statements, however many it sends at once", async () => {
    const { key } = await make();
    const flood = Array.from({ length: 2_000 }, () => keys.find(unknown(), ADDRESS).catch(() => undefined));
    expect(await keys.find(key, ADDRESS)).toBeDefined();
    await Promise.all(flood);
    expect(statements.length).toBeLessThanOrEqual(25);
  });

  test("can still use keys that were verified before, even when they are looked up again", async () => {
    const { key } = await make();
    const { id } = await make();
    await keys.find(key, ADDRESS);
    await guess(60);
    expect(await keys.find(key, ADDRESS)).toBeDefined();
    nowMs += REMEMBERED_MS;
    expect(await keys.find(key, ADDRESS)).toBeDefined();
    await revoke(keys, id);
    expect(await keys.find(key, ADDRESS)).toBeDefined();
  });

  test("cannot use a revoked key", async () => {
    const { id, key } = await make();
    await keys.find(key, ADDRESS);
    await guess(59);
    await revoke(keys, id);
    expect(await keys.find(key, ADDRESS)).toBeUndefined();
    await expect(keys.find(key, ADDRESS)).rejects.toMatchObject(refused);
  });

  test("may send any number of texts that cannot be a key", async () => {
    for (let i = 0; i < 100; i += 1) expect(await keys.find(`mlr_${i}`, ADDRESS)).toBeUndefined();
    expect(await keys.find((await make()).key, ADDRESS)).toBeDefined();
  });
});

describe("the key from the environment", () => {
  test("is an admin key of any form that needs no statement and no row", async () => {
    const ofEnvironment = await startProcess({ adminKey: ADMIN_KEY });
    expect(await ofEnvironment.find(ADMIN_KEY, ADDRESS)).toMatchObject({ scopes: ["admin"], keyId: null });
    expect(await ofEnvironment.find(`${ADMIN_KEY}x`, ADDRESS)).toBeUndefined();
    expect(await keys.find(ADMIN_KEY, ADDRESS)).toBeUndefined();
    expect(statements).toEqual([]);
  });

  test("replaces the first key", async () => {
    expect(await (await startProcess({ adminKey: ADMIN_KEY })).bootstrap()).toBeUndefined();
    expect(await rowCount()).toBe(0);
  });
});

describe("a revocation", () => {
  test("takes effect at once here, and as soon as the hint arrives in other processes", async () => {
    const other = await startProcess({});
    const { id, key } = await make();
    expect(await keys.find(key, ADDRESS)).toBeDefined();
    expect(await other.find(key, ADDRESS)).toBeDefined();
    await revoke(keys, id);
    expect(await keys.find(key, ADDRESS)).toBeUndefined();
    // The clock does not move, so only the hint can expire the cache.
    await until(async () => (await other.find(key, ADDRESS)) === undefined, "the other process to refuse the key");
  });

  test("is not undone by a concurrent lookup", async () => {
    const { id, key } = await make();
    const [asked, goOn] = [signal(), signal()];
    const slow: Db = {
      ...counting,
      async rows(asking, values) {
        const rows = await counting.rows(asking, values);
        if (asking.name === "kernel.keys.find") {
          asked.resolve();
          await goOn.promise;
        }
        return rows;
      },
    };
    const process = await startProcess({ db: slow });
    const lookup = process.find(key, ADDRESS);
    await asked.promise;
    await revoke(process, id);
    goOn.resolve();
    await lookup;
    expect(await process.find(key, ADDRESS)).toBeUndefined();
  });

  test("keeps its time when it is repeated", async () => {
    const { id } = await make();
    const { revoked_at: first } = await revoke(keys, id);
    expect((await revoke(keys, id)).revoked_at).toEqual(first);
  });

  test("of an unknown key is refused", async () => {
    const id = "01890000-0000-7000-8000-000000000000";
    await expect(revoke(keys, id)).rejects.toMatchObject({
      code: "KEY_NOT_FOUND",
      message: `There is no key with the id ${id}.`,
    });
  });
});

describe("the first key", () => {
  test("is an admin key, and is created only if there is no key at all", async () => {
    const key = await keys.bootstrap();
    expect(await keys.find(key ?? "", ADDRESS)).toMatchObject({ name: "first admin", scopes: ["admin"] });
    expect(await keys.bootstrap()).toBeUndefined();
    expect(await rowCount()).toBe(1);
  });

  test("is not created again when all keys are revoked", async () => {
    await keys.bootstrap();
    await database.query("update kernel.api_key set revoked_at = now()");
    expect(await keys.bootstrap()).toBeUndefined();
  });

  test("is created once even if eight processes start concurrently", async () => {
    const pools = Array.from({ length: 8 }, () => openDb({ connection: database.connection, poolSize: 1 }));
    onTestFinished(async () => void (await Promise.all(pools.map((pool) => pool.close()))));
    const processes = await Promise.all(pools.map((db) => startProcess({ db })));
    // An insert has already checked for keys when it reaches this point.
    await database.query(`create function gate() returns trigger language plpgsql as
                          $$ begin perform pg_advisory_xact_lock_shared(1); return new; end $$`);
    await database.query("create trigger gate before insert on kernel.api_key for each row execute function gate()");
    onTestFinished(async () => void (await database.query("drop function gate() cascade")));
    const [closed, open] = [signal(), signal()];
    const gate = database.db.tx(async (tx) => {
      await tx.rows(CLOSE_GATE);
      closed.resolve();
      await open.promise;
    });
    await closed.promise;
    const starting = Promise.all(processes.map((process) => process.bootstrap()));
    await until(async () => (await waitingLocks()) === 8, "all eight to wait, at the gate or for each other");
    open.resolve();
    await gate;
    expect((await starting).filter((key) => key !== undefined)).toHaveLength(1);
    expect(await rowCount()).toBe(1);
  });

  test("is not created beside one of an open transaction", async () => {
    const [inserted, commit] = [signal(), signal()];
    const making = database.db.tx(async (tx) => {
      await keys.create(tx, { name: "by hand", scopes: ["admin"] }, "me");
      inserted.resolve();
      await commit.promise;
    });
    await inserted.promise;
    const first = keys.bootstrap();
    await until(async () => (await waitingLocks()) === 1, "the first key to wait for the other");
    commit.resolve();
    await making;
    expect(await first).toBeUndefined();
  });
});

test("the cache of keys is bounded, and clearing it loses no key", async () => {
  const count = 10_001;
  const made = Array.from({ length: count }, () => `mlr_${randomBytes(32).toString("base64url")}`);
  await database.query(
    `insert into kernel.api_key (id, name, hash, hint, scopes, created_by)
     select gen_random_uuid(), 'many', sha256(convert_to(key, 'UTF8')), 'mlr_xxxx', '{}', 'test' from unnest($1::text[]) key`,
    [made],
  );
  for (let i = 0; i < count; i += 100) await Promise.all(made.slice(i, i + 100).map((key) => keys.find(key, ADDRESS)));
  statements = [];
  expect(await keys.find(made.at(-1) as string, ADDRESS)).toBeDefined();
  expect(statements).toHaveLength(0);
  expect(await keys.find(made[0] as string, ADDRESS)).toBeDefined();
  expect(statements).toHaveLength(1);
});
