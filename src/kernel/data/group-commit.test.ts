import * as fc from "fast-check";
import { beforeAll, beforeEach, describe, expect, test } from "vitest";
import { useDatabase } from "../../../test/database.ts";
import { signal } from "../../../test/until.ts";
import { toArrays, unnest } from "./batch.ts";
import { isUnavailable } from "./db.ts";
import { createGroupCommit, type GroupCommitOptions } from "./group-commit.ts";
import { statement } from "./statement.ts";

const database = useDatabase();

interface Entry {
  account: string;
  amount: string;
}

const COLUMNS = { account: "text", amount: "int4" };
const INSERT = statement<{ id: number; account: string }>(
  "test.group.insert",
  `insert into entry (account, amount) select * from ${unnest(COLUMNS, "i")} returning id, account`,
);

beforeAll(() =>
  database.query(
    "create table entry (id int generated always as identity, account text, amount int check (amount >= 0), batch xid default pg_current_xact_id()::xid)",
  ),
);
beforeEach(() => database.query("truncate entry"));

describe("acknowledgement", () => {
  test("has the result of each caller", async () => {
    const group = groupOf();
    const accounts = Array.from({ length: 250 }, (_, index) => `account ${index}`);
    expect(await Promise.all(accounts.map((account) => group.add({ account, amount: "1" })))).toEqual(accounts);
  });

  test("comes after the commit, and not before", async () => {
    const group = groupOf();
    let acknowledged = false;
    let visible: Promise<unknown[]> | undefined;
    async function addAndLook(): Promise<unknown[]> {
      await group.add({ account: "a", amount: "1" });
      acknowledged = true;
      return rows();
    }
    await database.db.tx(async (tx) => {
      await tx.rows(statement("test.group.lock", "lock table entry"));
      visible = addAndLook();
      await untilOneWaitsForALock();
      expect(acknowledged).toBe(false);
    });
    expect(await visible).toEqual([{ account: "a", amount: 1 }]);
  });

  test("of a single write does not wait", async () => {
    const batches: number[] = [];
    const group = groupOf({ onBatch: (items) => batches.push(items.length) });
    await group.add({ account: "a", amount: "1" });
    await group.add({ account: "b", amount: "1" });
    expect(batches).toEqual([1, 1]);
  });
});

describe("a batch", () => {
  test("contains the items added during the previous one, up to the limit", async () => {
    const batches: number[] = [];
    const gate = signal();
    const group = groupOf({ itemsMax: 10, gate: gate.promise, onBatch: (items) => batches.push(items.length) });
    const first = group.add({ account: "first", amount: "1" });
    await new Promise(setImmediate);
    const rest = Array.from({ length: 25 }, (_, index) => group.add({ account: `${index}`, amount: "1" }));
    expect(group.waiting()).toBe(25);
    gate.resolve();
    await Promise.all([first, ...rest]);
    expect(batches).toEqual([1, 10, 10, 5]);
    expect(await database.query("select distinct batch from entry")).toHaveLength(4);
  });

  test.each([
    [true, "joins what waits already", [1, 2]],
    [false, "comes after what waits already", [1, 1, 1]],
  ])("with yieldsBetweenBatches %s: an item that follows from another %s", async (yieldsBetweenBatches, _, sizes) => {
    const batches: number[] = [];
    const gate = signal();
    const group = groupOf({ yieldsBetweenBatches, gate: gate.promise, onBatch: (items) => batches.push(items.length) });
    const chain = group.add({ account: "parent", amount: "1" }).then(async () => {
      await Promise.resolve(); // As long as a worker takes for a node without work.
      return group.add({ account: "child", amount: "1" });
    });
    await new Promise(setImmediate);
    const waiting = group.add({ account: "waiting", amount: "1" });
    gate.resolve();
    await Promise.all([chain, waiting]);
    expect(batches).toEqual(sizes);
  });

  test("never has two items of one identity, and keeps their order", async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(fc.constantFrom("a", "b", "c", "d"), { maxLength: 30 }), async (accounts) => {
        await database.query("truncate entry");
        const group = groupOf({
          itemsMax: 3,
          onBatch: (items) => expect(new Set(items.map(({ account }) => account)).size).toBe(items.length),
        });
        await Promise.all(accounts.map((account, index) => group.add({ account, amount: String(index) })));
        const written = await rows();
        for (const account of ["a", "b", "c", "d"]) {
          const inOrder = accounts.flatMap((each, index) => (each === account ? [index] : []));
          expect(written.filter((row) => row.account === account).map(({ amount }) => amount)).toEqual(inOrder);
        }
      }),
      { numRuns: 50 },
    );
  });
});

