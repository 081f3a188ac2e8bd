import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { EngineRefusal, type Engines } from "../engine.ts";
import { createEngines } from "../engines.ts";
import type { EnginesSettings } from "../settings.ts";

const signal = new AbortController().signal;
let root: string;
let lakeDir: string;
let opened: Engines[] = [];

beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), "millrace-lake-"));
  lakeDir = join(root, "lake");
});
afterEach(async () => {
  await closeAll();
  await rm(root, { recursive: true });
});

function open(settings: EnginesSettings = {}, lake = lakeDir): Engines {
  const engines = createEngines(settings, { lakeDir: lake, databaseDir: join(root, "duckdb") });
  opened.push(engines);
  return engines;
}

async function closeAll() {
  await Promise.all(opened.map((engines) => engines.close()));
  opened = [];
}

async function rowsOf(engines: Engines, sql: string, name = "duckdb") {
  return (await engines.get(name).query(sql, { signal, rowsMax: 10_000 })).rows;
}

/** Writes the rows of a query to a file of a table. */
async function land(engines: Engines, file: string, sql: string, lake = lakeDir) {
  const path = join(lake, "tables", file);
  await mkdir(join(path, ".."), { recursive: true });
  await rowsOf(engines, `copy (${sql}) to '${path.replaceAll("'", "''")}' (format parquet)`);
}

test("a folder of Parquet files is a table of its name, and parts of their paths are columns of text", async () => {
  const engines = open();
  await land(engines, "sales/op_time=20251219/a.parquet", "select 1 as id, 1.5 as amount");
  await land(engines, "sales/op_time=20251219/b.parquet", "select 2 as id, 2.5 as amount");
  await land(engines, "sales/op_time=20251220/a.parquet", "select 3 as id, 4.0 as amount");
  expect(await rowsOf(engines, "select * from sales order by id")).toEqual([
    { id: 1, amount: 1.5, op_time: "20251219" },
    { id: 2, amount: 2.5, op_time: "20251219" },
    { id: 3, amount: 4, op_time: "20251220" },
  ]);
  const sum = await engines.get("duckdb").query("select sum(amount) as total from SALES where op_time = $op_time", {
    params: { op_time: "20251219" },
    signal,
    rowsMax: 1,
  });
  expect(sum.rows).toEqual([{ total: 4 }]);
});

test("every DuckDB engine sees the tables, wherever its database is", async () => {
  const engines = open({ memory: { kind: "duckdb", path: ":memory:" }, "odd\"one's": { kind: "duckdb" } });
  await land(engines, "sales/a.parquet", "select 1 as id");
  for (const name of engines.names()) expect(await rowsOf(engines, "from sales", name)).toEqual([{ id: 1 }]);
});

test("the next query sees a new table, file or column, and no longer sees a removed one", async () => {
  const engines = open();
  await expect(rowsOf(engines, "from sales")).rejects.toThrow(EngineRefusal);
  await land(engines, "sales/op_time=20251219/b.parquet", "select 1 as id");
  expect(await rowsOf(engines, "from sales")).toEqual([{ id: 1, op_time: "20251219" }]);
  await land(engines, "sales/op_time=20251219/c.parquet", "select 2 as id, 'new' as note");
  await land(engines, "sales/op_time=20251219/a.parquet", "select 0 as id");
  expect(await rowsOf(engines, "from sales order by id")).toEqual([
    { id: 0, op_time: "20251219", note: null },
    { id: 1, op_time: "20251219", note: null },
    { id: 2, op_time: "20251219", note: "new" },
  ]);
  await rm(join(lakeDir, "tables", "sales"), { recursive: true });
  await expect(rowsOf(engines, "from sales")).rejects.toThrow(/sales does not exist/);
  await land(engines, "sales/a.parquet", "select 5 as id");
  expect(await rowsOf(engines, "from sales")).toEqual([{ id: 5 }]);
});

