import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { realTrino } from "../../../test/real-trino.ts";
import { type Engine, EngineRefusal, type Engines, type Params } from "../engine.ts";
import { createEngines } from "../engines.ts";

// What only a real Trino can show, since the Trino of other tests computes with Postgres. `npm run test:servers` starts one.
describe.skipIf(realTrino === undefined)("a real Trino", () => {
  let engines: Engines;
  let engine: Engine;
  beforeAll(() => {
    const trino = { kind: "trino", url: realTrino ?? "", user: "test" } as const;
    engines = createEngines(
      { plain: trino, set: { ...trino, session: { query_max_run_time: "17m", distributed_sort: false } } },
      { lakeDir: undefined },
    );
    engine = engines.get("plain");
  });
  afterAll(() => engines.close());

  const query = (sql: string, params?: Params, from = engine) =>
    from.query(sql, { params, signal: new AbortController().signal, rowsMax: 1_000 });
  const rowsOf = async (sql: string, params?: Params) => (await query(sql, params)).rows;

  test("takes one parameter twice, in the expression of `group by` too", async () => {
    const rows = await rowsOf(
      `select date_trunc($unit, at) as at, a % $n as rest, count(*) as count from (values (timestamp '2026-01-31 01:00:00', 3)) as t(at, a)
       where $unit <> $n_text group by date_trunc($unit, at), a % $n order by $n limit $n`,
      { unit: "day", n: 2, n_text: "2" },
    );
    expect(rows).toEqual([{ at: "2026-01-31T00:00:00", rest: 1, count: 1 }]);
  });

  test("takes every kind of value, and keeps it", async () => {
    const params = {
      text: "it's; -- 😀\n\\ U&'\\0041' /*",
      whole: -7,
      large: 9_007_199_254_740_991,
      ratio: -0.1,
      huge: 1e300,
      nan: Number.NaN,
      yes: true,
      nothing: null,
      names: ["a'", null],
      shares: [1, 0.5],
      none: [],
      doc: { a: ["'"] },
    };
    const sql = `select $text as text, 5-$whole as whole, $large as large, $ratio as ratio, $huge as huge, $nan as nan, $yes as yes,
      $nothing as nothing, $names as names, $shares as shares, cast($none as array(integer)) as none, json_parse($doc) as doc`;
    expect(await rowsOf(sql, params)).toEqual([{ ...params, whole: 12, nan: "NaN" }]);
    expect(await rowsOf("select cast($day as date) as day", { day: "2026-01-31" })).toEqual([{ day: "2026-01-31" }]);
  });

  test("does not take a number for that of a column", async () => {
    const sql = "select a, b from (values (2, 'x'), (1, 'y')) as t(a, b) order by $n, b";
    expect(await rowsOf(sql, { n: 1 })).toEqual([
      { a: 2, b: "x" },
      { a: 1, b: "y" },
    ]);
  });

  test("ends a comment at its first end", async () => {
    expect(await rowsOf("select /* /* $b */ $a as a;", { a: 1 })).toEqual([{ a: 1 }]);
  });

  test.each<[string, Params, string]>([
    ["select $a, x", { a: "twenty characters, no" }, "line 1:12: Column 'x' cannot be resolved"],
    ["select $a,\n '😀', x", { a: "two\nlines" }, "line 2:7: Column 'x' cannot be resolved"],
    ["select $a from;", { a: 1 }, "line 1:15: mismatched input '<EOF>'"],
    ["select 'a'$a", { a: "b" }, "line 1:11: mismatched input ''b''"],
  ])("names the place of an error in the SQL that was given: %s", async (sql, params, message) => {
    await expect(query(sql, params)).rejects.toThrow(EngineRefusal);
    await expect(query(sql, params)).rejects.toThrow(message);
  });

  test("has the session properties of the settings", async () => {
    const { rows } = await query("show session", undefined, engines.get("set"));
    const value = (name: string) => rows.find((row) => row["Name"] === name)?.["Value"];
    expect([value("query_max_run_time"), value("distributed_sort")]).toEqual(["17m", "false"]);
  });

  test("does not tell the two moments of a repeated hour apart, so the result is refused", async () => {
    const berlin = (at: string) => `select timestamp '${at} UTC' at time zone 'Europe/Berlin' as at`;
    await expect(query(berlin("2026-10-25 00:30:00"))).rejects.toThrow("which occurs twice");
    await expect(query(berlin("2026-10-25 01:30:00"))).rejects.toThrow("which occurs twice");
    expect(await rowsOf(berlin("2026-10-25 02:00:00"))).toEqual([{ at: "2026-10-25T02:00:00Z" }]);
    expect(await rowsOf(`${berlin("2026-10-25 01:30:00").replace(" as at", "")} at time zone 'UTC' as at`)).toEqual([
      { at: "2026-10-25T01:30:00Z" },
    ]);
  });

  test("writes, and returns rows of many pages", async () => {
    await query("create table memory.default.written as select 1 as a");
    expect(await query("insert into memory.default.written values (2), (3)")).toMatchObject({ rowCount: 2 });
    expect(await rowsOf("select sum(a) as a from memory.default.written")).toEqual([{ a: 6 }]);
    await query("drop table memory.default.written");
    let rows = 0;
    const signal = new AbortController().signal;
    for await (const batch of engine.stream("select * from tpch.tiny.orders", { signal, rowsMax: 100_000 }))
      rows += batch.length;
    expect(rows).toBe(15_000);
  });

  test("ends a query that is aborted", async () => {
    const abort = new AbortController();
    const sql = "select count(*) from tpch.sf1000.lineitem a, tpch.sf1000.lineitem b where a.comment < b.comment";
    const endless = engine.query(sql, { signal: abort.signal, rowsMax: 1, timeoutMs: 2_000 });
    await expect(endless).rejects.toThrow("longer than its limit of 2 s");
    const running =
      "select count(*) as n from system.runtime.queries where state in ('RUNNING', 'QUEUED') and query like '%sf1000%lineitem b%' and query not like '%runtime%'";
    expect(await rowsOf(running)).toEqual([{ n: 0 }]);
  });
});
