import * as fc from "fast-check";
import { beforeAll, beforeEach, describe, expect, test } from "vitest";
import { useDatabase } from "../../../test/database.ts";
import { guardedUpdate, itemsByKey, toArrays, unnest } from "./batch.ts";
import type { Queryable } from "./db.ts";
import { statement } from "./statement.ts";

const database = useDatabase();

const COLUMNS = { word: "text", n: "int8", flag: "bool", at: "timestamptz", doc: "jsonb" };
interface Item {
  word: string | null;
  n: string | null;
  flag: boolean | null;
  at: Date | null;
  doc: unknown;
}

const ECHO = statement<Item>("test.batch.echo", `select * from ${unnest(COLUMNS, "i")}`);
const echo = (items: readonly Item[]) => database.db.rows(ECHO, toArrays(COLUMNS, items));
const row = (fields: Partial<Item>): Item => ({ word: null, n: null, flag: null, at: null, doc: null, ...fields });

describe("a batch is stored as it was sent", () => {
  test.each([
    "",
    " ",
    "null",
    "NULL",
    "{}",
    '{"a",b}',
    "\\",
    "\\\\x00",
    `"`,
    `''`,
    "a\nb\tc\r",
    "$1 -- ; drop table",
    "é 漢字 🜁 \u200b",
  ])("with the text %j", async (word) => {
    expect(await echo([row({ word }), row({})])).toEqual([row({ word }), row({})]);
  });

  test.each([[[]], [[1, [2, [3]]]], [{}], ["text"], ['"quoted"'], [0], [false], [{ a: '\\"{}', b: [null, "é"] }]])(
    "with the document %j",
    async (doc) => {
      expect(await echo([row({ doc }), row({})])).toEqual([row({ doc }), row({})]);
    },
  );

  test("with random values", async () => {
    const text = fc.string({ unit: "grapheme" }).filter((value) => !value.includes("\0"));
    const item = fc.record<Item>({
      word: fc.option(text),
      n: fc.option(fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }).map(String)),
      flag: fc.option(fc.boolean()),
      at: fc.option(fc.date({ min: new Date("0001-01-01"), max: new Date("9999-12-31"), noInvalidDate: true })),
      doc: fc.option(fc.oneof(text, fc.boolean(), fc.integer(), fc.array(text), fc.dictionary(text, text))),
    });
    await fc.assert(
      fc.asyncProperty(fc.array(item, { maxLength: 20 }), async (items) => {
        expect(await echo(items)).toEqual(items.map((each) => ({ ...each, doc: plain(each.doc) })));
      }),
      { numRuns: 200 },
    );
  });

  test("with missing values as null", () => {
    expect(toArrays({ a: "text", b: "text" }, [{ a: "x" }, { b: undefined }])).toEqual(['{"x",NULL}', "{NULL,NULL}"]);
  });
});

test("parameters are numbered from a given number", () => {
  expect(unnest({ filename: "text", shard: "int4" }, "i", 3)).toBe(
    "unnest($3::text[], $4::int4[]) as i(filename, shard)",
  );
});

describe("the items of a batch by their key", () => {
  const key = { a: "text", b: "int4" };
  const values = { word: "text" };
  const items = [
    { a: "y", b: 1, word: "third" },
    { a: "x", b: 2, word: "second" },
    { a: "x", b: 1, word: "first" },
  ];

  test("come in key order, whatever the order of the input", async () => {
    const rows = await database.db.rows(
      statement("test.batch.by_key", `select i.* from ${itemsByKey(key, values)}`),
      toArrays({ ...key, ...values }, items),
    );
    expect(rows).toEqual(items.toReversed());
  });

  test("may start at a later parameter, after those of the statement itself", async () => {
    const rows = await database.db.rows(
      statement(
        "test.batch.by_key_from",
        `select $1 || i.word as word, $2::int + i.b as b from ${itemsByKey(key, values, 3)}`,
      ),
      ["the ", 10, ...toArrays({ ...key, ...values }, items)],
    );
    expect(rows).toEqual([
      { word: "the first", b: 11 },
      { word: "the second", b: 12 },
      { word: "the third", b: 11 },
    ]);
  });

  test("are empty for an empty batch", async () => {
    const none = statement("test.batch.by_key_none", `select i.* from ${itemsByKey(key)}`);
    expect(await database.db.rows(none, toArrays(key, []))).toEqual([]);
  });
});

describe("a guarded update", () => {
  const raise = guardedUpdate<{ a: string; b: number; by: number | null }, { a: string; b: number; amount: number }>({
    name: "test.batch.raise",
    table: "account",
    key: { a: "text", b: "int4" },
    values: { by: "int4" },
    set: "amount = t.amount + i.by",
    where: "t.amount + i.by >= 0",
    returning: "t.amount",
  });
  beforeAll(() => database.query("create table account (a text, b int, amount int not null, primary key (a, b))"));
  beforeEach(async () => {
    await database.query("truncate account");
    await database.query("insert into account values ('x', 1, 10), ('x', 2, 10), ('y', 1, 10)");
  });

  test("changes the rows that meet the guard, and returns only those", async () => {
    const moved = await raise(database.db, [
      { a: "x", b: 1, by: 5 },
      { a: "x", b: 2, by: -20 },
      { a: "y", b: 1, by: -10 },
      { a: "y", b: 2, by: 1 },
    ]);
    expect(moved.sort((one, other) => one.a.localeCompare(other.a))).toEqual([
      { a: "x", b: 1, amount: 15 },
      { a: "y", b: 1, amount: 0 },
    ]);
    expect(await database.query("select amount from account order by a, b")).toEqual([
      { amount: 15 },
      { amount: 10 },
      { amount: 0 },
    ]);
  });

  test("treats a guard that is null as false", async () => {
    expect(await raise(database.db, [{ a: "x", b: 1, by: null }])).toEqual([]);
  });

  test("changes a batch of a thousand", async () => {
    await database.query("insert into account select 'big', g, g from generate_series(1, 1000) g");
    const items = Array.from({ length: 1_000 }, (_, index) => ({ a: "big", b: index + 1, by: -(index % 2) * 2_000 }));
    const moved = await raise(database.db, items);
    expect(moved.map(({ b }) => b).sort((one, other) => one - other)).toEqual(
      items.filter(({ by }) => by === 0).map(({ b }) => b),
    );
  });

  test("waits for another with the same rows in any order, and never deadlocks", async () => {
    const rows = Array.from({ length: 50 }, (_, index) => ({ a: "many", b: index + 1, by: 1 }));
    await database.query("insert into account select 'many', g, 0 from generate_series(1, 50) g");
    let attempts = 0;
    await Promise.all(
      Array.from({ length: 10 }, (_, index) =>
        database.db.tx(async (tx) => {
          attempts += 1;
          expect(await raise(tx, index % 2 ? rows : rows.toReversed())).toHaveLength(50);
        }),
      ),
    );
    expect(attempts).toBe(10);
    expect(await database.query("select distinct amount from account where a = 'many'")).toEqual([{ amount: 10 }]);
  });

  test("sends no statement when there are no items", async () => {
    const unused: Queryable = { rows: () => Promise.reject(new Error("a statement was sent")) };
    expect(await raise(unused, [])).toEqual([]);
  });
});

/** The document after a round trip: without prototypes and without a negative zero. */
function plain(doc: unknown): unknown {
  return doc === null ? null : (JSON.parse(JSON.stringify(doc)) as unknown);
}
