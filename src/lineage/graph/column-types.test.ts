import { describe, expect, test } from "vitest";
import { useDatabase } from "../../../test/database.ts";
import { dataset, gravitinoEvent, gravitinoFacet, type Json, runEvent, schemaFacet } from "../events.fixture.ts";
import { testLineage } from "../lineage.fixture.ts";
import { sourceOf } from "./stories.fixture.ts";

const database = useDatabase();
/** The assets that each change was told of: what is embedded and mirrored anew. */
const changed: string[] = [];
const lineage = testLineage(database, {
  onChange: async (_, __, { assets }) => void changed.push(...assets.map(({ name }) => name.path.join("/"))),
});
const HIVE = "gravitino://tenant/7/lake/hive";
const COLUMN = "COLUMN gravitino/hive/dw/orders/id";

const at = (second: number, event: Json): Json => ({ ...event, eventTime: `2026-03-01T10:00:0${second}Z` });
const typed = (type: string, before: readonly string[] = []) =>
  schemaFacet([...before, { name: "id", type, fields: [{ name: "part", type }] }]);
/** Each from an engine of its own. */
const writes = (type: string, jobName = "load") =>
  runEvent({ jobName, outputs: [dataset(HIVE, "dw.orders", typed(type))] });
const reads = (type: string, jobName = "report") =>
  runEvent({ jobName, inputs: [dataset(HIVE, "dw.orders", typed(type, ["other"]))] });
const catalog = (type: string) => gravitinoEvent("load_table", { facets: { ...typed(type), ...gravitinoFacet({}) } });

async function told(...events: Json[]): Promise<{ tenant: string; column: Json | undefined }> {
  const tenant = await lineage.tenant();
  for (const event of events) await lineage.send(tenant, event, { source: sourceOf(event) });
  return { tenant, column: (await lineage.graph(tenant)).nodes[COLUMN] };
}

function orders<T>(items: readonly T[]): T[][] {
  if (items.length <= 1) return [[...items]];
  return items.flatMap((first, index) => orders(items.toSpliced(index, 1)).map((rest) => [first, ...rest]));
}

describe("the type of a column", () => {
  test.each([
    ["its catalog, whoever writes and reads it later", [catalog("int"), writes("bigint"), reads("varchar")], "int", 1],
    [
      "who writes it, whoever reads it later",
      [writes("bigint"), reads("varchar"), reads("text", "other")],
      "bigint",
      1,
    ],
    ["who reads it, where nobody else tells one", [reads("varchar")], "varchar", 2],
    ["its catalog, also where that tells it last", [reads("varchar"), writes("bigint"), catalog("int")], "int", 1],
    ["the newest of its writers", [writes("int"), reads("varchar"), writes("bigint", "other")], "bigint", 1],
    ["the newest of what its catalog says", [catalog("int"), writes("varchar"), catalog("bigint")], "bigint", 1],
  ])("is that of %s, in any order of arrival", async (_, events, type, position) => {
    const timed = events.map((event, index) => at(index, event));
    const expected = { dataType: type, position, fields: [{ name: "part", dataType: type }] };
    for (const order of orders(timed)) expect((await told(...order)).column).toMatchObject(expected);
  });

  test("stays, and costs no work, however often two engines call it differently", async () => {
    const { tenant } = await told(at(0, writes("string")), at(1, reads("varchar")));
    // Once more, so that whatever is remembered is known.
    for (const event of [at(2, writes("string")), at(3, reads("varchar"))])
      await lineage.send(tenant, event, { source: "COMPUTE_ENGINE" });
    changed.length = 0;
    const rows = () =>
      database.query(
        "select xmin::text, contested, attributes ->> 'dataType' as type from lineage.node where tenant_id = $1 order by id",
        [tenant],
      );
    const before = await rows();
    for (const second of [4, 6, 8]) {
      await lineage.send(tenant, at(second, writes("string")), { source: "COMPUTE_ENGINE" });
      await lineage.send(tenant, at(second + 1, reads("varchar")), { source: "COMPUTE_ENGINE" });
    }
    expect(changed).toEqual([]);
    expect(await rows()).toEqual(before);
    const inFull = await database.query("select in_full from lineage.assertion where tenant_id = $1", [tenant]);
    expect(inFull, "their events need no work").toEqual([{ in_full: false }, { in_full: false }]);
  });

  test("of a job that reads and writes one table is what it writes", async () => {
    const both = runEvent({
      inputs: [dataset(HIVE, "dw.orders", typed("varchar"))],
      outputs: [dataset(HIVE, "dw.orders", typed("string"))],
    });
    expect((await told(both)).column).toMatchObject({ dataType: "string" });
  });

  test("that a catalog told is gone with the table, and a reader tells that of the next one", async () => {
    const { column } = await told(
      at(0, catalog("int")),
      at(1, gravitinoEvent("drop_table", {})),
      at(2, reads("varchar")),
    );
    expect(column).toMatchObject({ dataType: "varchar" });
  });
});

describe("properties that are set one by one", () => {
  const TABLE = "TABLE gravitino/hive/dw/orders";
  const alter = (...changes: Json[]) => gravitinoEvent("alter_table", { facets: gravitinoFacet({ changes }) });
  const set = (propertyKey: string, propertyValue: string) => ({ type: "SET_PROPERTY", propertyKey, propertyValue });
  const remove = (propertyKey: string) => ({ type: "REMOVE_PROPERTY", propertyKey });
  const create = (properties: Json) => gravitinoEvent("create_table", { facets: gravitinoFacet({ properties }) });

  test.each([
    ["leave the others", [create({ a: "1", ttl: "7" }), alter(set("ttl", "30"))], { a: "1", ttl: "30" }],
    [
      "add to the others",
      [create({ a: "1" }), alter(set("ttl", "30")), alter(set("b", "2"))],
      { a: "1", ttl: "30", b: "2" },
    ],
    ["are removed alone", [create({ a: "1", ttl: "7" }), alter(remove("ttl"))], { a: "1" }],
    [
      "are all there is, where no list was told",
      [alter(set("ttl", "30")), alter(set("b", "2"))],
      { ttl: "30", b: "2" },
    ],
    ["are gone with a later list", [create({ a: "1" }), alter(set("ttl", "30")), create({ a: "2" })], { a: "2" }],
    ["come back after a list", [create({ a: "1" }), create({ a: "2" }), alter(set("b", "3"), remove("a"))], { b: "3" }],
    [
      "stay when they are set to and fro",
      [alter(set("a", "1")), alter(set("a", "2")), alter(set("a", "1"))],
      { a: "1" },
    ],
  ])("%s, in any order of arrival", async (_, events, properties) => {
    const timed = events.map((event, index) => at(index, event));
    for (const order of orders(timed)) {
      const { tenant } = await told(...order);
      expect((await lineage.graph(tenant)).nodes[TABLE]?.["properties"]).toEqual(properties);
    }
  });
});