test("a table of the database takes precedence, also one that the same SQL creates", async () => {
  const engines = open();
  await land(engines, "sales/a.parquet", "select 'lake' as source");
  expect(await rowsOf(engines, "from sales")).toEqual([{ source: "lake" }]);
  const script = "create table sales as select source || ', copied' as source from sales; from sales";
  expect(await rowsOf(engines, script)).toEqual([{ source: "lake, copied" }]);
  expect(await rowsOf(engines, "from sales")).toEqual([{ source: "lake, copied" }]);
  await rowsOf(engines, "drop table sales");
  expect(await rowsOf(engines, "from sales")).toEqual([{ source: "lake" }]);
});

test("names and paths may hold anything that a file system takes", async () => {
  const lake = join(root, 'o\'dd [1] *"lake"');
  const engines = open({}, lake);
  for (const table of [`we"ird`, "it's", "a b", "[x]", "st*r", "sta?", "größe", "select"]) {
    await land(engines, `${table}/a.parquet`, `select '${table.replaceAll("'", "''")}' as name`, lake);
    expect(await rowsOf(engines, `from "${table.replaceAll('"', '""')}"`)).toEqual([{ name: table }]);
  }
});

test("a folder that cannot be read affects only queries that use it, and they may be retried", async () => {
  const engines = open();
  await land(engines, "good/a.parquet", "select 1 as id");
  await mkdir(join(lakeDir, "tables", "empty"));
  await mkdir(join(lakeDir, "tables", "broken"));
  await writeFile(join(lakeDir, "tables", "broken", "a.parquet"), "half a file");
  await writeFile(join(lakeDir, "tables", "file"), "no folder");
  expect(await rowsOf(engines, "select id, 'empty broken file' as text from good")).toEqual([
    { id: 1, text: "empty broken file" },
  ]);
  for (const [table, why] of [
    ["empty", "No files found"],
    ["BROKEN", "too small"],
  ]) {
    const failure = await rowsOf(engines, `from ${table}`).catch((error: unknown) => error);
    expect(String(failure)).toMatch(new RegExp(`^Error: The table ${table} of the lake cannot be read\\. .*${why}`));
    expect(failure).not.toBeInstanceOf(EngineRefusal);
  }
  await expect(rowsOf(engines, "from file")).rejects.toThrow(EngineRefusal);
  await land(engines, "empty/a.parquet", "select 2 as id");
  expect(await rowsOf(engines, "from empty")).toEqual([{ id: 2 }]);
});

test("folders that begin with a dot or an underscore are not tables", async () => {
  const engines = open();
  await land(engines, "_temporary/a.parquet", "select 1 as id");
  await land(engines, ".staging/a.parquet", "select 1 as id");
  await expect(rowsOf(engines, "from _temporary")).rejects.toThrow(EngineRefusal);
  await expect(rowsOf(engines, 'from "../.staging"')).rejects.toThrow(EngineRefusal);
});

test("views and macros of the database use tables of the lake, after a restart too", async () => {
  const first = open();
  await land(first, "sales/a.parquet", "select 2 as amount");
  await land(first, "costs/a.parquet", "select 3 as amount");
  await rowsOf(first, "create view doubled as select amount * 2 as amount from sales");
  await rowsOf(first, "create macro spent() as table select sum(amount) as amount from costs");
  await closeAll();
  const second = open();
  expect(await rowsOf(second, "from doubled")).toEqual([{ amount: 4 }]);
  expect(await rowsOf(second, "from spent()")).toEqual([{ amount: 3 }]);
  await rm(join(lakeDir, "tables", "sales"), { recursive: true });
  await expect(rowsOf(second, "from doubled")).rejects.toThrow(/sales does not exist/);
  await land(second, "sales/a.parquet", "select 5 as amount");
  expect(await rowsOf(second, "from doubled")).toEqual([{ amount: 10 }]);
});

test("concurrent queries on a new table all find it", async () => {
  const engines = open();
  await land(engines, "first/a.parquet", "select 1 as id");
  await land(engines, "second/a.parquet", "select 2 as id");
  const both = "select first.id + second.id as sum from first, second";
  const found = await Promise.all(Array.from({ length: 8 }, () => rowsOf(engines, both)));
  expect(found).toEqual(Array.from({ length: 8 }, () => [{ sum: 3 }]));
});
