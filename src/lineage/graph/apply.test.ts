import * as fc from "fast-check";
import { beforeEach, describe, expect, test } from "vitest";
import { useDatabase } from "../../../test/database.ts";
import {
  airflowEvent,
  attributesFacet,
  columnLineageFacet,
  dataset,
  gravitinoEvent,
  gravitinoFacet,
  type Json,
  lifecycleFacet,
  runEvent,
  schemaFacet,
  sparkEvent,
  symlinksFacet,
} from "../events.fixture.ts";
import { testLineage } from "../lineage.fixture.ts";
import type { GraphChange } from "./apply.ts";
import { anyEvent, sourceOf } from "./stories.fixture.ts";

const RUNS = process.env["MILLRACE_TEST_LONG"] ? 500 : 12;

const database = useDatabase();
const changes: GraphChange[] = [];
const lineage = testLineage(database, { onChange: async (_tx, _tenant, change) => void changes.push(change) });
let tenant: string;
let second: number;

beforeEach(async () => {
  tenant = await lineage.tenant();
  second = 0;
  changes.length = 0;
});

const timeOf = (n: number): string => new Date(Date.parse("2026-03-01T10:00:00Z") + n * 1_000).toISOString();

/** Each a second after the one before. */
async function send(...events: Json[]): Promise<void> {
  for (const event of events) {
    second += 1;
    const told = { ...event, eventTime: timeOf(second) };
    expect(await lineage.send(tenant, told, { source: sourceOf(told) })).toMatchObject({ state: "APPLIED" });
  }
}

const HIVE = "gravitino://tenant/7/lake/hive";
const ORDERS = "TABLE gravitino/hive/dw/orders";
const create = (name: string, columns: readonly (string | Json)[], facets: Json = {}) =>
  gravitinoEvent("create_table", { name: `dw.${name}`, facets: { ...schemaFacet(columns), ...facets } });
const alter = (name: string, ...list: Json[]) =>
  gravitinoEvent("alter_table", { name: `dw.${name}`, facets: gravitinoFacet({ changes: list }) });
const dropTable = (name: string) =>
  gravitinoEvent("drop_table", { name: `dw.${name}`, facets: lifecycleFacet("DROP") });
const copy = (from: string, to: string, column = "amount") =>
  runEvent({
    jobName: `${from} to ${to}`,
    inputs: [dataset(HIVE, `dw.${from}`)],
    outputs: [dataset(HIVE, `dw.${to}`, columnLineageFacet({ [column]: [[HIVE, `dw.${from}`, column]] }))],
  });
const nodes = async () => (await lineage.graph(tenant)).nodes;
const edges = async () =>
  (await lineage.graph(tenant)).edges.filter((edge) => !/ HAS_(SCHEMA|TABLE|COLUMN) /.test(edge));
const idOf = async (name: string) => {
  const [row] = await database.query<{ id: string }>(
    "select id::text from lineage.node where tenant_id = $1 and kind || ' ' || array_to_string(path, '/') = $2",
    [tenant, name],
  );
  return row?.id;
};

