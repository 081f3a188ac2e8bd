/**
 * One event of every kind and every operation, posted with the keys of those who send them, and the graph that they make as
 * the read routes show it. The events are the project's own: what public ones cover is covered without them.
 */
import { beforeAll, describe, expect, test } from "vitest";
import {
  airflowEvent,
  attributesFacet,
  columnLineageFacet,
  dataset,
  gravitinoEvent,
  gravitinoFacet,
  lifecycleFacet,
  runEvent,
  schemaFacet,
  symlinksFacet,
} from "../../src/lineage/events.fixture.ts";
import { sourceOf } from "../../src/lineage/graph/stories.fixture.ts";
import { type Api, api, type Json } from "../client.ts";
import { useDatabase } from "../database.ts";
import { inTime, makeTenant, postEvent, type TestTenant } from "../lineage-process.ts";
import { useMillrace } from "../millrace.ts";

const millrace = useMillrace(useDatabase());
let tenant: TestTenant;
let reader: Api;

beforeAll(async () => {
  tenant = await makeTenant(millrace.api, 7);
  reader = api(millrace.url, tenant.keys.COMPUTE_ENGINE);
});

const HIVE = "gravitino://tenant/7/lake/hive";
const ENGINE_FRAME = (({ eventTime, producer, schemaURL }) => ({ eventTime, producer, schemaURL }))(runEvent());

interface Shown {
  id: string;
  kind: string;
  name: string;
  fullName: string;
  attributes: Json;
  columns: { name: string; attributes: Json; valueDomains: string[] }[];
  tags: { name: string }[];
  neighbours: Record<string, number>;
  executions: number;
  history: { jobName: string }[];
}

/** One after the other, each a millisecond after the one before; continued over the tests. */
const told: Json[] = [];
async function send(...events: Json[]): Promise<void> {
  for (const event of events) {
    told.push(event);
    const timed = inTime(told).at(-1) as Json;
    const answer = await postEvent(millrace.url, tenant.keys[sourceOf(event)], timed, "/api/openlineage");
    expect(answer, JSON.stringify(event)).toMatchObject({ status: 201, body: { duplicate: false, state: "APPLIED" } });
  }
}

async function listed(kind: string): Promise<string[]> {
  const { body } = await reader.get<{ items: Shown[] }>(`/api/v1/lineage/assets?kind=${kind}`);
  return body.items.map(({ fullName }) => fullName).sort();
}

async function show(kind: string, name: string): Promise<Shown> {
  const found = await reader.get<{ items: Shown[] }>(
    `/api/v1/lineage/assets?kind=${kind}&name=${encodeURIComponent(name)}`,
  );
  const { status, body } = await reader.get<Shown>(`/api/v1/lineage/assets/${found.body.items[0]?.id}`);
  expect(status, `${kind} ${name}`).toBe(200);
  return body;
}

const on = (operation: string, name: string, facets: Json = {}) => gravitinoEvent(operation, { name, facets });
const alter = (...changes: Json[]) => on("alter_table", "dw.orders", gravitinoFacet({ changes }));
const semantic = (operation: string, attributes: Record<string, string>) =>
  on(operation, `dw.${attributes["code"]}`, attributesFacet(attributes));
const tagging = (objectType: string, name: string, add: string[], remove: string[] = []) =>
  gravitinoEvent("associate_tags", {
    namespace: objectType === "CATALOG" ? "gravitino://lake" : "gravitino://lake/hive",
    name,
    facets: { gravitinoTag: { objectType, tagsToAdd: add, tagsToRemove: remove } },
  });