describe("failure", () => {
  test.each([
    ["that breaks a constraint", "-1", "23514"],
    ["that is no number", "many", "22P02"],
  ])("of an item %s does not fail the others", async (_, amount, code) => {
    const group = groupOf();
    const accounts = ["a", "b", "bad", "c"];
    const outcomes = await Promise.allSettled(
      accounts.map((account) => group.add({ account, amount: account === "bad" ? amount : "1" })),
    );
    expect(outcomes.map(({ status }) => status)).toEqual(["fulfilled", "fulfilled", "rejected", "fulfilled"]);
    expect(outcomes[2]).toMatchObject({ reason: { code } });
    expect((await rows()).map(({ account }) => account)).toEqual(["a", "b", "c"]);
  });

  test("of an item may be of any kind, if the database is available", async () => {
    const group = groupOf({
      write: async (items) => {
        if (items.some(({ account }) => account === "bad")) throw new TypeError("this item makes no sense");
        return items.map(({ account }) => account);
      },
    });
    const accounts = ["a", "b", "bad", "c"];
    const outcomes = await Promise.allSettled(accounts.map((account) => group.add({ account, amount: "1" })));
    expect(outcomes.map(({ status }) => status)).toEqual(["fulfilled", "fulfilled", "rejected", "fulfilled"]);
    expect(outcomes[2]).toMatchObject({ reason: new TypeError("this item makes no sense") });
  });

  test("of the connection rejects the whole batch, and the next one is written", async () => {
    const group = groupOf();
    let lost: Promise<PromiseSettledResult<string>[]> | undefined;
    await database.db.tx(async (tx) => {
      await tx.rows(statement("test.group.lock_again", "lock table entry"));
      lost = Promise.allSettled(["a", "b", "c"].map((account) => group.add({ account, amount: "1" })));
      const [waiting] = await untilOneWaitsForALock();
      await database.query("select pg_terminate_backend($1, 10000)", [waiting?.pid]);
    });
    const outcomes = (await lost) ?? [];
    expect(outcomes).toHaveLength(3);
    for (const outcome of outcomes) expect(outcome).toMatchObject({ reason: expect.toSatisfy(isUnavailable) });
    expect(await rows()).toEqual([]);
    expect(await group.add({ account: "d", amount: "1" })).toBe("d");
  });
});

test.each([
  ["a statement", "57014"],
  ["the wait for a lock", "55P03"],
])("a time-out of %s rejects the whole batch: its items are not written one by one", async (_, code) => {
  const sizes: number[] = [];
  const group = createGroupCommit<string, string>({
    identity: (item) => item,
    async write(items) {
      sizes.push(items.length);
      throw Object.assign(new Error("canceling statement"), { code });
    },
  });
  const outcomes = await Promise.allSettled(["a", "b", "c"].map((item) => group.add(item)));
  for (const outcome of outcomes) expect(outcome).toMatchObject({ reason: { code } });
  expect(sizes).toEqual([3]);
});

describe("back-pressure", () => {
  test("refuses new items with 503 when too many wait, and accepts them again later", async () => {
    const gate = signal();
    const group = groupOf({ waitingMax: 3, gate: gate.promise });
    const taken = [group.add({ account: "written now", amount: "1" })];
    await new Promise(setImmediate);
    for (const account of ["a", "b", "c"]) taken.push(group.add({ account, amount: "1" }));
    await expect(group.add({ account: "too many", amount: "1" })).rejects.toMatchObject({
      code: "OVERLOADED",
      status: 503,
      retryAfterSeconds: 1,
      details: { waiting: 3 },
    });
    gate.resolve();
    await Promise.all(taken);
    expect(await group.add({ account: "later", amount: "1" })).toBe("later");
    expect((await rows()).map(({ account }) => account)).toEqual(["written now", "a", "b", "c", "later"]);
  });
});

describe("drain", () => {
  test("waits until everything added so far is written, failures included", async () => {
    const group = groupOf({ itemsMax: 2 });
    const outcomes = Promise.allSettled(
      ["1", "2", "-1", "4", "5"].map((amount) => group.add({ account: amount, amount })),
    );
    await group.drain();
    expect((await rows()).map(({ account }) => account)).toEqual(["1", "2", "4", "5"]);
    expect(group.waiting()).toBe(0);
    await outcomes;
  });

  test("of an empty queue resolves at once", async () => {
    await groupOf().drain();
  });
});

interface TestOptions extends Partial<GroupCommitOptions<Entry, string>> {
  onBatch?: (items: readonly Entry[]) => void;
  /** Holds the first batch. */
  gate?: Promise<void>;
}

function groupOf({ onBatch, gate, ...options }: TestOptions = {}) {
  return createGroupCommit<Entry, string>({
    identity: ({ account }) => account,
    async write(items) {
      onBatch?.(items);
      await gate;
      const written = await database.db.rows(INSERT, toArrays(COLUMNS, items));
      return written.map(({ account }) => account);
    },
    ...options,
  });
}

function rows(): Promise<{ account: string; amount: number }[]> {
  return database.query("select account, amount from entry order by id");
}

async function untilOneWaitsForALock(): Promise<{ pid: number }[]> {
  for (;;) {
    const waiting = await database.query<{ pid: number }>(
      `select pid from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`,
    );
    if (waiting.length > 0) return waiting;
  }
}