describe("a rename", () => {
  test("keeps the table with its id, its columns, lineage and tags under the new name", async () => {
    await send(
      create("orders", ["id", "amount"], gravitinoFacet({ description: "all of them" })),
      copy("orders", "daily"),
      gravitinoEvent("associate_tags", {
        namespace: "gravitino://lake/hive",
        name: "dw.orders.amount",
        facets: { gravitinoTag: { objectType: "COLUMN", tagsToAdd: ["money"] } },
      }),
    );
    const before = await lineage.graph(tenant);
    const [table, column] = [await idOf(ORDERS), await idOf("COLUMN gravitino/hive/dw/orders/amount")];
    await send(alter("orders", { type: "RENAME_TABLE", newName: "sales" }));
    const renamed = JSON.parse(JSON.stringify(before).replaceAll("dw/orders", "dw/sales")) as typeof before;
    const after = await lineage.graph(tenant);
    expect(after.edges.sort()).toEqual(renamed.edges.sort());
    expect(after.nodes).toEqual({
      ...renamed.nodes,
      "TABLE gravitino/hive/dw/sales": { ...renamed.nodes["TABLE gravitino/hive/dw/sales"], ...gravitinoProducer },
    });
    expect(await idOf("TABLE gravitino/hive/dw/sales")).toBe(table);
    expect(await idOf("COLUMN gravitino/hive/dw/sales/amount")).toBe(column);
  });

  test("of a column keeps its lineage", async () => {
    await send(create("orders", ["id", "amount"]), copy("orders", "daily"));
    const column = await idOf("COLUMN gravitino/hive/dw/orders/amount");
    await send(alter("orders", { type: "RENAME_COLUMN", oldColumnName: "amount", newColumnName: "total" }));
    expect(await idOf("COLUMN gravitino/hive/dw/orders/total")).toBe(column);
    expect((await edges()).filter((edge) => edge.includes("DERIVES_FROM"))).toEqual([
      expect.stringMatching(/dw\/daily\/amount DERIVES_FROM COLUMN gravitino\/hive\/dw\/orders\/total/),
    ]);
  });

  test("to a name that is taken puts the other table away", async () => {
    await send(create("orders", ["id"]), create("sales", ["old"]), copy("sales", "daily", "old"));
    await send(alter("orders", { type: "RENAME_TABLE", newName: "sales" }));
    expect(Object.keys(await nodes()).filter((name) => /dw\/(orders|sales)/.test(name))).toEqual([
      "COLUMN gravitino/hive/dw/sales/id",
      "TABLE gravitino/hive/dw/sales",
    ]);
    expect((await edges()).filter((edge) => edge.includes("dw/sales"))).toEqual([]);
  });

  test("leaves the old name to another table", async () => {
    await send(create("orders", ["id"]), alter("orders", { type: "RENAME_TABLE", newName: "sales" }));
    const renamed = await idOf("TABLE gravitino/hive/dw/sales");
    await send(create("orders", ["other"]));
    expect(await idOf(ORDERS)).not.toBe(renamed);
    expect(Object.keys(await nodes()).filter((name) => name.startsWith("COLUMN"))).toEqual([
      "COLUMN gravitino/hive/dw/orders/other",
      "COLUMN gravitino/hive/dw/sales/id",
    ]);
  });
});

const gravitinoProducer = { producer: "https://github.com/apache/gravitino/openlineage-listener" };

describe("a drop", () => {
  test("of a table takes its columns and edges, and leaves what it was made of", async () => {
    await send(create("orders", ["id", "amount"]), copy("orders", "daily"), dropTable("orders"));
    expect(Object.keys(await nodes())).toEqual([
      "CATALOG gravitino/hive",
      "COLUMN gravitino/hive/dw/daily/amount",
      "JOB spark/orders to daily",
      "SCHEMA gravitino/hive/dw",
      "TABLE gravitino/hive/dw/daily",
    ]);
    expect(await edges()).toEqual(["JOB spark/orders to daily OUTPUT_TO TABLE gravitino/hive/dw/daily"]);
  });

  const everything = [
    gravitinoEvent("create_catalog", { namespace: "gravitino", name: "hive" }),
    gravitinoEvent("create_schema", { name: "dw" }),
    create("orders", ["id", "amount"]),
    gravitinoEvent("register_metric", {
      name: "dw.revenue",
      facets: attributesFacet({
        code: "revenue",
        metricType: "ATOMIC",
        refTableName: "orders",
        measureColumns: '["amount"]',
      }),
    }),
  ];

  test("of a schema takes all in it: tables, columns and metrics", async () => {
    await send(...everything, gravitinoEvent("drop_schema", { name: "dw", facets: lifecycleFacet("DROP") }));
    expect(Object.keys(await nodes())).toEqual(["CATALOG gravitino/hive"]);
    expect(await edges()).toEqual([]);
  });

  test("of a catalog takes all in it", async () => {
    await send(...everything, gravitinoEvent("drop_catalog", { namespace: "gravitino", name: "hive" }));
    expect(await nodes()).toEqual({});
  });

  test("leaves a table that is made again afterwards with nothing of the old one", async () => {
    await send(create("orders", ["id", "amount"], gravitinoFacet({ description: "old" })), copy("orders", "daily"));
    await send(dropTable("orders"), create("orders", ["id"]));
    expect((await nodes())[ORDERS]).toEqual(gravitinoProducer);
    expect(await nodes()).not.toHaveProperty("COLUMN gravitino/hive/dw/orders/amount");
    expect((await edges()).filter((edge) => edge.includes("dw/orders"))).toEqual([]);
  });
});