describe("Gravitino", () => {
  test("makes, alters and loads catalogs, schemas and tables", async () => {
    const catalog = (operation: string, facets: Json = {}) =>
      gravitinoEvent(operation, { namespace: "gravitino", name: "hive", facets });
    await send(
      catalog("create_catalog", lifecycleFacet("CREATE")),
      catalog("alter_catalog", gravitinoFacet({ description: "the lake", provider: "hive" })),
      on("create_schema", "dw", lifecycleFacet("CREATE")),
      on("alter_schema", "dw", gravitinoFacet({ description: "warehouse" })),
      on("load_schema", "dw", gravitinoFacet({ properties: { owner: "bi" } })),
      on("create_table", "dw.orders", {
        ...schemaFacet([
          { name: "id", type: "long" },
          { name: "amount", type: "int" },
          { name: "status", type: "string" },
        ]),
        ...gravitinoFacet({ description: "orders", columns: [{ name: "id", nullable: false }] }),
      }),
      on("load_table", "dw.orders", gravitinoFacet({ creator: "alice" })),
    );
    expect((await show("CATALOG", "hive")).attributes).toMatchObject({ description: "the lake", provider: "hive" });
    expect((await show("SCHEMA", "hive.dw")).attributes).toEqual({
      description: "warehouse",
      properties: { owner: "bi" },
    });
    const table = await show("TABLE", "hive.dw.orders");
    expect(table.attributes).toMatchObject({ description: "orders", creator: "alice" });
    expect(table.columns.map(({ name, attributes }) => [name, attributes["dataType"], attributes["nullable"]])).toEqual(
      [
        ["id", "long", false],
        ["amount", "int", undefined],
        ["status", "string", undefined],
      ],
    );
    expect(table.history.map(({ jobName }) => jobName)).toEqual(["gravitino.load_table", "gravitino.create_table"]);
  });

  test("changes a table in each of the ways there are", async () => {
    await send(
      alter({ type: "UPDATE_COMMENT", newComment: "all orders" }),
      alter({ type: "SET_PROPERTY", propertyKey: "ttl", propertyValue: "30" }),
      alter({ type: "ADD_INDEX", indexName: "pk", indexType: "PRIMARY_KEY", indexColumns: ["id"] }),
      alter({ type: "ADD_COLUMN", columnName: "channel", dataType: "string", position: "FIRST" }),
      alter({ type: "ADD_COLUMN", columnName: "extra", dataType: "string" }),
      alter({ type: "DELETE_COLUMN", columnName: "extra" }),
      alter({ type: "RENAME_COLUMN", oldColumnName: "amount", newColumnName: "total" }),
      alter({ type: "UPDATE_COLUMN_TYPE", columnName: "total", dataType: "decimal" }),
      alter({ type: "UPDATE_COLUMN_COMMENT", columnName: "total", newComment: "in cents" }),
      alter({ type: "UPDATE_COLUMN_NULLABILITY", columnName: "total", nullable: false }),
      alter({ type: "UPDATE_COLUMN_DEFAULT_VALUE", columnName: "total", defaultValue: "0" }),
      alter({ type: "UPDATE_COLUMN_AUTO_INCREMENT", columnName: "id", autoIncrement: true }),
    );
    const table = await show("TABLE", "hive.dw.orders");
    expect(table.attributes).toMatchObject({ description: "all orders", properties: { ttl: "30" } });
    expect(JSON.stringify(table.attributes["indexes"])).toContain("pk");
    expect(table.columns.map(({ name }) => name).sort()).toEqual(["channel", "id", "status", "total"]);
    const [total] = table.columns.filter(({ name }) => name === "total");
    expect(total?.attributes).toMatchObject({
      dataType: "decimal",
      description: "in cents",
      nullable: false,
      defaultValue: "0",
    });
    await send(
      alter({ type: "REMOVE_PROPERTY", propertyKey: "ttl" }),
      alter({ type: "DELETE_INDEX", indexName: "pk" }),
      alter({ type: "UPDATE_COLUMN_POSITION", columnName: "channel", position: "AFTER id" }),
      alter({ type: "RENAME_TABLE", newName: "sales" }),
    );
    const renamed = await show("TABLE", "hive.dw.sales");
    expect(renamed.id).toBe(table.id);
    expect(renamed.attributes["properties"]).toEqual({});
    expect(JSON.stringify(renamed.attributes["indexes"] ?? "")).not.toContain("pk");
    expect(await listed("TABLE")).toEqual(["hive.dw.sales"]);
  });

  test("has metrics of all types, and the words they are made of", async () => {
    const atomic = {
      code: "revenue",
      name: "Revenue",
      metricType: "ATOMIC",
      unit: "CNY",
      refTableName: "sales",
      measureColumns: '[{"name":"total"}]',
      filterColumns: '[{"name":"status"}]',
    };
    await send(
      semantic("register_metric", { ...atomic, name: "?" }),
      semantic("alter_metric", atomic),
      semantic("register_metric", { code: "growth", metricType: "DERIVED", parentMetricCodes: "revenue" }),
      semantic("register_metric", {
        code: "share",
        metricType: "COMPOSITE",
        parentMetricCodes: "revenue,growth",
        calculationFormula: "revenue/growth",
      }),
      semantic("create_wordroot", { code: "amt", name: "?" }),
      semantic("alter_wordroot", { code: "amt", name: "amount", dataType: "decimal" }),
      semantic("create_modifier", { code: "7d", name: "?" }),
      semantic("alter_modifier", { code: "7d", name: "week", modifierType: "PREFIX" }),
      semantic("create_unit", { code: "CNY", name: "?" }),
      semantic("alter_unit", { code: "CNY", name: "Yuan", symbol: "¥" }),
      semantic("create_valuedomain", { code: "status", name: "?" }),
      semantic("alter_valuedomain", { code: "status", name: "Status", domainType: "ENUM", items: "1:new,2:paid" }),
    );
    const revenue = await show("METRIC", "hive.dw.revenue");
    expect(revenue.attributes).toMatchObject({ name: "Revenue", unit: "CNY", metricType: "ATOMIC" });
    expect(revenue.neighbours).toMatchObject({ measures: 1, filtersBy: 1, parentOf: 1, partOf: 1 });
    expect((await show("METRIC", "hive.dw.growth")).neighbours).toMatchObject({ derivedFrom: 1, partOf: 1 });
    expect((await show("METRIC", "hive.dw.share")).neighbours).toMatchObject({ computedFrom: 2 });
    expect((await show("WORDROOT", "amt")).attributes).toMatchObject({ name: "amount", dataType: "decimal" });
    expect((await show("MODIFIER", "7d")).attributes).toMatchObject({ modifierType: "PREFIX" });
    expect((await show("UNIT", "CNY")).attributes).toMatchObject({ symbol: "¥" });
    expect((await show("VALUEDOMAIN", "status")).attributes).toMatchObject({ domainType: "ENUM" });
  });

  test("puts tags and value domains onto assets of all sorts, and takes them off", async () => {
    const tag = (operation: string, comment: string) =>
      gravitinoEvent(operation, {
        namespace: "gravitino://lake",
        name: "pii",
        facets: attributesFacet({ name: "pii", comment }),
      });
    await send(
      tag("create_tag", "?"),
      tag("alter_tag", "personal"),
      tagging("CATALOG", "hive", ["pii"]),
      tagging("SCHEMA", "dw", ["pii"]),
      tagging("TABLE", "dw.sales", ["pii", "gold"]),
      tagging("COLUMN", "dw.sales.status", ["pii", "vd:status"]),
      tagging("TABLE", "dw.sales", [], ["gold"]),
    );
    const pii = await show("TAG", "pii");
    expect(pii.attributes).toMatchObject({ description: "personal" });
    expect(pii.neighbours).toMatchObject({ tagged: 4 });
    const table = await show("TABLE", "hive.dw.sales");
    expect(table.tags.map(({ name }) => name)).toEqual(["pii"]);
    expect(table.columns.find(({ name }) => name === "status")?.valueDomains).toEqual(["status"]);
    expect(await listed("TAG"), "a tag that nothing bears is still one").toEqual(["gold", "pii"]);
  });
});

