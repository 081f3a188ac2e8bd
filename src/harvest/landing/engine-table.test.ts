/** Landing in a table of a Postgres engine: replaced whole in one transaction there, and announced after that. */
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { useDatabase } from "../../../test/database.ts";
import { createEngines } from "../../engines/engines.ts";
import type { OutputField } from "../definition/policy.ts";
import { landingLease, landingPlans } from "../store/records/landing.ts";
import { type Announcement, type Settled, settle } from "./settle.ts";
import { FIELDS, makeSource, type TestSource } from "./windows.fixture.ts";
import { type LandingItem, writeWindow } from "./write-window.ts";

const database = useDatabase();
const warehouse = useDatabase();
const signal = new AbortController().signal;
let engines: ReturnType<typeof createEngines>;
let source: TestSource;
let announced: Announcement[] = [];

beforeEach(async () => {
  engines = createEngines({ warehouse: { kind: "postgres", url: warehouse.url } }, { lakeDir: undefined });
  source = await makeSource(database, { table: "Crossref_Works", engine: "warehouse" });
  announced = [];
});
afterEach(async () => {
  await engines.close();
  await database.query("delete from harvest.landing");
  await warehouse.query("drop table if exists crossref_works, millrace_landed");
});

const settleDeps = {
  db: database.db,
  arrivals: { announceIn: async (_tx: unknown, given: readonly Announcement[]) => void announced.push(...given) },
  listeners: [],
  random: () => 0,
};
beforeEach(() => void Object.assign(settleDeps, { db: database.db }));

async function claim(): Promise<LandingItem> {
  const [claimed] = await landingLease.claim(database.db, { limit: 1, holder: "1" });
  const plan = claimed && (await landingPlans(database.db, [claimed.plan_id])).get(claimed.plan_id);
  if (!plan) throw new Error("nothing wants to land");
  return { ...claimed, plan };
}
const write = (item: LandingItem) =>
  writeWindow({ db: database.db, lake: undefined, tables: engines.tables }, item, signal);
/** Lands what waits, as the worker does. */
async function land(): Promise<Settled> {
  return settle(settleDeps, await write(await claim()));
}
const table = () =>
  warehouse.query(
    "select op_time, _key as key, title, cited::int, _version as version, _deleted as deleted from crossref_works order by 1, 2",
  );
const titleOf = (title: string, type: OutputField["type"] = "string"): OutputField[] => [
  ...FIELDS,
  { name: title, path: `$.${title}`, type, required: false },
];

test("a window becomes rows with the output fields, the whole record and its key, and the table arrives", async () => {
  await source.harvest([
    { key: "a", title: 'It\'s "A" \\ {x,NULL}', cited: 7 },
    { key: "b", title: "B", deleted: true },
  ]);
  expect(await land()).toBe("landed");
  expect(await table()).toEqual([
    { op_time: "20260801", key: "a", title: 'It\'s "A" \\ {x,NULL}', cited: 7, version: "1", deleted: false },
    { op_time: "20260801", key: "b", title: "B", cited: null, version: "1", deleted: true },
  ]);
  expect(await warehouse.query("select data -> 'title' ->> 0 as title from crossref_works where _key = 'b'")).toEqual([
    { title: "B" },
  ]);
  expect(announced).toEqual([{ table: "Crossref_Works", opTime: "20260801", idempotencyKey: null, by: "harvest" }]);
  expect(await source.landing()).toMatchObject({ status: "LANDED", rows: 2 });
  expect(await warehouse.query("select table_name, op_time, rows::int from millrace_landed")).toEqual([
    { table_name: "crossref_works", op_time: "20260801", rows: 2 },
  ]);
});

test("a partition is replaced whole, and readers see the earlier rows until then", async () => {
  await source.harvest([
    { key: "a", title: "A" },
    { key: "b", title: "B" },
  ]);
  await source.harvest([{ key: "z", title: "Z" }], 2);
  expect([await land(), await land()]).toEqual(["landed", "landed"]);
  await source.harvest([{ key: "b", title: "B2" }]);
  const written = await write(await claim());
  expect(await table()).toMatchObject([{ title: "A" }, { title: "B" }, { title: "Z" }]);
  expect(announced).toHaveLength(2);
  expect(await settle(settleDeps, written)).toBe("landed");
  expect(await table()).toMatchObject([{ title: "A" }, { title: "B2" }, { op_time: "20260802", title: "Z" }]);
});

test("a failure while rows are written leaves the earlier partition as it was", async () => {
  await source.harvest([{ key: "a", title: "A" }]);
  await land();
  await warehouse.query("alter table crossref_works add constraint no_c check (title <> 'C')");
  await source.harvest([
    { key: "b", title: "B" },
    { key: "c", title: "C" },
  ]);
  const item = await claim();
  await expect(write(item)).rejects.toThrow(/violates check constraint "no_c"/);
  expect(await table()).toMatchObject([{ title: "A" }]);
  expect(
    await warehouse.query("select from pg_stat_activity where state like 'idle in%' and datname = current_database()"),
  ).toEqual([]);
});