describe("an attribute", () => {
  const property = (facet: Json) => create("orders", [{ name: "id", type: "int" }], gravitinoFacet(facet));

  test("stays when an event does not name it, and goes when one takes it away", async () => {
    await send(property({ description: "all", properties: { format: "orc" } }), property({}));
    expect((await nodes())[ORDERS]).toMatchObject({ description: "all", properties: { format: "orc" } });
    await send(alter("orders", { type: "UPDATE_COMMENT" }));
    expect((await nodes())[ORDERS]).not.toHaveProperty("description");
    expect((await nodes())[ORDERS]).toMatchObject({ properties: { format: "orc" } });
  });

  test("belongs to the newest event, also when an older one comes after it", async () => {
    const told = property({ description: "new" });
    await send(told);
    const late = { ...property({ description: "old", creator: "alice" }), eventTime: "2026-03-01T09:00:00Z" };
    await lineage.send(tenant, late);
    expect((await nodes())[ORDERS]).toMatchObject({ description: "new", creator: "alice" });
  });

  test("belongs to the newest of many that contradict each other, in whatever order they come", {
    timeout: 60_000 + RUNS * 4_000,
  }, async () => {
    const COUNT = 12;
    const word = fc.constantFrom("one", "two");
    const told = fc.array(fc.record({ type: word, description: word }), { minLength: COUNT, maxLength: COUNT });
    const anyOrder = fc.shuffledSubarray([...Array(COUNT).keys()], { minLength: COUNT });
    await fc.assert(
      fc.asyncProperty(told, anyOrder, async (assertions, order) => {
        const own = await lineage.tenant();
        for (const n of order) {
          const { type = "", description = "" } = assertions[n] ?? {};
          const facet = gravitinoFacet({ description, creator: `user ${n}` }); // No two tell the same.
          const event = { ...create("c", [{ name: "x", type }], facet), eventTime: timeOf(n) };
          // Of a full sync: when it comes late, everything is read again.
          await lineage.send(own, event, { baseline: true });
        }
        const { nodes: all } = await lineage.graph(own);
        const newest = assertions.at(-1);
        expect(all["COLUMN gravitino/hive/dw/c/x"]?.["dataType"]).toBe(newest?.type);
        expect(all["TABLE gravitino/hive/dw/c"]?.["description"]).toBe(newest?.description);
      }),
      { numRuns: 2 * RUNS },
    );
  });

  test("that two events set in the same moment has one value, whichever comes first", async () => {
    const values: unknown[] = [];
    for (const order of [
      ["one", "two"],
      ["two", "one"],
    ]) {
      const other = await lineage.tenant();
      for (const description of order) await lineage.send(other, property({ description }));
      values.push((await lineage.graph(other)).nodes[ORDERS]?.["description"]);
    }
    expect(values).toEqual(["two", "two"]);
  });
});