describe("an engine", () => {
  test("tells what its runs read and write, under Gravitino's names and others", async () => {
    await send(
      airflowEvent("insert into daily select * from orders", { eventType: "START" }),
      airflowEvent("insert into daily select * from orders", { eventType: "RUNNING" }),
      airflowEvent("insert into daily select * from orders", { eventType: "COMPLETE" }),
      airflowEvent("insert into daily select * from orders", { eventType: null }),
      runEvent({
        jobName: "spark.load",
        eventType: "OTHER",
        inputs: [dataset("file", "/w/sales", symlinksFacet([HIVE, "dw.sales"])), dataset("kafka://k:9092", "payments")],
        outputs: [
          dataset(HIVE, "dw.report", {
            ...schemaFacet(["total"]),
            ...columnLineageFacet(
              { total: [["file", "/w/sales", "total", [{ type: "DIRECT", subtype: "AGGREGATION", masking: true }]]] },
              [["file", "/w/sales", "status", [{ type: "INDIRECT", subtype: "FILTER" }]]],
            ),
          }),
        ],
      }),
    );
    const [statement] = (await reader.get<{ items: Shown[] }>("/api/v1/lineage/assets?kind=SQL")).body.items;
    const { body: sql } = await reader.get<Shown>(`/api/v1/lineage/assets/${statement?.id}`);
    expect(sql).toMatchObject({ executions: 1, neighbours: { reads: 1, writes: 1 } });
    expect(await listed("TABLE")).toEqual([
      "hive.dw.report",
      "hive.dw.sales",
      "kafka://k:9092.payments",
      "postgres://db:5432.shop.public.daily",
      "postgres://db:5432.shop.public.orders",
    ]);

    const graph = await reader.get<{ nodes: Shown[] }>("/api/v1/lineage/graph?node=hive.dw.report&direction=up");
    expect(
      graph.body.nodes
        .filter(({ kind }) => kind === "TABLE")
        .map(({ fullName }) => fullName)
        .sort(),
    ).toEqual(["hive.dw.report", "hive.dw.sales", "kafka://k:9092.payments"]);
    const derived = async (column: string, direction: string) => {
      const { body } = await reader.get<{ nodes: Shown[]; edges: { transformations: Json[] }[] }>(
        `/api/v1/lineage/columns/graph?node=hive.dw.${column}&direction=${direction}&depth=1`,
      );
      const names = body.nodes.map(({ fullName }) => fullName).sort();
      return { names, transformations: body.edges.flatMap(({ transformations }) => transformations) };
    };
    expect(await derived("report.total", "up")).toEqual({
      names: ["hive.dw.report.total", "hive.dw.sales.total"],
      transformations: [{ type: "DIRECT", subtype: "AGGREGATION", masking: true }],
    });
    expect(await derived("sales.status", "down"), "the whole table depends on what it is filtered by").toEqual({
      names: ["hive.dw.report", "hive.dw.revenue", "hive.dw.sales.status"],
      transformations: [{ type: "INDIRECT", subtype: "FILTER" }],
    });
    const impact = await reader.get<{ items: Shown[] }>("/api/v1/lineage/impact?node=hive.dw.sales.total");
    expect(impact.body.items.map(({ fullName }) => fullName)).toEqual(
      expect.arrayContaining(["hive.dw.report.total", "hive.dw.revenue"]),
    );
    const found = await reader.get<{ items: Shown[] }>("/api/v1/lineage/search?q=payments");
    expect(found.body.items.map(({ fullName }) => fullName)).toContain("kafka://k:9092.payments");
  });

  test("tells of datasets and jobs without a run", async () => {
    await send(
      { ...ENGINE_FRAME, dataset: dataset("s3://bucket", "raw/clicks", schemaFacet(["url"])) },
      {
        ...ENGINE_FRAME,
        job: { namespace: "flink", name: "clicks", facets: { documentation: { description: "streams" } } },
        inputs: [dataset("s3://bucket", "raw/clicks")],
        outputs: [dataset("kafka://k:9092", "clicks")],
      },
    );
    expect((await show("TABLE", "s3://bucket.raw/clicks")).columns.map(({ name }) => name)).toEqual(["url"]);
    expect(await show("JOB", "clicks")).toMatchObject({
      executions: 0,
      neighbours: { reads: 1, writes: 1 },
      attributes: { description: "streams" },
    });
    const { body } = await reader.get<{ items: { kind: string }[] }>("/api/v1/lineage/events?limit=1000");
    const kinds = body.items.map(({ kind }) => kind);
    expect(new Set(kinds)).toEqual(new Set(["RUN_EVENT", "DATASET_EVENT", "JOB_EVENT"]));
    expect(kinds).toHaveLength(told.length);
  });

  test("cannot tell of metadata in Gravitino's place", async () => {
    const forged = gravitinoEvent("drop_table", { name: "dw.sales", facets: lifecycleFacet("CREATE") });
    const answer = await postEvent(millrace.url, tenant.keys.COMPUTE_ENGINE, forged);
    expect(answer.status).toBe(201);
    expect(await listed("TABLE")).toContain("hive.dw.sales");
  });

  test("drops and renames tables by the state of their life", async () => {
    const moved = dataset(
      "kafka://k:9092",
      "clicks.v2",
      lifecycleFacet("RENAME", { namespace: "kafka://k:9092", name: "clicks" }),
    );
    await send(
      runEvent({ jobName: "ddl", outputs: [moved] }),
      runEvent({ jobName: "ddl", outputs: [dataset("kafka://k:9092", "payments", lifecycleFacet("DROP"))] }),
    );
    expect((await listed("TABLE")).filter((name) => name.startsWith("kafka"))).toEqual(["kafka://k:9092.clicks.v2"]);
    expect((await show("JOB", "clicks")).neighbours).toMatchObject({ writes: 1 });
  });
});

