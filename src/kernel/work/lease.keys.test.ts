import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { useDatabase } from "../../../test/database.ts";
import { explain } from "../../../test/plans.ts";
import { type Db, openDb } from "../data/db.ts";
import { statement } from "../data/statement.ts";
import { type AlsoOnClaim, type LeaseSpec, leaseOn, returning } from "./lease.ts";

const database = useDatabase();
const CLAIMERS = 8;
const ROUNDS_MAX = 200;
/** One more than two claims read. */
const KEYS_MANY = 1_001;
const PAGES_MAX = 200;

const spec = {
  table: "errand",
  key: { id: "int8" },
  state: { column: "state", ready: ["ready"], leased: "leased", dead: "dead" },
  orderBy: "priority, id",
  fence: "fence",
  lost: { column: "lost_count" },
  returning: returning<{ pool: string }>("t.pool"),
  outcomes: { done: { set: "state = 'done'" } },
} as const satisfies Partial<LeaseSpec>;
const byItem = leaseOn({
  ...spec,
  name: "test.errand.constant",
  hold: { by: "item", owner: "worker", until: "leased_until" },
  concurrency: { column: "pool", limit: "2" },
});
const bySession = leaseOn({
  ...spec,
  name: "test.errand.table",
  hold: { by: "session", session: "session_id" },
  concurrency: { column: "pool", limit: "select p.slots from pool p where p.name = k.key" },
});

const RAISE = statement("test.errand.raise", "update errand set priority = priority + 1");

let db: Db;
beforeAll(async () => {
  db = openDb({ connection: database.connection, poolSize: CLAIMERS });
  await database.query("create table pool (name text primary key, slots int not null)");
  await database.query(
    `create table errand (
       id bigint generated always as identity primary key, pool text not null, state text not null default 'ready',
       priority int not null default 0, fence bigint, worker text, leased_until timestamptz, session_id bigint,
       lost_count int not null default 0) with (autovacuum_enabled = false)`,
  );
  await database.query("create index errand_ready on errand (pool, priority, id) where state = 'ready'");
  await database.query("create index errand_leased on errand (pool) where state = 'leased'");
});
afterAll(() => db.close());
beforeEach(async () => {
  await database.query("truncate errand, pool restart identity");
});

type Also = AlsoOnClaim<{ id: string; pool: string; fence: string }>;
const KINDS = [
  {
    kind: "a constant limit, item by item",
    claim: (limit: number, also?: Also) => byItem.claim(db, { limit, holder: "worker", seconds: 60 }, also),
  },
  {
    kind: "limits from a table, by session",
    claim: (limit: number, also?: Also) => bySession.claim(db, { limit, holder: "1" }, also),
  },
];

describe.each(KINDS)("with $kind", ({ claim }) => {
  test("no key ever has more items leased than its limit, and every item is served", async () => {
    await slots({ a: 2, b: 2, c: 2, d: 2, e: 2 });
    await add(Array.from({ length: 200 }, (_, index) => ({ pool: "aaabbcdeee"[index % 10] as string })));
    let finished = 0;
    for (let round = 1; finished < 200; round += 1) {
      expect(round).toBeLessThanOrEqual(ROUNDS_MAX);
      const claimed = (await Promise.all(Array.from({ length: CLAIMERS }, () => claim(3)))).flat();
      expect(new Set(claimed.map(({ id }) => id)).size).toBe(claimed.length);
      const leased = await database.query<{ pool: string; n: number }>(
        "select pool, count(*)::int as n from errand where state = 'leased' group by pool",
      );
      expect(leased.filter(({ n }) => n > 2)).toEqual([]);
      // Some stay leased and some are released, so that the next round finds keys with some places taken.
      const ended = claimed.filter((_, index) => index % 4 !== 3);
      if (round % 2 === 0) await byItem.release(db, ended.splice(0, 1));
      finished += (await byItem.finish(db, "done", ended)).length;
      if (round % 3 === 0) finished += await finishAll();
    }
    expect(await database.query("select distinct state from errand")).toEqual([{ state: "done" }]);
  });

  test("a full key does not block others, however many items it has", async () => {
    await slots({ busy: 2, idle: 2 });
    await add([...Array.from({ length: 500 }, () => ({ pool: "busy", priority: -1 })), { pool: "idle" }]);
    expect(pools(await claim(10))).toEqual(["busy", "busy", "idle"]);
    expect(await claim(10)).toEqual([]);
  });

  test("the most urgent item of all keys with a free place comes first", async () => {
    await slots({ a: 2, b: 2, c: 2 });
    await add([
      { pool: "a", priority: 3 },
      { pool: "b", priority: 1 },
      { pool: "b", priority: 2 },
      { pool: "b", priority: 0 },
      { pool: "c", priority: 9 },
    ]);
    expect(pools(await claim(3))).toEqual(["a", "b", "b"]);
  });

  test("every key is served, even when there are more than one claim reads", async () => {
    const names = Array.from({ length: KEYS_MANY }, (_, index) => `key ${String(index).padStart(4, "0")}`);
    await slots(Object.fromEntries(names.map((name) => [name, 2])));
    await add(names.map((pool) => ({ pool })));
    const seen = new Set<string>();
    for (let items = await claim(1_000); items.length > 0; items = await claim(1_000)) {
      for (const { pool } of items) seen.add(pool);
    }
    expect(seen.size).toBe(KEYS_MANY);
  });

  test("a claim that starts in the middle and finds nothing reads the first keys too", async () => {
    const names = Array.from({ length: 500 }, (_, index) => `key ${String(index).padStart(4, "0")}`);
    await slots({ ...Object.fromEntries(names.map((name) => [name, 2])), first: 2 });
    await add(names.map((pool) => ({ pool })));
    expect(await claim(500)).toHaveLength(500);
    await add([{ pool: "first" }]);
    expect(pools(await claim(10))).toEqual(["first"]);
  });

  test("further writes are part of the claim: if they fail, nothing is claimed and the places stay free", async () => {
    await slots({ a: 2, b: 2 });
    await add([{ pool: "a" }, { pool: "a" }, { pool: "b" }]);
    const seen: string[][] = [];
    const failing = claim(10, async (tx, claimed) => {
      seen.push(pools(claimed));
      await tx.rows(RAISE);
      throw new Error("no");
    });
    await expect(failing).rejects.toThrow("no");
    expect(await database.query("select distinct state, priority from errand")).toEqual([
      { state: "ready", priority: 0 },
    ]);
    await claim(10, async (tx, claimed) => {
      seen.push(pools(claimed));
      await tx.rows(RAISE);
    });
    expect(await database.query("select distinct state, priority from errand")).toEqual([
      { state: "leased", priority: 1 },
    ]);
    await claim(10, async () => expect.unreachable("nothing was claimed"));
    expect(seen).toEqual([
      ["a", "a", "b"],
      ["a", "a", "b"],
    ]);
  });

  test("an empty text is a key like any other", async () => {
    await slots({ "": 2 });
    await add([{ pool: "" }]);
    expect(pools(await claim(1))).toEqual([""]);
  });

  test("concurrent claims all get items while there are free places", async () => {
    const names = ["a", "b", "c", "d"];
    await slots(Object.fromEntries(names.map((name) => [name, 2])));
    await add(Array.from({ length: 100 }, (_, index) => ({ pool: names[index % 4] as string })));
    const claimed = await Promise.all(Array.from({ length: CLAIMERS }, () => claim(1)));
    expect(claimed.map((items) => items.length)).toEqual(Array.from({ length: CLAIMERS }, () => 1));
  });
});

