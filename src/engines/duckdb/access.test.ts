/** What SQL on DuckDB can reach. Each refusal is tried against a real database, and the others are asked afterwards. */
import { once } from "node:events";
import { chmod, mkdir, mkdtemp, readdir, rm, stat, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, onTestFinished, test } from "vitest";
import { EngineRefusal, type Engines } from "../engine.ts";
import { createEngines } from "../engines.ts";
import type { DuckDbSettings } from "../settings.ts";

let folder: string;
let lakeDir: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "millrace-access-"));
  lakeDir = join(folder, "lake");
  await mkdir(join(folder, "exports"));
  await mkdir(lakeDir);
  await writeFile(join(folder, "secret.key"), "a key");
});
afterEach(() => rm(folder, { recursive: true }));

function open(settings: Partial<DuckDbSettings> = {}): Engines {
  const databaseDir = join(folder, "duckdb");
  const engines = createEngines({ duckdb: { kind: "duckdb", ...settings } }, { lakeDir, databaseDir });
  onTestFinished(() => engines.close());
  return engines;
}

async function rowsOf(engines: Engines, sql: string) {
  return (await engines.get("duckdb").query(sql, { signal: new AbortController().signal, rowsMax: 100 })).rows;
}

describe("by default SQL", () => {
  test("reads, writes and attaches files of the lake", async () => {
    const engines = open();
    await rowsOf(engines, `copy (select 7 as a) to '${join(lakeDir, "out.parquet")}'`);
    expect(await rowsOf(engines, `from '${join(lakeDir, "out.parquet")}'`)).toEqual([{ a: 7 }]);
    await rowsOf(engines, `attach '${join(lakeDir, "other.duckdb")}' as other; create table other.t as select 1 as a`);
    expect(await rowsOf(engines, "from other.t")).toEqual([{ a: 1 }]);
    await rowsOf(engines, "detach other");
  });

  test.each([
    ["reads a file", () => `from read_text('${join(folder, "secret.key")}')`],
    ["reads a file by a path through the lake", () => `from read_text('${lakeDir}/../secret.key')`],
    ["reads a file of the system", () => "from read_csv('/etc/passwd')"],
    ["reads the environment of the process", () => "from read_blob('/proc/self/environ')"],
    ["lists files", () => `from glob('${folder}/*')`],
    ["writes a file", () => `copy (select 1 as a) to '${join(folder, "exports", "a.csv")}'`],
    ["writes a file whose path begins like that of the lake", () => `copy (select 1 as a) to '${lakeDir}side.csv'`],
    ["attaches a database", () => `attach '${join(folder, "exports", "a.duckdb")}' as a`],
    ["exports the database", () => `export database '${join(folder, "exports", "all")}'`],
  ])("is refused when it %s elsewhere, with the directories that are allowed", async (_, sql) => {
    const engines = open();
    const refused = expect(rowsOf(engines, sql())).rejects;
    await refused.toThrow(EngineRefusal);
    await expect(rowsOf(engines, sql())).rejects.toThrow(
      `disabled by configuration. SQL may use only files in ${lakeDir}; \`directories\` of the engine in millrace.yaml names more.`,
    );
    expect(await readdir(join(folder, "exports"))).toEqual([]);
  });

  test.each([
    "install httpfs",
    "install httpfs from 'ADDRESS'",
    "force install spatial from community",
    "load httpfs",
    "load json",
    "from read_csv('ADDRESS/a.csv')",
    "from read_parquet('ADDRESS/a.parquet')",
  ])("loads no extension and calls no address: %s", async (sql) => {
    const called: string[] = [];
    const server = createServer((request, response) => {
      called.push(String(request.url));
      response.end();
    }).listen(0, "127.0.0.1");
    onTestFinished(() => void server.close());
    await once(server, "listening");
    const { port } = server.address() as AddressInfo;
    await expect(rowsOf(open(), sql.replace("ADDRESS", `http://127.0.0.1:${port}`))).rejects.toThrow(EngineRefusal);
    expect(called).toEqual([]);
  });

  test.each([
    "set enable_external_access = true",
    "set memory_limit = '100GB'",
    "set global threads = 1",
    "reset memory_limit",
    "pragma memory_limit = '100GB'",
    "set lock_configuration = false",
    "set allowed_directories = ['/']",
    "set temp_directory = '/tmp/elsewhere'",
    "pragma disable_checkpoint_on_shutdown",
    "pragma enable_verification",
    "call enable_logging(storage_path = '/nowhere')",
    "from enable_logging()",
    'select * from system.main."ENABLE_LOGGING" /* hidden */ ()',
    "from query('from enable_' || 'logging()')",
    "from \"QUERY\" -- a comment\r ('from enable_' || 'logging()')",
    "from query\u200b('from enable_' || 'logging()')",
    "from query/* , */\u2060('from enable_' || 'logging()')",
    "from query_table('t')",
    "from json_execute_serialized_sql(json_serialize_sql('select 1'))",
    "call enable_profiling(format = 'json')",
    "import database 'LAKE'",
    "pragma import_database('LAKE')",
    "from query€$$('select 1') t€$$",
    "select 1 as €$$, * from query('select * from ena'||'ble_logging()') t€$$",
    'detach "lake/tables"',
    "attach ':memory:' as o; use o; detach duckdb",
    "begin; attach ':memory:' as o; use o; commit; detach \"DuckDB\"",
    'select 1; detach database if exists "LAKE/TABLES"',
  ])("changes nothing for the others: %s", async (sql) => {
    const engines = open();
    await rowsOf(engines, "create table t as select 1 as a");
    const state = "select name, value from duckdb_settings() order by name";
    const before = await rowsOf(engines, state);
    await expect(rowsOf(engines, sql.replace("'LAKE'", `'${lakeDir}'`))).rejects.toThrow(EngineRefusal);
    expect(await rowsOf(engines, state)).toEqual(before);
    expect(await rowsOf(engines, "from t")).toEqual([{ a: 1 }]);
  });

  test("cannot write over the database or its log, whatever its path", async () => {
    const engines = open();
    await rowsOf(engines, "create table t as select 1 as a");
    for (const name of ["duckdb.duckdb", "duckdb.duckdb.wal"]) {
      for (const option of ["format csv", "format csv, use_tmp_file false", "format csv, USE_TMP_FILE false"]) {
        const path = join(folder, "duckdb", name);
        await expect(rowsOf(engines, `copy (select 1 as a) to '${path}' (${option})`)).rejects.toThrow(EngineRefusal);
      }
    }
    await engines.close();
    expect(await rowsOf(open(), "from t")).toEqual([{ a: 1 }]);
  });

  test.each(["drop view orders", 'create or replace view "lake/tables".main.orders as select 8 as a'])(
    "does not change the lake's tables for the next query: %s",
    async (sql) => {
      const engines = open();
      await mkdir(join(lakeDir, "tables", "orders"), { recursive: true });
      await rowsOf(engines, `copy (select 7 as a) to '${join(lakeDir, "tables", "orders", "a.parquet")}'`);
      expect(await rowsOf(engines, "from orders")).toEqual([{ a: 7 }]);
      await rowsOf(engines, sql);
      expect(await rowsOf(engines, "from orders")).toEqual([{ a: 7 }]);
    },
  );

  test("may use a refused name for a column, and settings of its own query", async () => {
    const engines = open();
    expect(await rowsOf(engines, "select query from (select 1 as query)")).toEqual([{ query: 1 }]);
    expect(await rowsOf(engines, "select 'from query(1)' as a -- query(2)")).toEqual([{ a: "from query(1)" }]);
    expect(await rowsOf(engines, "set variable x = 2; select getvariable('x') as x")).toEqual([{ x: 2 }]);
    await rowsOf(engines, "create schema s; create table s.t as select 3 as a");
    expect(await rowsOf(engines, "use s; from t")).toEqual([{ a: 3 }]);
  });
});