test("drops of every kind leave nothing behind but what engines told", async () => {
  const dropped = (operation: string, code: string) => semantic(operation, { code });
  await send(
    dropped("drop_metric", "share"),
    dropped("drop_wordroot", "amt"),
    dropped("drop_modifier", "7d"),
    dropped("drop_unit", "CNY"),
    dropped("drop_valuedomain", "status"),
    gravitinoEvent("drop_tag", { namespace: "gravitino://lake", name: "pii" }),
    gravitinoEvent("drop_tag", { namespace: "gravitino://lake", name: "gold" }),
    on("drop_table", "dw.report", lifecycleFacet("DROP")),
  );
  for (const kind of ["WORDROOT", "MODIFIER", "UNIT", "VALUEDOMAIN", "TAG"])
    expect(await listed(kind), kind).toEqual([]);
  expect(await listed("METRIC")).toEqual(["hive.dw.growth", "hive.dw.revenue"]);
  expect((await listed("TABLE")).filter((name) => name.startsWith("hive"))).toEqual(["hive.dw.sales"]);
  await send(on("drop_schema", "dw", lifecycleFacet("DROP")));
  expect(await listed("METRIC")).toEqual([]);
  expect((await listed("COLUMN")).filter((name) => name.startsWith("hive"))).toEqual([]);
  await send(gravitinoEvent("drop_catalog", { namespace: "gravitino", name: "hive" }));
  expect((await listed("CATALOG")).filter((name) => name === "hive")).toEqual([]);
});

test("every operation that there is has been told", () => {
  const operations = new Set(told.map((event) => String((event["job"] as Json | undefined)?.["name"])));
  const things = ["catalog", "schema", "table", "metric", "wordroot", "modifier", "unit", "valuedomain", "tag"];
  const expected = [
    ...things.flatMap((thing) => [
      `${thing === "metric" ? "register" : "create"}_${thing}`,
      `alter_${thing}`,
      `drop_${thing}`,
    ]),
    "load_table",
    "load_schema",
    "associate_tags",
  ];
  expect(expected.filter((operation) => !operations.has(`gravitino.${operation}`))).toEqual([]);
  expect(expected).toHaveLength(30);
});
