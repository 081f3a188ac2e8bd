import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { useDatabase } from "../../../test/database.ts";
import { type Claimed, type NewItem, numbersOf, WORK_TABLES } from "../../../test/work-tables.ts";
import { type Db, openDb, type Queryable } from "../data/db.ts";
import { statement } from "../data/statement.ts";

const database = useDatabase();
const CONNECTIONS = 16;
const LOST_LIMIT = 3;

const withNote = (item: Claimed) => ({ ...item, note: "broke" });

describe.each(WORK_TABLES)("with $shape", (work) => {
  const { lease, states } = work;
  const ready = states.ready[0];
  let db: Db;
  let alice: string;
  let bob: string;

  beforeAll(async () => {
    db = openDb({ connection: database.connection, poolSize: CONNECTIONS });
    await work.create(database);
  });
  afterAll(() => db.close());
  beforeEach(async () => {
    await work.clear(database);
    [alice, bob] = [await work.holder(database), await work.holder(database)];
  });

  const add = (...items: NewItem[]) => work.add(database, items);
  const addMany = (count: number) => add(...Array.from({ length: count }, (_, index) => ({ n: index + 1 })));
  const claim = (holder: string, limit = 100) => work.claim(db, holder, limit);
  const reclaim = () => lease.reclaim(db, { limit: 100, lostLimit: LOST_LIMIT });
  const look = () => work.rows(database);
  const stateOf = async (n: number) => (await look()).find((item) => item.n === n)?.state;

  describe("a claim", () => {
    test("takes the most urgent first, then the longest due, up to its limit", async () => {
      await add(
        { n: 1, priority: 5 },
        { n: 2, priority: 1, dueInSeconds: -10 },
        { n: 3, priority: 1, dueInSeconds: -20 },
        { n: 4, priority: 9 },
      );
      expect(numbersOf(await claim(alice, 1))).toEqual([3]);
      expect(numbersOf(await claim(alice, 2))).toEqual([1, 2]);
      expect(numbersOf(await claim(alice, 2))).toEqual([4]);
      expect(await claim(alice, 2)).toEqual([]);
    });

    test("does not take what is not due yet", async () => {
      await add({ n: 1, dueInSeconds: 60 }, { n: 2, dueInSeconds: 0 });
      expect(numbersOf(await claim(alice))).toEqual([2]);
    });

    test("takes from every ready state and from no other", async () => {
      const others = [states.leased, states.dead, "done", "failed"];
      await add(...[...states.ready, ...others].map((state, index) => ({ n: index + 1, state })));
      expect(numbersOf(await claim(alice))).toEqual(states.ready.map((_, index) => index + 1));
    });

    test("gives each item a fence greater than all before it", async () => {
      await addMany(3);
      const first = await claim(alice);
      await lease.release(db, first);
      const second = await claim(bob);
      const fences = (items: readonly Claimed[]) => items.map(({ fence }) => BigInt(fence));
      expect(new Set(fences(first)).size).toBe(3);
      for (const later of fences(second)) expect(fences(first).every((earlier) => earlier < later)).toBe(true);
    });

    test("makes its further assignments and returns the new values", async () => {
      await addMany(1);
      expect(await claim(alice)).toMatchObject([{ claims: 1 }]);
    });

    test("shares no item with another, however many claim at once", async () => {
      const total = 3_000;
      await addMany(total);
      const claimed: number[] = [];
      const sizes: number[] = [];
      async function claimAll(): Promise<void> {
        for (let items = await claim(alice, 7); items.length > 0; items = await claim(alice, 7)) {
          sizes.push(items.length);
          claimed.push(...numbersOf(items));
        }
      }
      await Promise.all(Array.from({ length: CONNECTIONS }, claimAll));
      expect(claimed).toHaveLength(total);
      expect(new Set(claimed).size).toBe(total);
      expect(Math.max(...sizes)).toBe(7);
      expect((await look()).every(({ claims }) => claims === 1)).toBe(true);
    });

    test("skips items that another transaction has locked", async () => {
      await addMany(2);
      await db.tx(async (tx) => {
        await tx.rows(
          statement(`${lease.name}.in_hand`, `select from ${lease.name.split(".")[1]} where n = 1 for update`),
        );
        expect(numbersOf(await claim(bob))).toEqual([2]);
      });
    });
  });

  describe("a further write of a claim", () => {
    const NOTE = statement(
      `${lease.name}.note`,
      `update ${lease.name.split(".")[1]} set note = $1 where n = any($2::int[])`,
    );
    const note = (text: string) => async (tx: Queryable, claimed: readonly Claimed[]) => {
      await tx.rows(NOTE, [text, numbersOf(claimed)]);
    };

    test("is committed with it, for the claimed items", async () => {
      await addMany(3);
      expect(numbersOf(await work.claim(db, alice, 2, note("seen")))).toEqual([1, 2]);
      expect((await look()).map((item) => [item.state, item.note])).toEqual([
        [states.leased, "seen"],
        [states.leased, "seen"],
        [ready, null],
      ]);
    });

    test("rolls the claim back when it fails", async () => {
      await addMany(2);
      const failing = work.claim(db, alice, 2, async (tx, claimed) => {
        await note("half")(tx, claimed);
        throw new Error("no");
      });
      await expect(failing).rejects.toThrow("no");
      const untouched = { state: ready, held: false, fenced: false, claims: 0, note: null };
      expect(await look()).toMatchObject([untouched, untouched]);
      expect(numbersOf(await claim(bob))).toEqual([1, 2]);
    });

    test("is not visible before the claim is", async () => {
      await addMany(1);
      await work.claim(db, alice, 1, async (tx, claimed) => {
        await note("soon")(tx, claimed);
        expect(await look()).toMatchObject([{ state: ready, note: null }]);
      });
      expect(await look()).toMatchObject([{ state: states.leased, note: "soon" }]);
    });

    test("is not made when nothing was claimed", async () => {
      const unwanted = () => Promise.reject(new Error("called"));
      expect(await work.claim(db, alice, 1, unwanted)).toEqual([]);
    });
  });

  describe("a finish", () => {
    test("with the right fence works, and only once", async () => {
      await addMany(2);
      const items = await claim(alice);
      expect(numbersOf(await lease.finish(db, "done", items))).toEqual([1, 2]);
      expect(await lease.finish(db, "done", items)).toEqual([]);
      expect(await lease.finish(db, "failed", items.map(withNote))).toEqual([]);
      expect((await look()).map(({ state }) => state)).toEqual(["done", "done"]);
    });

    test("writes the values of each item", async () => {
      await addMany(2);
      const items = await claim(alice);
      await lease.finish(
        db,
        "failed",
        items.map((item) => ({ ...item, note: `"${item.n}" broke` })),
      );
      expect((await look()).map(({ state, note }) => [state, note])).toEqual([
        ["failed", '"1" broke'],
        ["failed", '"2" broke'],
      ]);
    });

    test.each<[string, (item: Claimed) => string | null]>([
      ["a fence too old", ({ fence }) => String(BigInt(fence) - 1n)],
      ["a fence not given yet", ({ fence }) => String(BigInt(fence) + 1n)],
      ["no fence", () => null],
    ])("with %s moves nothing, nor does a release or an extension", async (_, forge) => {
      await addMany(1);
      const forged = (await claim(alice)).map((item) => ({ ...item, fence: forge(item) }));
      expect(await lease.finish(db, "done", forged)).toEqual([]);
      expect(await lease.release(db, forged)).toEqual([]);
      if (work.extend) expect(await lease.extend(db, forged, 60)).toEqual([]);
      expect(await look()).toMatchObject([{ state: states.leased, held: true }]);
    });

    test("of several items, some with lost leases, changes the others and returns them", async () => {
      await addMany(3);
      const items = await claim(alice);
      await lease.release(db, items.slice(0, 1));
      expect(await lease.finish(db, "done", items)).toHaveLength(2);
    });

    test("with an unknown outcome throws", () => {
      expect(() => lease.finish(db, "dnoe", [])).toThrow("has no outcome dnoe");
    });

    test("happens once, even if several try concurrently", async () => {
      await addMany(20);
      const items = await claim(alice);
      const tries = await Promise.all(
        Array.from({ length: CONNECTIONS }, (_, index) =>
          lease.finish(db, index % 2 ? "done" : "failed", (index % 3 ? items : items.toReversed()).map(withNote)),
        ),
      );
      expect(numbersOf(tries.flat())).toEqual(numbersOf(items));
    });
  });

  describe("a release", () => {
    test("makes items ready again, and counts no loss", async () => {
      await addMany(1);
      expect(numbersOf(await lease.release(db, await claim(alice)))).toEqual([1]);
      expect(await look()).toMatchObject([{ state: ready, held: false, fenced: false, lost: 0 }]);
      expect(numbersOf(await claim(bob))).toEqual([1]);
    });
  });

  describe("a reclaim", () => {
    test("returns the items of an expired holder, and counts the loss", async () => {
      await addMany(2);
      await claim(alice, 1);
      await claim(bob, 1);
      await work.expire(database, alice);
      expect(await reclaim()).toEqual([{ ...work.keyOf(1), state: ready }]);
      expect(await look()).toMatchObject([
        { state: ready, held: false, fenced: false, lost: 1 },
        { state: states.leased, held: true, lost: 0 },
      ]);
    });

    test("does not affect live holders", async () => {
      await addMany(1);
      await claim(alice);
      expect(await reclaim()).toEqual([]);
    });

    test("is limited to its batch size", async () => {
      await addMany(5);
      await claim(alice);
      await work.expire(database, alice);
      expect(await lease.reclaim(db, { limit: 2, lostLimit: LOST_LIMIT })).toHaveLength(2);
      expect(await lease.reclaim(db, { limit: 9, lostLimit: LOST_LIMIT })).toHaveLength(3);
    });

    test("makes an item dead that lost its holders too often", async () => {
      await addMany(1);
      const ends: string[] = [];
      for (let loss = 1; loss <= LOST_LIMIT; loss += 1) {
        const holder = await work.holder(database);
        await claim(holder);
        await work.expire(database, holder);
        ends.push(...(await reclaim()).map(({ state }) => state));
      }
      expect(ends).toEqual([ready, ready, states.dead]);
      expect(await look()).toMatchObject([{ state: states.dead, held: false, lost: 3 }]);
      expect(await claim(bob)).toEqual([]);
    });

    test("counts each loss once, even when eight reclaim at once", async () => {
      await addMany(50);
      await claim(alice);
      await work.expire(database, alice);
      const reclaimed = await Promise.all(Array.from({ length: 8 }, reclaim));
      expect(reclaimed.flat()).toHaveLength(50);
      expect((await look()).every(({ lost }) => lost === 1)).toBe(true);
    });
  });

  describe("the list of expired items", () => {
    test("has the items of expired holders with their fence, and changes nothing", async () => {
      await addMany(2);
      const [first] = await claim(alice, 1);
      await claim(bob, 1);
      expect(await lease.expired(db, 100)).toEqual([]);
      await work.expire(database, alice);
      const before = await look();
      expect(await lease.expired(db, 100)).toEqual([{ ...work.keyOf(1), fence: first?.fence }]);
      expect(await look()).toEqual(before);
    });

    test("is limited", async () => {
      await addMany(5);
      await claim(alice);
      await work.expire(database, alice);
      expect(await lease.expired(db, 2)).toHaveLength(2);
    });

    test("has no released or finished items", async () => {
      await addMany(2);
      const items = await claim(alice);
      await work.expire(database, alice);
      await lease.release(db, items.slice(0, 1));
      await lease.finish(db, "done", items.slice(1));
      expect(await lease.expired(db, 100)).toEqual([]);
    });
  });

  describe("a zombie, whose item was reclaimed,", () => {
    test("changes nothing while another holds the item, nor after that one has finished", async () => {
      await addMany(1);
      const before = await claim(alice);
      await work.expire(database, alice);
      await reclaim();
      const after = await claim(bob);

      const changeNothing = async () => {
        expect(await lease.finish(db, "failed", before.map(withNote))).toEqual([]);
        expect(await lease.release(db, before)).toEqual([]);
      };
      await changeNothing();
      expect(await stateOf(1)).toBe(states.leased);
      await lease.finish(db, "done", after);
      await changeNothing();
      expect(await stateOf(1)).toBe("done");
    });

    test("changes nothing while the item waits to be claimed again", async () => {
      await addMany(1);
      const before = await claim(alice);
      await work.expire(database, alice);
      await reclaim();
      expect(await lease.finish(db, "done", before)).toEqual([]);
      expect(await stateOf(1)).toBe(ready);
    });
  });
});

