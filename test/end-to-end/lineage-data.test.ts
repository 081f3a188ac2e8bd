/** Events of public test suites, and those that Gravitino's listener sends, over HTTP: what each is answered, and what they make. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { type GraphInNames, testLineage } from "../../src/lineage/lineage.fixture.ts";
import type { Json } from "../client.ts";
import { useDatabase } from "../database.ts";
import { makeTenant, postEvent, type TestTenant } from "../lineage-process.ts";
import { useMillrace } from "../millrace.ts";
import { seededRandom } from "../random.ts";

/** A folder of OpenLineage events from public test suites: `events/`, `nonconforming/`, `derived-gravitino/`. */
const DATA = process.env["MILLRACE_OPENLINEAGE_DATA"];
if (!DATA) console.warn("MILLRACE_OPENLINEAGE_DATA is not set: the events of public test suites are not tried");

const database = useDatabase();
const millrace = useMillrace(database);
const lineage = testLineage(database);

const files = (folder: string) =>
  readdirSync(join(DATA ?? "", folder))
    .filter((name) => name.endsWith(".json"))
    .sort();
const textOf = (folder: string, name: string) => readFileSync(join(DATA ?? "", folder, name), "utf8");

describe.skipIf(!DATA)("events of public test suites", () => {
  test("are taken and applied, each of them", async () => {
    const { keys } = await makeTenant(millrace.api, 1);
    const refused: unknown[] = [];
    for (const name of files("events")) {
      const { status, body } = await postEvent(millrace.url, keys.COMPUTE_ENGINE, textOf("events", name));
      if (status !== 201 || body["state"] !== "APPLIED") refused.push({ name, status, body });
    }
    expect(refused).toEqual([]);
    expect(files("events").length).toBeGreaterThan(70);
    expect(await lineage.flaws("1")).toEqual([]);
  });

  /** What is no event is told where; what only breaks the letter of the standard is taken, or it would be lost. */
  const ANSWERS: [files: RegExp, status: number, error: string | undefined][] = [
    [/metadata\.template/, 400, "/eventTime is not a time like 2026-01-31T23:59:59.123Z, from 1970 to 2255."],
    [/sparksql_[12]/, 400, "/run/runId is missing; /inputs/0/name is missing."],
    // Without a schemaURL, with facets that name no producer, with times without a zone or runs that are no UUIDs.
    [/example_(dataset|job)_event|rentgen.*airflow|apples|no_timezone|without_schema_url|listener_1/, 201, undefined],
  ];

  test("that break the core schema get the documented answer, each of them", async () => {
    const { keys } = await makeTenant(millrace.api, 2);
    const answered: unknown[] = [];
    const documented: unknown[] = [];
    for (const name of files("nonconforming")) {
      const { status, body } = await postEvent(millrace.url, keys.COMPUTE_ENGINE, textOf("nonconforming", name));
      const [, expected, error] = ANSWERS.find(([pattern]) => pattern.test(name)) ?? [];
      answered.push([name, status, body["error"]]);
      documented.push([name, expected, error]);
    }
    expect(answered).toEqual(documented);
    expect(answered.length).toBeGreaterThan(30);
  });

  test("tell the column lineage of the scenario that they are of", async () => {
    const { keys } = await makeTenant(millrace.api, 3);
    const scenario = files("events").filter((name) => name.includes("consumer_scenarios_CLL"));
    for (const name of scenario) await postEvent(millrace.url, keys.COMPUTE_ENGINE, textOf("events", name));
    expect(scenario.length).toBeGreaterThan(4);

    const { edges, executions } = await lineage.graph("3");
    const table = (edge: string) => edge.replaceAll("external/file:/tmp/cll_test//default.", "");
    const derived = edges.filter((edge) => edge.includes(" DERIVES_FROM ")).map(derivation);
    // create table tbl1 as select t1.a as ident, concat(b, 'test') as trans, sum(c) as agg
    // from (select a, c from cll_source2 where a > 1) t2 join cll_source1 t1 on t1.a = t2.a group by t1.a, b
    expect(derived).toEqual([
      "agg <- cll_source1/a: FILTER GROUP_BY JOIN",
      "agg <- cll_source1/b: GROUP_BY",
      "agg <- cll_source2/a: FILTER JOIN",
      "agg <- cll_source2/c: AGGREGATION",
      "ident <- cll_source1/a: FILTER GROUP_BY IDENTITY JOIN",
      "ident <- cll_source1/b: GROUP_BY",
      "ident <- cll_source2/a: FILTER JOIN",
      "trans <- cll_source1/a: FILTER GROUP_BY JOIN",
      "trans <- cll_source1/b: GROUP_BY TRANSFORMATION",
      "trans <- cll_source2/a: FILTER JOIN",
    ]);
    const job = "open_lineage_integration_create_table.execute_create_hive_table_as_select_command.default_tbl1";
    const moves = edges.filter((edge) => / (INPUT_OF|OUTPUT_TO) /.test(edge) && edge.includes(job)).map(table);
    expect(moves.map((edge) => edge.replace(/ ?JOB .*default_tbl1/, "").trim())).toEqual([
      "OUTPUT_TO TABLE tbl1",
      "TABLE cll_source1 INPUT_OF",
      "TABLE cll_source2 INPUT_OF",
    ]);
    const [counted] = Object.entries(executions).filter(([name]) => name.endsWith(job));
    expect(counted?.[1], "it started, ran and completed once").toBe(1);
  });
});