test("with `directories` SQL uses the files there, and still no others", async () => {
  const engines = open({ directories: [join(folder, "exports")] });
  await rowsOf(engines, `copy (select 1 as a) to '${join(folder, "exports", "a.csv")}'`);
  expect(await rowsOf(engines, `from '${join(folder, "exports", "a.csv")}'`)).toEqual([{ a: 1 }]);
  await expect(rowsOf(engines, `from read_text('${join(folder, "secret.key")}')`)).rejects.toThrow(EngineRefusal);
});

test("`directories` that are no directories are named", async () => {
  const engines = open({ directories: [join(folder, "secret.key")] });
  await expect(rowsOf(engines, "select 1")).rejects.toThrow(`${join(folder, "secret.key")}, which is not a directory`);
});

test("a database that an earlier version kept in the lake is moved, with its log", async () => {
  await rm(join(folder, "duckdb"), { recursive: true, force: true });
  const earlier = createEngines({ duckdb: { kind: "duckdb", path: join(lakeDir, "duckdb.duckdb") } }, { lakeDir });
  await rowsOf(earlier, "create table kept as select 5 as a");
  await earlier.close();
  await writeFile(join(lakeDir, "duckdb.duckdb.wal"), "");
  expect(await rowsOf(open(), "from kept")).toEqual([{ a: 5 }]);
  expect(await readdir(lakeDir)).toEqual([]);
});

test("with `unrestricted` SQL uses every file and setting", async () => {
  const engines = open({ unrestricted: true });
  expect(await rowsOf(engines, `select content from read_text('${join(folder, "secret.key")}')`)).toEqual([
    { content: "a key" },
  ]);
  expect(await rowsOf(engines, "set threads = 1; select current_setting('threads') as n")).toEqual([{ n: 1 }]);
  expect(await rowsOf(engines, "from query('select 4 as a')")).toEqual([{ a: 4 }]);
});

test("the lake and the database are closed to other users, also where an earlier version left them open", async () => {
  const path = join(folder, "duckdb", "duckdb.duckdb");
  await chmod(lakeDir, 0o755);
  const modes = async () => [await stat(lakeDir), await stat(path)].map(({ mode }) => (mode & 0o777).toString(8));
  const first = open();
  await rowsOf(first, "create table t as select 1 as a");
  expect(await modes()).toEqual(["700", "600"]);
  await first.close();
  await chmod(lakeDir, 0o755);
  await chmod(path, 0o644);
  const second = open();
  await rowsOf(second, "from t");
  expect(await modes()).toEqual(["700", "600"]);
  await second.close();
  await chmod(lakeDir, 0o770); // Shared with a group on purpose.
  await rowsOf(open(), "from t");
  expect(await modes()).toEqual(["770", "600"]);
});