describe("edges", () => {
  test("of a metric are those of the newest event that tells of them", async () => {
    const metric = (columns: string) =>
      gravitinoEvent("alter_metric", {
        name: "dw.revenue",
        facets: attributesFacet({
          code: "revenue",
          metricType: "ATOMIC",
          refTableName: "orders",
          measureColumns: columns,
        }),
      });
    await send(metric('["amount","tax"]'), metric('["amount"]'));
    expect(await edges()).toEqual([
      "METRIC gravitino/hive/dw/revenue MEASURES COLUMN gravitino/hive/dw/orders/amount",
      "SCHEMA gravitino/hive/dw HAS_METRIC METRIC gravitino/hive/dw/revenue",
    ]);
    const late = { ...metric('["late"]'), eventTime: "2026-03-01T09:00:00Z" };
    await lineage.send(tenant, late);
    expect((await edges()).filter((edge) => edge.includes("MEASURES"))).toHaveLength(1);
  });

  test("between columns gather all transformations that were ever told", async () => {
    const lineageBy = (...transformations: Json[]) =>
      runEvent({
        outputs: [dataset("file", "/w/b", columnLineageFacet({ x: [["file", "/w/a", "x", transformations]] }))],
      });
    await send(
      lineageBy({ type: "DIRECT", subtype: "IDENTITY" }, { type: "INDIRECT", subtype: "JOIN" }),
      lineageBy({ type: "DIRECT", subtype: "IDENTITY" }),
      lineageBy({ type: "DIRECT", subtype: "TRANSFORMATION", masking: true }),
    );
    const [row] = await database.query<{ transformations: string[] }>(
      "select transformations from lineage.edge where tenant_id = $1 and kind = 'DERIVES_FROM'",
      [tenant],
    );
    expect(row?.transformations.map((one) => JSON.parse(one) as Json)).toEqual([
      { type: "DIRECT", subtype: "TRANSFORMATION", masking: true },
      { type: "DIRECT", subtype: "IDENTITY" },
      { type: "INDIRECT", subtype: "JOIN" },
    ]);
  });

  test("bring tables that nobody has told of, in a catalog of their own", async () => {
    await send(airflowEvent("insert into daily select * from orders"));
    expect(Object.keys(await nodes())).toEqual([
      "CATALOG external/postgres://db:5432",
      "SCHEMA external/postgres://db:5432/shop.public",
      expect.stringMatching(/^SQL airflow\/dag\.task\//),
      "TABLE external/postgres://db:5432/shop.public/daily",
      "TABLE external/postgres://db:5432/shop.public/orders",
    ]);
  });
});

describe("a symlink", () => {
  test("joins what was told of a location to the table that lies there", async () => {
    await send(sparkEvent({ from: ["/w/in"], to: "/w/orders", columns: 1 }), create("orders", ["c1"]));
    await send(
      runEvent({ jobName: "join", inputs: [dataset("file", "/w/orders", symlinksFacet([HIVE, "dw.orders"]))] }),
    );
    expect(await nodes()).not.toHaveProperty("TABLE external/file///w/orders");
    expect((await edges()).filter((edge) => edge.includes("dw/orders"))).toEqual([
      expect.stringMatching(
        /^COLUMN gravitino\/hive\/dw\/orders\/c1 DERIVES_FROM COLUMN external\/file\/\/\/w\/in\/c1/,
      ),
      "JOB spark/daily.load OUTPUT_TO TABLE gravitino/hive/dw/orders",
      "TABLE gravitino/hive/dw/orders INPUT_OF JOB spark/join",
    ]);
    await send(sparkEvent({ jobName: "later", from: ["/w/orders"], to: "/w/out", columns: 1 }));
    expect(await edges()).toContain("TABLE gravitino/hive/dw/orders INPUT_OF JOB spark/later");
  });
});

describe("what a change is told to be", () => {
  /** Each node and edge, with all that a mirror of the graph would show of it. */
  async function snapshot(of: string): Promise<Map<string, string>> {
    const rows = await database.query<{ id: string; shown: string }>(
      `select 'node ' || id as id, jsonb_build_array(kind, path, name, parent_id, attributes)::text as shown
       from lineage.node where tenant_id = $1 and deleted_at is null
       union all
       select concat_ws(' ', 'edge', src, kind, dst), transformations::text from lineage.edge where tenant_id = $1`,
      [of],
    );
    return new Map(rows.map(({ id, shown }) => [id, shown]));
  }

  test("holds every node and edge that is new, different or gone, whatever happens", {
    timeout: 60_000 + RUNS * 4_000,
  }, async () => {
    const story = fc.array(anyEvent(), { minLength: 2, maxLength: 15 });
    await fc.assert(
      fc.asyncProperty(story, fc.infiniteStream(fc.nat({ max: 20 })), async (events, times) => {
        const own = await lineage.tenant();
        let before = await snapshot(own);
        for (const event of events) {
          changes.length = 0;
          const eventTime = `2026-03-01T10:00:${String(times.next().value).padStart(2, "0")}Z`;
          await lineage.send(own, { ...event, eventTime }, { source: sourceOf(event) });
          const after = await snapshot(own);
          const told = new Set(
            changes.flatMap(({ nodes: ids, edges: keys }) => [
              ...ids.map((id) => `node ${id}`),
              ...keys.map(({ src, kind, dst }) => `edge ${src} ${kind} ${dst}`),
            ]),
          );
          const different = [...new Set([...before.keys(), ...after.keys()])].filter(
            (id) => before.get(id) !== after.get(id),
          );
          expect(different.filter((id) => !told.has(id))).toEqual([]);
          before = after;
        }
      }),
      { numRuns: RUNS },
    );
  });
});
