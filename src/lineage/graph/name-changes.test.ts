import { beforeEach, describe, expect, onTestFinished, test } from "vitest";
import { useDatabase } from "../../../test/database.ts";
import { signal } from "../../../test/until.ts";
import { type Db, openDb } from "../../kernel/data/db.ts";
import {
  columnLineageFacet,
  dataset,
  gravitinoEvent,
  gravitinoFacet,
  type Json,
  lifecycleFacet,
  runEvent,
  schemaFacet,
  symlinksFacet,
} from "../events.fixture.ts";
import { testLineage } from "../lineage.fixture.ts";
import { sourceOf } from "./stories.fixture.ts";

const database = useDatabase();
const lineage = testLineage(database);
let tenant: string;

beforeEach(async () => {
  tenant = await lineage.tenant();
});

const HIVE = "gravitino://tenant/7/lake/hive";
const at = (second: number, event: Json): Json => ({
  ...event,
  eventTime: new Date(Date.parse("2026-03-01T10:00:00Z") + second * 1_000).toISOString(),
});
const send = async (...events: Json[]) => {
  for (const event of events) await lineage.send(tenant, event, { source: sourceOf(event) });
};
const create = (name: string, ...columns: string[]) =>
  gravitinoEvent("create_table", { name: `dw.${name}`, facets: schemaFacet(columns) });
const rename = (name: string, newName: string) =>
  gravitinoEvent("alter_table", {
    name: `dw.${name}`,
    facets: gravitinoFacet({ changes: [{ type: "RENAME_TABLE", newName }] }),
  });
const drop = (name: string) => gravitinoEvent("drop_table", { name: `dw.${name}`, facets: lifecycleFacet("DROP") });
const reads = (job: string, ...tables: string[]) =>
  runEvent({ jobName: job, inputs: tables.map((name) => dataset(HIVE, `dw.${name}`)) });
const columns = async (of = tenant) =>
  Object.keys((await lineage.graph(of)).nodes)
    .filter((name) => name.startsWith("COLUMN gravitino/hive/dw/"))
    .map((name) => name.slice("COLUMN gravitino/hive/dw/".length));
const readers = async () =>
  (await lineage.graph(tenant)).edges
    .filter((edge) => edge.includes(" INPUT_OF "))
    .map((edge) => edge.replace(/^TABLE \w+\/\w+\/\w*\/(.*) INPUT_OF JOB spark\/(.*)$/, "$2 reads $1"));

describe("a drop that arrives late", () => {
  test("takes what was told before it, and leaves what was told after it", async () => {
    await send(at(1, create("orders", "old")), at(3, create("orders", "new")));
    expect(await columns()).toEqual(["orders/new", "orders/old"]);
    await send(at(2, drop("orders")));
    expect(await columns()).toEqual(["orders/new"]);
  });

  test("takes what is told after it of a time before it", async () => {
    await send(at(2, drop("orders")), at(1, create("orders", "old")), at(1, reads("job", "orders")));
    expect(await columns()).toEqual([]);
    expect(await readers()).toEqual([]);
  });

  test("of a schema does so with all tables in it", async () => {
    await send(at(1, create("a", "x")), at(1, create("b", "x")), at(3, create("b", "y")));
    await send(at(2, gravitinoEvent("drop_schema", { name: "dw", facets: lifecycleFacet("DROP") })));
    expect(await columns()).toEqual(["b/y"]);
  });
});

describe("a rename that arrives late", () => {
  test("gives each of the two tables what was told of it", async () => {
    await send(at(1, create("a", "first")), at(1, reads("early", "a")));
    await send(at(3, create("a", "second")), at(3, reads("late", "a")));
    await send(at(2, rename("a", "b")));
    expect(await columns()).toEqual(["a/second", "b/first"]);
    expect((await readers()).sort()).toEqual(["early reads b", "late reads a"]);
  });

  test("does so when both were told in the same words", async () => {
    await send(at(1, create("a", "x")), at(3, create("a", "x")), at(2, rename("a", "b")));
    expect(await columns()).toEqual(["a/x", "b/x"]);
  });

  test("is followed over several names", async () => {
    await send(at(3, rename("b", "c")), at(1, create("a", "x")), at(2, rename("a", "b")));
    expect(await columns()).toEqual(["c/x"]);
  });

  test("that an engine tells of is one too", async () => {
    const moved = dataset(HIVE, "dw.b", lifecycleFacet("RENAME", { namespace: HIVE, name: "dw.a" }));
    await send(at(2, runEvent({ outputs: [moved] })), at(1, create("a", "x")));
    expect(await columns()).toEqual(["b/x"]);
  });
});