describe("a limit from a table", () => {
  const claim = (limit: number) => bySession.claim(db, { limit, holder: "1" });

  test("is read at each claim", async () => {
    await slots({ a: 1 });
    await add([{ pool: "a" }, { pool: "a" }, { pool: "a" }]);
    expect(await claim(10)).toHaveLength(1);
    await database.query("update pool set slots = 3");
    expect(await claim(10)).toHaveLength(2);
  });

  test("that is zero, below what is leased, or missing allows no claim", async () => {
    await slots({ lowered: 2, zero: 0 });
    await add([{ pool: "lowered" }, { pool: "lowered" }]);
    await claim(10);
    await database.query("update pool set slots = 1 where name = 'lowered'");
    await add([{ pool: "lowered" }, { pool: "missing" }, { pool: "zero" }]);
    expect(await claim(10)).toEqual([]);
  });
});

describe.each([
  { statistics: "none", state: undefined },
  { statistics: "of leased items only", state: "leased" },
])("a claim, by plans made while the table was tiny, with statistics: $statistics,", ({ state }) => {
  let single: Db;
  beforeEach(async () => {
    await database.query("delete from pg_statistic where starelid = 'errand'::regclass");
    if (state !== undefined) {
      await database.query("insert into errand (pool, state) select 'a', $1 from generate_series(1, 6)", [state]);
      await database.query("analyze errand");
      await database.query("truncate errand");
    }
    single = openDb({ connection: database.connection, poolSize: 1 });
    await slots({ a: 1, "pool 0": 20_000, "pool 1": 20_000 });
    for (let round = 0; round < 7; round += 1) {
      await add([{ pool: "a" }]);
      await byItem.claim(single, { limit: 2, holder: "worker", seconds: 60 });
      await bySession.claim(single, { limit: 2, holder: "1" });
    }
    await database.query("insert into errand (pool) select 'pool ' || g % 2 from generate_series(1, 30000) g");
  });
  afterEach(() => single.close());

  test("skips from key to key by the index", async () => {
    const walk = await explain(single, `"test.errand.constant.lock_keys"('', 500)`);
    expect(walk.nodes).not.toContain("Seq Scan");
    expect(walk.indexes).toEqual(["errand_ready"]);
    expect(walk.pages).toBeLessThan(PAGES_MAX);
  });

  test.each(["constant", "table"])(
    "reads no more items of a key than it claims, with a limit from a %s",
    async (kind) => {
      const holder = kind === "constant" ? "'worker', 60" : "1";
      const take = await explain(
        single,
        `"test.errand.${kind}.claim_in_keys"(2, ${holder}, array['pool 0', 'pool 1'])`,
      );
      expect(take.nodes).not.toContain("Seq Scan");
      expect(take.indexes).toEqual(expect.arrayContaining(["errand_leased", "errand_pkey", "errand_ready"]));
      expect(take.pages).toBeLessThan(PAGES_MAX);
    },
  );
});

async function add(items: readonly { pool: string; priority?: number }[]): Promise<void> {
  await database.query("insert into errand (pool, priority) select * from unnest($1::text[], $2::int[])", [
    items.map(({ pool }) => pool),
    items.map(({ priority }) => priority ?? 0),
  ]);
}

async function slots(limits: Record<string, number>): Promise<void> {
  await database.query("insert into pool select * from unnest($1::text[], $2::int[])", [
    Object.keys(limits),
    Object.values(limits),
  ]);
}

async function finishAll(): Promise<number> {
  const ended = await database.query(
    `update errand set state = 'done', fence = null, worker = null, leased_until = null, session_id = null
     where state = 'leased' returning id`,
  );
  return ended.length;
}

function pools(items: readonly { pool: string }[]): string[] {
  return items.map(({ pool }) => pool).sort();
}