describe("a process that is lost", () => {
  test("after the engine has committed is followed by one that finds the rows and announces them", async () => {
    await source.harvest([{ key: "a", title: "A" }]);
    const item = await claim();
    const written = await write(item);
    await written.partition.replace(item.fence); // And is killed before it commits here.
    expect(announced).toEqual([]);
    await landingLease.lose(database.db, [item], 5);
    const again = await write(await claim());
    expect(again.isInPlace).toBe(true);
    expect(await settle(settleDeps, again)).toBe("landed");
    expect(announced).toHaveLength(1);
    expect(await table()).toHaveLength(1);
  });

  test("before that has changed nothing, and the next one does it", async () => {
    await source.harvest([{ key: "a", title: "A" }]);
    const item = await claim();
    await write(item);
    await engines.close(); // Its connections end with it.
    engines = createEngines({ warehouse: { kind: "postgres", url: warehouse.url } }, { lakeDir: undefined });
    expect(await table()).toEqual([]);
    await landingLease.lose(database.db, [item], 5);
    expect(await land()).toBe("landed");
    expect(await table()).toHaveLength(1);
  });

  test("and comes back cannot replace what its successor has written", async () => {
    await source.harvest([{ key: "a", title: "A" }]);
    const late = await claim();
    await landingLease.lose(database.db, [late], 5);
    await source.harvest([{ key: "a", title: "A2" }]);
    expect(await land()).toBe("landed");
    await database.query("update harvest.landing set content_hash = null");
    await warehouse.query("update millrace_landed set tag = 'other'"); // So that it writes at all.
    await expect(write(late)).rejects.toThrow("A later version of crossref_works 20260801 is in place.");
    expect(await table()).toMatchObject([{ title: "A2" }]);
  });
});

test("a window that comes again with the same content writes and announces nothing", async () => {
  const { sliceId: _, ...slice } = await source.harvest([{ key: "a", title: "A" }]);
  await land();
  await source.harvest([{ key: "a", title: "A" }]);
  const before = await warehouse.query("select xmin::text from crossref_works");
  expect(await land()).toBe("unchanged");
  expect(await warehouse.query("select xmin::text from crossref_works")).toEqual(before);
  expect(announced).toHaveLength(1);
  expect(slice.planId).not.toBe("");
});

describe("the columns", () => {
  test("that a definition adds are added, and earlier partitions have none of them", async () => {
    await source.harvest([{ key: "a", title: "A" }]);
    await land();
    await source.harvest([{ key: "b", title: "B" }], 2, titleOf("counts", "json"));
    expect(await land()).toBe("landed");
    expect(await warehouse.query("select _key as key, counts is null as none from crossref_works order by 1")).toEqual([
      { key: "a", none: true },
      { key: "b", none: false },
    ]);
  });

  test("whose type a definition changes are refused with a sentence, and nothing is changed", async () => {
    await source.harvest([{ key: "a", title: "A" }], 1, titleOf("year"));
    await land();
    await source.harvest([{ key: "b", title: "B" }], 2, titleOf("year", "integer"));
    await expect(write(await claim())).rejects.toThrow(
      "The column `year` of the table `crossref_works` is `text`, and the definition says `integer`, which is `bigint`. Name the field differently, or change the column: alter table",
    );
    expect(await warehouse.query("select from crossref_works")).toHaveLength(1);
  });

  test("of a table that is not Millrace's are left alone", async () => {
    await warehouse.query("create table crossref_works (op_time text, title text)");
    await source.harvest([{ key: "a", title: "A" }]);
    await expect(write(await claim())).rejects.toThrow(
      "The table `crossref_works` was not made by Millrace: it has no column `_key`.",
    );
  });
});

test("an engine that is no Postgres, or does not exist, is refused", () => {
  expect(() => engines.tables.of("duckdb")).toThrow(
    "The engine `duckdb` is of kind duckdb. Tables are written in engines of kind postgres, or in the lake. Of kind postgres: warehouse.",
  );
  expect(() => engines.tables.of("warehous")).toThrow("There is no engine `warehous`. Did you mean `warehouse`?");
});

test("a window that was written and cannot be settled leaves its partition free for the next attempt", async () => {
  await source.harvest([{ key: "a", title: "A" }]);
  const written = await write(await claim());
  const tx = () => Promise.reject(new Error("the database is away"));
  await expect(settle({ ...settleDeps, db: { ...database.db, tx } }, written)).rejects.toThrow("is away");
  await expect(written.partition.replace(written.item.fence)).rejects.toThrow("is not written");
});
