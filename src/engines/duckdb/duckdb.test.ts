import { access, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { until } from "../../../test/until.ts";
import { EngineRefusal, type Engines } from "../engine.ts";
import { createEngines } from "../engines.ts";
import type { EnginesSettings } from "../settings.ts";

const never = new AbortController().signal;
const ENDLESS = "select count(*) as n from range(100000000000) as t(i) where i % 3 = 7";

let lakeDir: string;
let opened: Engines[] = [];
beforeEach(async () => {
  lakeDir = await mkdtemp(join(tmpdir(), "millrace-lake-"));
});
afterEach(async () => {
  await Promise.all(opened.map((engines) => engines.close()));
  opened = [];
  await rm(lakeDir, { recursive: true });
});

function open(settings: EnginesSettings = {}, lake: string | null = lakeDir): Engines {
  const databaseDir = lake === null ? undefined : join(lake, "databases");
  const engines = createEngines(settings, { lakeDir: lake ?? undefined, databaseDir });
  opened.push(engines);
  return engines;
}

async function rowsOf(engines: Engines, sql: string, name = "duckdb") {
  return (await engines.get(name).query(sql, { signal: never, rowsMax: 10_000 })).rows;
}

describe("the database", () => {
  test("is a file in the directory of databases, created at the first query and kept across restarts", async () => {
    const lake = join(lakeDir, "deeper");
    const first = open({}, lake);
    expect(await readdir(lakeDir)).toEqual([]);
    await rowsOf(first, "create table kept as select 1 as a");
    await first.close();
    expect(await readdir(join(lake, "databases"))).toEqual(["duckdb.duckdb"]);
    expect(await rowsOf(open({}, lake), "select a from kept")).toEqual([{ a: 1 }]);
  });

  test("is a separate file for each engine, or the file of the settings", async () => {
    const path = join(lakeDir, "elsewhere", "big.db");
    const engines = open({ small: { kind: "duckdb" }, big: { kind: "duckdb", path } });
    await rowsOf(engines, "create table a as select 1 as a", "small");
    await rowsOf(engines, "create table b as select 1 as b", "big");
    expect(await readdir(join(lakeDir, "databases"))).toContain("small.duckdb");
    await access(path);
    await expect(rowsOf(engines, "from a", "big")).rejects.toThrow(EngineRefusal);
  });

  test("is in memory without a lake directory, up to the memory limit of the settings", async () => {
    const sql = `select current_setting('memory_limit') as memory, current_setting('threads') as threads,
      current_setting('temp_directory') as spill, (select path from duckdb_databases() where not internal) as path`;
    const ours = { spill: join(tmpdir(), `millrace-duckdb-${process.pid}`), path: null };
    expect(await rowsOf(open({}, null), sql)).toMatchObject([{ ...ours, memory: "953.6 MiB" }]);
    const own = open({ duckdb: { kind: "duckdb", memoryLimit: "2GiB", threads: 1 } }, null);
    expect(await rowsOf(own, sql)).toEqual([{ ...ours, memory: "2.0 GiB", threads: 1 }]);
  });

  test("that cannot be opened is opened again at the next query", async () => {
    const lake = join(lakeDir, "lake");
    await writeFile(lake, "in the way");
    const engines = open({}, lake);
    const failure = await rowsOf(engines, "select 1 as a").catch((error: unknown) => error);
    expect(failure).toBeInstanceOf(Error);
    expect(failure).not.toBeInstanceOf(EngineRefusal);
    await rm(lake);
    expect(await rowsOf(engines, "select 1 as a")).toEqual([{ a: 1 }]);
  });

  test("never downloads an extension, even where SQL may reach everything", async () => {
    const engines = open({ duckdb: { kind: "duckdb", unrestricted: true } });
    const sql = "select current_setting('autoinstall_known_extensions') as autoinstall";
    expect(await rowsOf(engines, sql)).toEqual([{ autoinstall: false }]);
    await expect(rowsOf(engines, "from 'https://127.0.0.1:1/x.parquet'")).rejects.toThrow(/httpfs/);
  });
});

describe("a query", () => {
  test("over far more rows than the limit ends early, before the rows fill the memory", async () => {
    const sql = "select i, md5(i::varchar) as t from range(10000000000) as r(i)";
    const signal = AbortSignal.timeout(3_000);
    const answer = await open().get("duckdb").query(sql, { signal, rowsMax: 3 });
    expect(answer).toMatchObject({ rowCount: 3, truncated: true });
    expect(answer.rows.map(({ i }) => i)).toEqual([0, 1, 2]);
  });

  test("that fails after some rows fails as a whole", async () => {
    const sql = "select case when i = 9000 then error('row ' || i) else i end as i from range(9001) as r(i)";
    await expect(rowsOf(open(), sql)).rejects.toThrow("row 9000");
  });

  test("may be anything that returns rows", async () => {
    const engines = open();
    await rowsOf(engines, "create table t (a int)");
    expect(await rowsOf(engines, "show tables")).toEqual([{ name: "t" }]);
    expect(await rowsOf(engines, "pragma table_info('t')")).toMatchObject([{ name: "a", type: "INTEGER" }]);
    expect(await rowsOf(engines, "values (1); -- the end")).toEqual([{ col0: 1 }]);
    expect(await rowsOf(engines, "with x as (select 1 as a) from x /* ; */;;")).toEqual([{ a: 1 }]);
    expect(await rowsOf(engines, "explain select 1")).toHaveLength(1);
  });

  test("reads and writes files of the lake", async () => {
    const engines = open();
    const path = join(lakeDir, "part.parquet");
    expect(
      await engines
        .get("duckdb")
        .query(`copy (select i from range(5) as r(i)) to '${path}'`, { signal: never, rowsMax: 1 }),
    ).toMatchObject({ rowCount: 5 });
    expect(await rowsOf(engines, `select sum(i) as n from '${path}'`)).toEqual([{ n: 10 }]);
  });

  test("converts DuckDB's own types to JSON", async () => {
    const [row] = await rowsOf(
      open(),
      `select {'a': 1::bigint, 'b': [1.5]} as s, map {'k': 1} as m, '\\xAA'::blob as bytes, 1::union(n int, t text) as u,
        timestamp_ns '2026-01-31 01:02:03.123456789' as ns, time '01:02:03' as t, interval '2 days' as span,
        'Infinity'::double as inf, 170141183460469231731687303715884105727::hugeint as h`,
    );
    expect(row).toEqual({
      s: { a: 1, b: [1.5] },
      m: { k: 1 },
      bytes: "qg==",
      u: 1,
      ns: "2026-01-31T01:02:03.123456789",
      t: "01:02:03",
      span: "P2D",
      inf: "Infinity",
      h: "170141183460469231731687303715884105727",
    });
  });

  test("that lacks a value for its last statement does not run the first", async () => {
    const engines = open();
    await expect(rowsOf(engines, "begin; create table t (a int); commit; select $a")).rejects.toThrow("uses $a");
    await expect(rowsOf(engines, "from t")).rejects.toThrow(EngineRefusal);
  });

  test("takes parameters in each of several statements, and question marks", async () => {
    const duckdb = open().get("duckdb");
    const script = "create table t (a int); insert into t values ($a); select a + $b as c from t where a = $a";
    const named = await duckdb.query(script, { params: { a: 1, b: 2 }, signal: never, rowsMax: 1 });
    expect(named.rows).toEqual([{ c: 3 }]);
    const listed = await duckdb.query("select ? as a, ? as b", { params: ["x", null], signal: never, rowsMax: 1 });
    expect(listed.rows).toEqual([{ a: "x", b: null }]);
  });

  test("takes a list as a parameter", async () => {
    const duckdb = open().get("duckdb");
    const sql = "select i from range(5) as r(i) where i in $ids order by i";
    const found = (ids: unknown) => duckdb.query(sql, { params: { ids }, signal: never, rowsMax: 5 });
    expect((await found([3, 1])).rows).toEqual([{ i: 1 }, { i: 3 }]);
    expect((await found([])).rows).toEqual([]);
  });

  test("that ends its transaction early is refused", async () => {
    const engines = open();
    for (const end of ["commit; select 1 as a", "commit", "begin"]) {
      const refused = expect(rowsOf(engines, `create table half (a int); ${end}`)).rejects;
      await refused.toThrow(
        new EngineRefusal("Several statements are one transaction. To end it earlier, start the SQL with `begin`."),
      );
    }
    await expect(rowsOf(engines, "from half")).rejects.toThrow(EngineRefusal);
  });

  test("whose file is missing may be retried", async () => {
    const missing = await rowsOf(open(), `from '${join(lakeDir, "tomorrow.parquet")}'`).catch(
      (error: unknown) => error,
    );
    expect(missing).toBeInstanceOf(Error);
    expect(missing).not.toBeInstanceOf(EngineRefusal);
  });

  test("is interrupted while it runs, and its changes are rolled back", async () => {
    const engines = open();
    const sign = join(lakeDir, "begun.csv");
    const abort = new AbortController();
    const script = `create table t as select 1 as a; copy (select 1 as a) to '${sign}'; ${ENDLESS}`;
    const endless = engines.get("duckdb").query(script, { signal: abort.signal, rowsMax: 1 });
    endless.catch(() => {});
    await until(
      () =>
        access(sign).then(
          () => true,
          () => false,
        ),
      "the file that it writes first",
    );
    abort.abort(new Error("stop"));
    await expect(endless).rejects.toThrow("stop");
    await expect(rowsOf(engines, "from t")).rejects.toThrow(EngineRefusal);
  });
});

test("long queries on many engines leave threads of the pool free", async () => {
  const engines = open({ other: { kind: "duckdb" }, third: { kind: "duckdb" } });
  for (const name of engines.names()) await rowsOf(engines, "select 1 as a", name);
  const abort = new AbortController();
  const busy = [...engines.names(), ...engines.names()].map((name) =>
    engines
      .get(name)
      .query(ENDLESS, { signal: abort.signal, rowsMax: 1 })
      .catch((error: Error) => error.message),
  );
  await readFile("package.json");
  await readFile("package.json");
  abort.abort(new Error("enough"));
  expect(await Promise.all(busy)).toEqual(Array(6).fill("enough"));
});