describe("of two new names that are told for one moment", () => {
  const [toX, toY] = [at(2, rename("orders", "x")), at(2, rename("orders", "y"))];
  const column = (...names: string[]) =>
    gravitinoEvent("alter_table", {
      name: "dw.orders",
      facets: gravitinoFacet({
        changes: names.map((newColumnName) => ({ type: "RENAME_COLUMN", oldColumnName: "a", newColumnName })),
      }),
    });

  test.each([
    ["the first in order came first", [toX, toY]],
    ["it came second", [toY, toX]],
  ])("the first in order holds: %s", async (_, renames) => {
    await send(at(1, create("orders", "a")), ...renames);
    expect(await columns()).toEqual(["x/a"]);
  });

  test("it holds when both come together", async () => {
    await send(at(1, create("orders", "a")));
    await Promise.all([toY, toX].map((event) => send(event)));
    expect(await columns()).toEqual(["x/a"]);
  });

  test("it holds when one event tells both, and what the column was goes along", async () => {
    await send(at(1, create("orders", "a")), at(2, column("z", "b")));
    const { nodes } = await lineage.graph(tenant);
    expect(nodes["COLUMN gravitino/hive/dw/orders/b"]).toMatchObject({ dataType: "string" });
    expect(nodes["COLUMN gravitino/hive/dw/orders/z"]).toEqual({});
  });
});

describe("a table that is renamed together with its columns", () => {
  const alter = (...changes: Json[]) =>
    gravitinoEvent("alter_table", { name: "dw.a", facets: gravitinoFacet({ changes }) });
  const renamed = { type: "RENAME_TABLE", newName: "b" };
  const x = { type: "RENAME_COLUMN", oldColumnName: "x", newColumnName: "z" };
  const columnId = async (name: string) =>
    (
      await database.query("select id from lineage.node where tenant_id = $1 and kind = 'COLUMN' and name = $2", [
        tenant,
        name,
      ])
    )[0];

  test("keeps them under their new names", async () => {
    await send(at(1, create("a", "x", "y")));
    const id = await columnId("x");
    await send(at(2, alter(x, renamed)));
    expect(await columns()).toEqual(["b/y", "b/z"]);
    expect(await columnId("z")).toEqual(id);
    expect((await lineage.graph(tenant)).nodes["COLUMN gravitino/hive/dw/b/z"]).toMatchObject({ dataType: "string" });
    expect(await lineage.flaws(tenant)).toEqual([]);
  });

  test("keeps them when that is told first", async () => {
    await send(at(2, alter(x, renamed)), at(1, create("a", "x", "y")));
    expect(await columns()).toEqual(["b/y", "b/z"]);
    expect((await lineage.graph(tenant)).nodes["COLUMN gravitino/hive/dw/b/z"]).toMatchObject({ dataType: "string" });
  });

  test("loses those that are deleted", async () => {
    await send(at(1, create("a", "x", "y")), at(2, alter({ type: "DELETE_COLUMN", columnName: "x" }, renamed)));
    expect(await columns()).toEqual(["b/y"]);
    const other = await lineage.tenant();
    for (const event of [
      at(2, alter({ type: "DELETE_COLUMN", columnName: "x" }, renamed)),
      at(1, create("a", "x", "y")),
    ]) {
      await lineage.send(other, event);
    }
    expect(await columns(other)).toEqual(["b/y"]);
  });

  test("puts the table away whose name it takes, and a column whose name one of its own takes", async () => {
    await send(at(1, create("b", "old", "z")), at(1, create("a", "x", "z")), at(2, alter(x, renamed)));
    expect(await columns()).toEqual(["b/z"]);
    expect(await lineage.flaws(tenant)).toEqual([]);
  });
});