describe("an extension", () => {
  const [jobs, tasks] = WORK_TABLES as [(typeof WORK_TABLES)[0], (typeof WORK_TABLES)[0]];
  const until = async () => {
    const [row] = await database.query<{ seconds: number }>(
      "select extract(epoch from leased_until - now())::float8 as seconds from job",
    );
    return row?.seconds ?? 0;
  };

  beforeEach(async () => {
    await jobs.clear(database);
    await jobs.add(database, [{ n: 1 }]);
  });

  test("holds an item longer", async () => {
    const items = await jobs.claim(database.db, "alice", 1);
    expect(await until()).toBeCloseTo(60, -1);
    expect(await jobs.lease.extend(database.db, items, 3_600)).toEqual([{ n: "1" }]);
    expect(await until()).toBeCloseTo(3_600, -2);
  });

  test("renews an expired lease that was not reclaimed yet", async () => {
    const items = await jobs.claim(database.db, "alice", 1);
    await jobs.expire(database, "alice");
    expect(await jobs.lease.extend(database.db, items, 60)).toHaveLength(1);
    expect(await jobs.lease.reclaim(database.db, { limit: 1, lostLimit: LOST_LIMIT })).toEqual([]);
    await jobs.expire(database, "alice");
    await jobs.lease.reclaim(database.db, { limit: 1, lostLimit: LOST_LIMIT });
    expect(await jobs.lease.extend(database.db, items, 60)).toEqual([]);
  });

  test("throws for leases held by session", () => {
    expect(() => tasks.lease.extend(database.db, [], 60)).toThrow("its heartbeat extends it");
  });
});

test("work held by a session is lost when the session's row is deleted", async () => {
  const [, tasks] = WORK_TABLES as [(typeof WORK_TABLES)[0], (typeof WORK_TABLES)[0]];
  await tasks.clear(database);
  await tasks.add(database, [{ n: 1 }]);
  const holder = await tasks.holder(database);
  await tasks.claim(database.db, holder, 1);
  await database.query("delete from kernel.session where id = $1", [holder]);
  expect(await tasks.lease.reclaim(database.db, { limit: 9, lostLimit: LOST_LIMIT })).toHaveLength(1);
});
