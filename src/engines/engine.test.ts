import { describe, expect, test } from "vitest";
import { EngineRefusal, type Params } from "./engine.ts";
import { KINDS, useEveryKind } from "./every-kind.fixture.ts";

// The rules of engine.ts, for every kind of engine.
const every = useEveryKind();
const never = new AbortController().signal;

describe.each(KINDS)("the %s engine", (name) => {
  const query = (sql: string, params?: Params, rowsMax = 100) =>
    every.engines.get(name).query(sql, { params, signal: never, rowsMax });
  const rowsOf = async (sql: string, params?: Params) => (await query(sql, params)).rows;

  test("returns columns and rows", async () => {
    expect(every.engines.get(name)).toMatchObject({ name, kind: name });
    expect(await query("select 1 as a, 'x' as b union all select 2, null order by a")).toEqual({
      columns: ["a", "b"],
      rows: [
        { a: 1, b: "x" },
        { a: 2, b: null },
      ],
      rowCount: 2,
      truncated: false,
    });
    expect(await query("select 1 as a where false")).toEqual({
      columns: ["a"],
      rows: [],
      rowCount: 0,
      truncated: false,
    });
  });

  test("returns at most `rowsMax` rows, and says that there were more", async () => {
    const sql = "select i from generate_series(1, 5000) as t(i) order by i desc; -- all of them";
    expect(await query(sql, {}, 2)).toEqual({
      columns: ["i"],
      rows: [{ i: 5000 }, { i: 4999 }],
      rowCount: 2,
      truncated: true,
    });
    expect(await query(sql, {}, 5000)).toMatchObject({ rowCount: 5000, truncated: false });
    expect(await query(sql, {}, 4999)).toMatchObject({ rowCount: 4999, truncated: true });
    expect(await query(sql, {}, 0)).toMatchObject({ rows: [], truncated: true });
  });

  test("returns how many rows a statement changed", async () => {
    await query(`create table counted_${name} (a int)`);
    expect(await query(`insert into counted_${name} values (1), (2), (3)`)).toEqual({
      columns: [],
      rows: [],
      rowCount: 3,
      truncated: false,
    });
    expect(await query(`update counted_${name} set a = a + 1 where a > 1`)).toMatchObject({ rowCount: 2 });
    expect(await rowsOf(`select count(*) as n from counted_${name}`)).toEqual([{ n: 3 }]);
  });

  test("returns every value as JSON", async () => {
    const [row] = await rowsOf(`select
      true as yes, cast(7 as bigint) as small, cast(9007199254740993 as bigint) as large,
      cast(1.50 as decimal(10, 2)) as price, cast('12345678901234567890.5' as decimal(30, 1)) as fortune,
      cast(0.1 as double precision) as ratio, cast('NaN' as double precision) as nothing,
      date '2026-01-31' as day, timestamp '2026-01-31 01:02:03.000456' as at,
      timestamp with time zone '2026-01-31 01:02:03.5+02' as moment,
      cast('{"a": [1, null]}' as json) as doc, cast('7e0ea6f2-1f0d-4b3e-9b57-9a3e4a3b2c1d' as uuid) as id,
      array[1, null] as numbers, array[cast(1.5 as decimal(4, 1))] as decimals, array[date '2026-01-31'] as days`);
    expect(row).toEqual({
      yes: true,
      small: 7,
      large: "9007199254740993",
      price: 1.5,
      fortune: "12345678901234567890.5",
      ratio: 0.1,
      nothing: "NaN",
      day: "2026-01-31",
      at: "2026-01-31T01:02:03.000456",
      moment: "2026-01-30T23:02:03.5Z",
      doc: { a: [1, null] },
      id: "7e0ea6f2-1f0d-4b3e-9b57-9a3e4a3b2c1d",
      numbers: [1, null],
      decimals: [1.5],
      days: ["2026-01-31"],
    });
    expect(JSON.parse(JSON.stringify(row))).toEqual(row);
  });

  test("makes equal column names unique", async () => {
    expect(Object.values((await rowsOf('select 1 as a, 2 as a, 3 as "__proto__"'))[0] ?? {})).toEqual([1, 2, 3]);
    expect(new Set((await query("select 1 as a, 2 as a")).columns).size).toBe(2);
  });

  test("takes named parameters, each as often as it is used, and ignores others", async () => {
    const params = { op_time: "2026'01", n: 3, unused: true, nothing: null, ratio: 0.5, huge: 1e300 };
    const sql = `select cast($op_time as text) as t, '$n' as literal, cast($n as int) + cast($n as int) as six,
      cast($nothing as text) as nothing, cast($ratio as double precision) as ratio,
      cast($huge as double precision) as huge`;
    expect(await rowsOf(sql, params)).toEqual([
      { t: "2026'01", literal: "$n", six: 6, nothing: null, ratio: 0.5, huge: 1e300 },
    ]);
  });

  test("takes a list of parameters by number", async () => {
    const list = [1, "x", "unused"];
    expect(await rowsOf("select cast($2 as text) as b, cast($1 as int) as a", list)).toEqual([{ b: "x", a: 1 }]);
  });

  test("takes lists as arrays and objects as JSON", async () => {
    const [row] = await rowsOf(
      `select cast($names as text[]) as names, cast($ids as int[]) as ids, cast($shares as double precision[]) as shares,
        cast($none as int[]) as nothing, cast($doc as json) as doc, cast($mixed as json) as mixed`,
      { names: ["a", "b,'"], ids: [1, null], shares: [0.5, 2], none: [], doc: { a: [1] }, mixed: [1, "a"] },
    );
    expect(row).toEqual({
      names: ["a", "b,'"],
      ids: [1, null],
      shares: [0.5, 2],
      nothing: [],
      doc: { a: [1] },
      mixed: [1, "a"],
    });
  });

  test.each([
    ["selec 1", undefined],
    ["select * from no_such_table", undefined],
    ["select no_such_column", undefined],
    ["select cast('a' as int)", undefined],
    ["create table twice (a int primary key); insert into twice values (1), (1)", undefined],
    ["select $op_time", {}],
    ["select $1", undefined],
    ["select $1, $2", [1]],
    ["-- nothing\n;", undefined],
    ["begin; create table forgotten (a int)", undefined],
  ])("refuses %s", async (sql, params) => {
    await expect(query(sql, params)).rejects.toThrow(EngineRefusal);
  });

  test("reports an error in its own words", async () => {
    await expect(query("select * from no_such_table")).rejects.toThrow(/no_such_table.* does not exist/);
  });

  describe("interrupted", () => {
    const ENDLESS = "select count(*) as n from generate_series(1, 100000000000) as t(i) where i % 3 = 7";

    test.each([0, 1, 2, 5, 20, 100])("%i ms after the start, rejects with the reason", async (ms) => {
      const abort = new AbortController();
      const endless = every.engines.get(name).query(ENDLESS, { signal: abort.signal, rowsMax: 1 });
      const reason = new Error("the run was stopped");
      if (ms === 0) abort.abort(reason);
      else setTimeout(() => abort.abort(reason), ms);
      await expect(endless).rejects.toBe(reason);
      expect(await rowsOf("select 1 as a")).toEqual([{ a: 1 }]);
    });

    test("before it starts, does not start", async () => {
      await query(`create table untouched_${name} (a int)`);
      const signal = AbortSignal.abort(new Error("too late"));
      const late = every.engines.get(name).query(`insert into untouched_${name} values (1)`, { signal, rowsMax: 1 });
      await expect(late).rejects.toThrow("too late");
      expect(await rowsOf(`select * from untouched_${name}`)).toEqual([]);
    });

    test("while it is queued, leaves the queue", async () => {
      const abort = new AbortController();
      const busy = Array.from({ length: 4 }, () =>
        every.engines
          .get(name)
          .query(ENDLESS, { signal: abort.signal, rowsMax: 1 })
          .catch((error: Error) => error.message),
      );
      const impatient = new AbortController();
      const waiting = every.engines.get(name).query("select 1 as a", { signal: impatient.signal, rowsMax: 1 });
      impatient.abort(new Error("no time"));
      await expect(waiting).rejects.toThrow("no time");
      abort.abort(new Error("enough"));
      expect(await Promise.all(busy)).toEqual(Array(4).fill("enough"));
    });

    test("by closing the engine, ends, and no query starts afterwards", async () => {
      const own = every.openOthers();
      const endless = own.get(name).query(ENDLESS, { signal: never, rowsMax: 1 });
      const refused = expect(endless).rejects.toThrow(`The engine \`${name}\` is closed.`);
      await own.close();
      await refused;
      await expect(own.get(name).query("select 1", { signal: never, rowsMax: 1 })).rejects.toThrow("is closed");
    });
  });
});