describe("a symlink that arrives late", () => {
  const location = (name: string, job: string) =>
    runEvent({
      jobName: job,
      outputs: [dataset("file", name, { ...schemaFacet(["x"]), ...columnLineageFacet({ x: [["file", "/in", "x"]] }) })],
    });
  const joined = runEvent({ jobName: "link", inputs: [dataset("file", "/w/a", symlinksFacet([HIVE, "dw.a"]))] });

  test("makes one table of two", async () => {
    await send(at(1, location("/w/a", "load")), at(2, create("a", "x", "y")), at(3, joined));
    const { nodes, edges } = await lineage.graph(tenant);
    expect(Object.keys(nodes).filter((name) => name.startsWith("TABLE"))).toEqual([
      "TABLE external/file///in",
      "TABLE gravitino/hive/dw/a",
    ]);
    expect(edges).toContain("JOB spark/load OUTPUT_TO TABLE gravitino/hive/dw/a");
    expect(await columns()).toEqual(["a/x", "a/y"]);
  });

  test("takes along what has become of the location", async () => {
    const gone = runEvent({ outputs: [dataset("file", "/w/a", lifecycleFacet("DROP"))] });
    await send(at(1, create("a", "old")), at(2, gone), at(3, create("a", "new")), at(4, joined));
    expect(await columns()).toEqual(["a/new"]);
  });
});

describe("a full sync", () => {
  const sync = async (event: Json) => lineage.send(tenant, event, { baseline: true });

  test("takes away the columns that it does not list, and leaves other tables alone", async () => {
    await send(at(1, create("a", "x", "y")), at(1, create("b", "x", "y")));
    await sync(at(2, create("a", "y", "z")));
    expect(await columns()).toEqual(["a/y", "a/z", "b/x", "b/y"]);
  });

  test("takes nothing away if it lists no columns", async () => {
    await send(at(1, create("a", "x")));
    await sync(at(2, create("a")));
    expect(await columns()).toEqual(["a/x"]);
  });

  test("takes away what arrives after it and was told before it", async () => {
    await sync(at(2, create("a", "y")));
    await send(at(1, create("a", "x", "y")));
    expect(await columns()).toEqual(["a/y"]);
  });

  test("leaves what is told after it", async () => {
    await send(at(3, create("a", "new")));
    await sync(at(2, create("a", "x")));
    expect(await columns()).toEqual(["a/new", "a/x"]);
  });

  test("and another of the same moment leave of the past what both of them list", async () => {
    const copied = columnLineageFacet(
      Object.fromEntries(["x", "y", "z"].map((name) => [name, [[HIVE, "dw.a", name]]])),
    );
    await send(at(1, runEvent({ jobName: "copy", outputs: [dataset(HIVE, "dw.b", copied)] })));
    const lists = [
      ["x", "y"],
      ["y", "z"],
    ];
    await Promise.all(lists.map((listed) => sync(at(2, create("a", ...listed)))));
    const { edges } = await lineage.graph(tenant);
    const sources = edges
      .filter((edge) => edge.includes(" DERIVES_FROM "))
      .map((edge) => /dw\/a\/(\w)/.exec(edge)?.[1]);
    expect(sources).toEqual(["y"]);
  });

  test("lists the columns of a table by the name that it has", async () => {
    await send(at(1, create("a", "x", "y")), at(2, rename("a", "b")));
    await sync(at(3, create("b", "x")));
    expect(await columns()).toEqual(["b/x"]);
  });
});

test("what is told again while a rename is written down goes to the table that it was told of", async () => {
  const [asked, goOn] = [signal(), signal()];
  const own = openDb({ connection: database.connection });
  onTestFinished(() => own.close());
  let isHeld = false;
  const held: Db = {
    ...own,
    async tx(work) {
      if (isHeld) {
        asked.resolve();
        await goOn.promise;
      }
      return own.tx(work);
    },
  };
  const other = testLineage(database, { db: held });
  for (const second of [10, 11]) await other.send(tenant, at(second, create("a", "x"))); // It is known there by now.
  isHeld = true;
  const late = other.send(tenant, at(3, create("a", "x")));
  await asked.promise;
  await send(at(5, rename("a", "b")));
  goOn.resolve();
  expect(await late).toMatchObject({ state: "APPLIED" });
  expect(await columns()).toEqual(["a/x", "b/x"]);
});