/** `COLUMN .../tbl1/agg DERIVES_FROM COLUMN .../source/c {...},{...}` in short. */
function derivation(edge: string): string {
  const [, to, from, transformations = ""] =
    /\/default\.tbl1\/(\w+) DERIVES_FROM COLUMN .*\/default\.(\w+\/\w+) (.*)$/.exec(edge) ?? [];
  const subtypes = [...transformations.matchAll(/"subtype":"(\w+)"/g)].map(([, subtype = ""]) => subtype).sort();
  return `${to} <- ${from}: ${subtypes.join(" ")}`;
}

describe.skipIf(!DATA)("what Gravitino's listener tells", () => {
  const HIVE = "gravitino/hive_prod";
  const ORDERS = `${HIVE}/dw/orders`;
  const events = (): { name: string; body: string }[] =>
    files("derived-gravitino").map((name) => ({ name, body: textOf("derived-gravitino", name) }));

  async function post({ id, keys }: TestTenant, body: string): Promise<GraphInNames> {
    const own = body
      .replaceAll("gravitino://tenant/7", `gravitino://tenant/${id}`)
      .replaceAll(/"tenantId": ?7/g, `"tenantId":${id}`);
    const answer = await postEvent(millrace.url, keys.GRAVITINO, own, "/api/openlineage");
    expect(answer, body).toMatchObject({ status: 201, body: { state: "APPLIED" } });
    return lineage.graph(String(id));
  }

  /** What has to be so after an event; what is not named may be anything. */
  const STEPS: Record<string, (graph: GraphInNames) => void> = {
    "02_alter_catalog": ({ nodes }) =>
      expect(nodes).toMatchObject({
        [`CATALOG ${HIVE}`]: { description: "prod hive", properties: { "metastore.uris": "thrift://hms:9083" } },
      }),
    "04_alter_schema": ({ nodes, edges }) => {
      expect(nodes[`CATALOG ${HIVE}`]).toMatchObject({ metalake: "metalake_demo" });
      expect(nodes[`SCHEMA ${HIVE}/dw`]).toMatchObject({ description: "dw layer", properties: { owner: "bi" } });
      expect(edges).toEqual([`CATALOG ${HIVE} HAS_SCHEMA SCHEMA ${HIVE}/dw`]);
    },
    "06_create_table": ({ nodes, edges }) => {
      expect(nodes[`TABLE ${ORDERS}`]).toMatchObject({
        description: "orders fact",
        partitions: "identity(dt)",
        distribution: "Distribution{strategy=NONE}",
        creator: "alice",
        properties: { format: "parquet", location: "hdfs://nn:9000/w/dw.db/orders" },
      });
      expect(nodes[`COLUMN ${ORDERS}/order_id`]).toMatchObject({
        dataType: "long",
        nullable: false,
        autoIncrement: false,
      });
      expect(columnsOf(nodes)).toEqual(["order_id", "customer_id", "amount", "status"]);
      expect(edges).toContain(`SCHEMA ${HIVE}/dw HAS_TABLE TABLE ${ORDERS}`);
    },
    "08_alter_table_update_comment": ({ nodes }) =>
      expect(nodes[`TABLE ${ORDERS}`]).toMatchObject({ description: "orders fact v2" }),
    "09_alter_table_set_property": ({ nodes }) =>
      expect(nodes[`TABLE ${ORDERS}`]).toMatchObject({ properties: { format: "parquet", ttl: "30" } }),
    "10_alter_table_remove_property": ({ nodes }) =>
      expect(nodes[`TABLE ${ORDERS}`]?.["properties"]).not.toHaveProperty("ttl"),
    "11_alter_table_add_column": ({ nodes }) => {
      expect(nodes[`COLUMN ${ORDERS}/channel`]).toMatchObject({ dataType: "string", description: "sales channel" });
      expect(columnsOf(nodes)).toEqual(["order_id", "customer_id", "amount", "channel", "status"]);
    },
    "12_alter_table_update_column_type": ({ nodes }) =>
      expect(nodes[`COLUMN ${ORDERS}/amount`]).toMatchObject({ dataType: "decimal(20,4)" }),
    "13_alter_table_update_column_comment": ({ nodes }) =>
      expect(nodes[`COLUMN ${ORDERS}/channel`]).toMatchObject({ description: "渠道" }),
    "15_alter_table_update_column_nullability": ({ nodes }) =>
      expect(nodes[`COLUMN ${ORDERS}/status`]).toMatchObject({ nullable: false }),
    "16_alter_table_update_column_default_value": ({ nodes }) =>
      expect(nodes[`COLUMN ${ORDERS}/status`]).toMatchObject({ defaultValue: "new" }),
    "17_alter_table_update_column_auto_increment": ({ nodes }) =>
      expect(nodes[`COLUMN ${ORDERS}/order_id`]).toMatchObject({ autoIncrement: true }),
    "18_alter_table_add_index": ({ nodes }) =>
      expect(JSON.stringify(nodes[`TABLE ${ORDERS}`]?.["indexes"])).toContain("pk_orders"),
    "19_alter_table_delete_index": ({ nodes }) =>
      expect(JSON.stringify(nodes[`TABLE ${ORDERS}`]?.["indexes"] ?? "")).not.toContain("pk_orders"),
    "22_alter_table_rename_table": ({ nodes }) => {
      expect(nodes).not.toHaveProperty([`TABLE ${ORDERS}`]);
      expect(nodes).toHaveProperty([`TABLE ${HIVE}/dw/fact_orders`]);
      expect(columnsOf(nodes)).toContain("channel");
    },
    "26_register_metric_composite": ({ nodes, edges }) => {
      expect(nodes[`METRIC ${HIVE}/dw/avg_order_value`]).toMatchObject({
        metricType: "COMPOSITE",
        calculationFormula: "order_amount/order_cnt",
        parentMetricCodes: ["order_amount", "order_cnt"],
      });
      expect(edges.filter((edge) => edge.includes("COMPUTED_FROM"))).toHaveLength(2);
      expect(edges).toContain(`SCHEMA ${HIVE}/dw HAS_METRIC METRIC ${HIVE}/dw/avg_order_value`);
    },
    "27_alter_metric_atomic": ({ nodes, edges }) => {
      expect(nodes[`METRIC ${HIVE}/dw/order_amount`]).toMatchObject({ metricType: "ATOMIC", unit: "CNY" });
      expect(edges).toContain(`METRIC ${HIVE}/dw/order_amount MEASURES COLUMN ${ORDERS}/amount`);
      expect(edges).toContain(`METRIC ${HIVE}/dw/order_amount FILTERS_BY COLUMN ${ORDERS}/status`);
    },
    "30_alter_wordroot": ({ nodes }) =>
      expect(nodes["WORDROOT amt"]).toEqual({ code: "amt", name: "amount", dataType: "decimal", description: "金额" }),
    "32_alter_modifier": ({ nodes }) =>
      expect(nodes["MODIFIER 7d"]).toMatchObject({ name: "last 7 days", modifierType: "PREFIX" }),
    "34_alter_unit": ({ nodes }) => expect(nodes["UNIT CNY"]).toMatchObject({ name: "Yuan", symbol: "¥" }),
    "38_alter_tag": ({ nodes }) =>
      expect(nodes["TAG pii"]).toMatchObject({
        description: "personal data",
        properties: { level: "high", owner: "dpo" },
      }),
    "41_associate_tags_table": ({ edges }) => expect(edges).toContain(`TABLE ${ORDERS} HAS_TAG TAG pii`),
    "42_associate_tags_column_valuedomain": ({ edges }) => {
      expect(edges).toContain(`COLUMN ${ORDERS}/status HAS_VALUE_DOMAIN VALUEDOMAIN order_status`);
      expect(edges).toContain(`COLUMN ${ORDERS}/status HAS_TAG TAG pii`);
    },
    "43_associate_tags_column_remove": ({ nodes, edges }) => {
      expect(edges.filter((edge) => /HAS_(TAG|VALUE)/.test(edge))).toEqual([`TABLE ${ORDERS} HAS_TAG TAG pii`]);
      expect(nodes).toHaveProperty(["VALUEDOMAIN order_status"]);
    },
    "44_drop_wordroot": ({ nodes }) => expect(nodes).not.toHaveProperty(["WORDROOT amt"]),
    "45_drop_modifier": ({ nodes }) => expect(nodes).not.toHaveProperty(["MODIFIER 7d"]),
    "46_drop_unit": ({ nodes }) => expect(nodes).not.toHaveProperty(["UNIT CNY"]),
    "47_drop_valuedomain": ({ nodes }) => expect(nodes).not.toHaveProperty(["VALUEDOMAIN order_status"]),
    "48_drop_tag": ({ nodes, edges }) => {
      expect(nodes).not.toHaveProperty(["TAG pii"]);
      expect(edges.filter((edge) => edge.includes("HAS_TAG"))).toEqual([]);
    },
    "49_drop_table": ({ nodes, edges }) => {
      expect(nodes).not.toHaveProperty([`TABLE ${ORDERS}`]);
      expect(
        edges.filter((edge) => edge.includes(`${ORDERS}/`)),
        "nor its columns, nor what measured them",
      ).toEqual([]);
      expect(nodes).toHaveProperty([`TABLE ${HIVE}/dw/fact_orders`]);
    },
    "50_drop_schema": ({ nodes }) => expect(Object.keys(nodes)).toEqual([`CATALOG ${HIVE}`]),
    "51_drop_catalog": ({ nodes }) => expect(nodes).toEqual({}),
  };

  /** In the order of their positions, of the one table that has any. */
  function columnsOf(nodes: Record<string, Json>): string[] {
    const columns = Object.entries(nodes).filter(([name]) => name.startsWith("COLUMN"));
    const position = (attributes: Json) => Number(attributes["position"] ?? Number.POSITIVE_INFINITY);
    return columns.sort(([, a], [, b]) => position(a) - position(b)).map(([name]) => name.split("/").at(-1) ?? "");
  }

  test("makes the graph that it describes, event by event", async () => {
    const tenant = await makeTenant(millrace.api, 7);
    const tried: string[] = [];
    for (const { name, body } of events()) {
      const graph = await post(tenant, body);
      const step = Object.keys(STEPS).find((prefix) => name === `${prefix}.json`);
      if (step) STEPS[step]?.(graph);
      if (step) tried.push(step);
    }
    expect(tried).toEqual(Object.keys(STEPS).sort());
    expect(await lineage.flaws("7")).toEqual([]);
  });

  test("makes the same graph in any order", async () => {
    const random = seededRandom();
    const untilDrops = events().filter(({ name }) => name < "44");
    const inOrder = await makeTenant(millrace.api, 8);
    let expected: GraphInNames | undefined;
    for (const { body } of untilDrops) expected = await post(inOrder, body);
    const anyOrder = await makeTenant(millrace.api, 9);
    const shuffled = untilDrops
      .map((event) => ({ event, rank: random.between(0, 2 ** 30) }))
      .sort((a, b) => a.rank - b.rank);
    let graph: GraphInNames | undefined;
    for (const { event } of shuffled) graph = await post(anyOrder, event.body);
    expect(graph, `seed ${random.seed}`).toEqual(expected);
    expect(Object.keys(graph?.nodes ?? {}).length).toBeGreaterThan(10);

    const all = await makeTenant(millrace.api, 10);
    const latestFirst = events().sort((a, b) => (a.name < b.name ? 1 : -1));
    for (const { body } of latestFirst) graph = await post(all, body);
    expect(graph?.nodes, "a graph whose end is told first stays empty").toEqual({});
  });
});
