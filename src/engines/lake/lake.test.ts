/** Partitions that a module replaces while others read them. */
import { mkdtemp, readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import type { Engines } from "../engine.ts";
import { createEngines } from "../engines.ts";
import { type Lake, openLake } from "./lake.ts";

const signal = new AbortController().signal;
let lake: Lake;
let engines: Engines;

beforeEach(async () => {
  lake = openLake(await mkdtemp(join(tmpdir(), "millrace-lake-")));
  engines = createEngines({}, { lakeDir: lake.dir });
});
afterEach(async () => {
  await engines.close();
  await rm(lake.dir, { recursive: true });
});

const PLACE = { table: "works", opTime: "20260801", owner: "crossref.works" };
const partition = (place: Partial<typeof PLACE> = {}) => lake.partition({ ...PLACE, ...place });

async function query<Row>(sql: string): Promise<Row[]> {
  return (await engines.get("duckdb").query(sql, { signal, rowsMax: 10_000 })).rows as Row[];
}

const fileOf = (name: string, place: Partial<typeof PLACE> = {}) => {
  const { table, opTime } = { ...PLACE, ...place };
  return join(lake.dir, "tables", table, `op_time=${opTime}`, name);
};

/** As `write` does, with any SQL. */
async function stage(version: string, sql: string, place: Partial<typeof PLACE> = {}, by = engines): Promise<void> {
  const writer = await partition(place).write(version, { columns: [{ name: "any", type: "string" }], tag: "" });
  writer.abort();
  await by
    .get("duckdb")
    .query(`copy (${sql}) to '${fileOf(`.staged-${version}`, place)}' (format parquet, row_group_size 2048)`, {
      signal,
      rowsMax: 1,
    });
}

async function land(version: string, sql: string, place: Partial<typeof PLACE> = {}): Promise<void> {
  await stage(version, sql, place);
  await partition(place).replace(version);
}

const filesOf = (opTime = PLACE.opTime) => readdir(join(lake.dir, "tables", PLACE.table, `op_time=${opTime}`));

test("a staged file is in no table, and one in place replaces the version before it", async () => {
  await land("9", "select 1 as id");
  expect(await query("select * from works")).toEqual([{ id: 1, op_time: "20260801" }]);
  await stage("10", "select 2 as id");
  expect(await query("select * from works")).toEqual([{ id: 1, op_time: "20260801" }]);
  await partition().replace("10");
  expect(await query("select * from works")).toEqual([{ id: 2, op_time: "20260801" }]);
  expect(await filesOf()).toEqual(["crossref.works.v0000000000000000010.parquet"]);
  await partition().replace("10");
  expect(await query("select * from works")).toEqual([{ id: 2, op_time: "20260801" }]);
});

test("rows are written with their types, and the file has a tag", async () => {
  expect(await partition().tag()).toBeUndefined();
  const columns = [
    { name: "title", type: "string" },
    { name: "count", type: "integer" },
    { name: "score", type: "number" },
    { name: "open", type: "boolean" },
    { name: "issued", type: "date" },
    { name: "indexed", type: "timestamp" },
    { name: "data", type: "json" },
  ] as const;
  const writer = await partition().write("1", { columns, tag: "abc's" });
  await writer.append([
    ["a", 1, 1.5, true, "2026-08-20", new Date("2026-08-20T10:00:00.123Z"), '{"a": [1]}'],
    columns.map(() => null),
  ]);
  await writer.append([["b", 2n ** 62n, 0, false, "0001-01-01", new Date("1969-12-31T23:59:59Z"), "null"]]);
  await writer.finish();
  await partition().replace("1");
  expect(await query("select * exclude op_time from works order by title")).toEqual([
    {
      title: "a",
      count: 1,
      score: 1.5,
      open: true,
      issued: "2026-08-20",
      indexed: "2026-08-20T10:00:00.123Z",
      data: { a: [1] },
    },
    {
      title: "b",
      count: "4611686018427387904",
      score: 0,
      open: false,
      issued: "0001-01-01",
      indexed: "1969-12-31T23:59:59Z",
      data: null,
    },
    { title: null, count: null, score: null, open: null, issued: null, indexed: null, data: null },
  ]);
  expect(await query("select data.a[0]::int as first from works where title = 'a'")).toEqual([{ first: 1 }]);
  expect(await partition().tag()).toBe("abc's");
});

test("more rows than one vector are written, and none at all", async () => {
  const columns = [{ name: "id", type: "integer" }] as const;
  const many = await partition().write("1", { columns, tag: "" });
  await many.append(Array.from({ length: 5_000 }, (_, id) => [id]));
  await many.finish();
  await partition().replace("1");
  expect(await query("select count(*) as rows, sum(id) as sum from works")).toEqual([{ rows: 5_000, sum: 12_497_500 }]);
  const none = await partition().write("2", { columns, tag: "" });
  await none.finish();
  await partition().replace("2");
  expect(await query("select count(*) as rows, max(id) as last from works")).toEqual([{ rows: 0, last: null }]);
});

test("other partitions, and the files of other owners, stay as they are", async () => {
  await land("1", "select 1 as id");
  await land("2", "select 2 as id", { opTime: "20260802" });
  await land("3", "select 3 as id", { owner: "arxiv.works" });
  await land("4", "select 4 as id");
  expect(await query("select id, op_time from works order by id")).toEqual([
    { id: 2, op_time: "20260802" },
    { id: 3, op_time: "20260801" },
    { id: 4, op_time: "20260801" },
  ]);
});

test("a process that lost its lease cannot bring its older version back", async () => {
  await land("7", "select 7 as id");
  await land("6", "select 6 as id");
  expect(await query("select id from works")).toEqual([{ id: 7 }]);
});

test("what a killed process left behind is neither read nor kept", async () => {
  await stage("1", "select 1 as id");
  await land("2", "select 2 as id");
  // Killed after the new file was in place, before the earlier one was removed.
  await query(`copy (select 3 as id) to '${fileOf("crossref.works.v0000000000000000003.parquet")}'`);
  expect(await query("select id from works")).toEqual([{ id: 2 }]);
  await partition().replace("3");
  expect(await query("select id from works")).toEqual([{ id: 3 }]);
  expect(await filesOf()).toEqual(["crossref.works.v0000000000000000003.parquet"]);
});

test("a new column appears with the partition that has it", async () => {
  await land("1", "select 1 as id");
  expect(await query("select * from works")).toEqual([{ id: 1, op_time: "20260801" }]);
  await land("2", "select 2 as id, 'a' as title", { opTime: "20260802" });
  expect(await query("select id, title from works order by id")).toEqual([
    { id: 1, title: null },
    { id: 2, title: "a" },
  ]);
});

test("queries see one whole version while the partition is replaced again and again", async () => {
  const rowsOf = (version: number) => 20_000 + (version % 5) * 10_000;
  const sqlOf = (version: number) =>
    `select ${version} as version, ${rowsOf(version)} as expected, hash(range)::text as filler from range(${rowsOf(version)})`;
  await land("1", sqlOf(1));
  let version = 1;
  const reading = new AbortController();
  const writer = (async () => {
    const other = createEngines({}, { lakeDir: lake.dir });
    while (!reading.signal.aborted) {
      version += 1;
      await stage(String(version), sqlOf(version), {}, other);
      await partition().replace(String(version));
    }
    await other.close();
  })();
  const seen: unknown[] = [];
  const reader = async () => {
    for (let times = 0; times < 20; times += 1) {
      const [row] = await query<{ rows: number; expected: number; first: number; last: number }>(
        `select count(*) as rows, any_value(expected) as expected, min(version) as first, max(version) as last,
                sum(length(filler)) as size from works`,
      );
      if (row?.first !== row?.last || row?.rows !== row?.expected) seen.push(row);
    }
  };
  try {
    await Promise.all(Array.from({ length: 6 }, reader));
  } finally {
    reading.abort();
    await writer;
  }
  expect(version).toBeGreaterThan(10);
  expect(seen).toEqual([]);
}, 60_000);

test("a file that is really missing fails the query, and one that is no Parquet says so", async () => {
  await land("1", "select 1 as id");
  await query("select id from works");
  await expect(query(`from '${join(lake.dir, "nowhere.parquet")}'`)).rejects.toThrow(/No files found/);
  await writeFile(fileOf("broken.parquet"), "no Parquet");
  await partition().replace("1");
  await writeFile(join(lake.dir, "tables", "works", ".landed"), "changed");
  await expect(query("select id from works")).rejects.toThrow(/works/);
});