// Trino runs one statement at a time, and has neither `returning` nor an infinite time.
describe.each(["duckdb", "postgres"] as const)("the %s engine", (name) => {
  const query = (sql: string, rowsMax = 100) => every.engines.get(name).query(sql, { signal: never, rowsMax });
  const rowsOf = async (sql: string) => (await query(sql)).rows;

  test("runs several statements as one transaction, and returns the result of the last", async () => {
    const script =
      "create table steps (a int); insert into steps values (1), (2); select sum(a) as total from steps; ;";
    expect(await rowsOf(script)).toEqual([{ total: 3 }]);
    await expect(query("insert into steps values (3); select 1 / cast('x' as int)")).rejects.toThrow(EngineRefusal);
    expect(await rowsOf("select count(*) as n from steps")).toEqual([{ n: 2 }]);
    expect(await query("select 1 as a; update steps set a = 0")).toMatchObject({ columns: [], rowCount: 2 });
  });

  test("leaves transactions to SQL that begins with `begin`", async () => {
    await query("begin; create table own (a int); insert into own values (1); commit; select 1 as a");
    await query("begin; insert into own values (2); rollback");
    expect(await rowsOf("select a from own")).toEqual([{ a: 1 }]);
  });

  test("carries no session state over to the next query", async () => {
    await query("create temporary table brief (a int); select 1 as a");
    await expect(query("select * from brief")).rejects.toThrow(EngineRefusal);
    await query("begin; create table undone (a int)").catch(() => {});
    await expect(query("select * from undone")).rejects.toThrow(EngineRefusal);
  });

  test("refuses a transaction that was left open", async () => {
    await expect(query("begin; create table forgotten (a int)")).rejects.toThrow("does not end it");
  });

  test("returns at most `rowsMax` rows of a change, but makes the whole change", async () => {
    await query("create table returned (a int)");
    const sql = "insert into returned values (7), (8) returning a";
    expect(await query(sql, 1)).toMatchObject({ rows: [{ a: 7 }], truncated: true });
    expect(await rowsOf("select count(*) as n from returned")).toEqual([{ n: 2 }]);
  });

  test("returns an infinite time as text", async () => {
    const sql = "select cast('infinity' as timestamp with time zone) as never";
    expect(await rowsOf(sql)).toEqual([{ never: "infinity" }]);
  });
});
