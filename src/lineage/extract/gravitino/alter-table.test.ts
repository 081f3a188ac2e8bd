import { describe, expect, test } from "vitest";
import { gravitinoEvent, gravitinoFacet, type Json, schemaFacet } from "../../events.fixture.ts";
import type { Attributes } from "../../graph/facts.ts";
import { extractedFromGravitino } from "../extracted.fixture.ts";

const PATH = "gravitino|hive|dw|orders";

interface Listed {
  columns?: readonly (string | Json)[];
  content?: Json;
}

/** What the changes make of a table with the columns a, b and c, or those that are listed. */
function altered(changes: readonly Json[], { columns = ["a", "b", "c"], content = {} }: Listed = {}) {
  const facets = { ...schemaFacet(columns), ...gravitinoFacet({ ...content, changes }) };
  const facts = extractedFromGravitino(gravitinoEvent("alter_table", { facets }));
  const names = Object.entries(facts.nodes).filter(([name]) => name.startsWith("COLUMN"));
  return {
    ...facts,
    table: facts.nodes[`TABLE ${PATH}`],
    /** In the order of their positions. */
    columns: names
      .sort(([, one], [, other]) => Number(one["position"]) - Number(other["position"]))
      .map(([name]) => name.split("|").at(-1)),
    column: (name: string): Attributes | undefined => facts.nodes[`COLUMN ${PATH}|${name}`],
  };
}

describe("changes of the table", () => {
  test("RENAME_TABLE: all is claimed under the new name, to which the old one leads", () => {
    const facts = altered([{ type: "RENAME_TABLE", newName: "facts" }]);
    expect(facts.endings).toEqual([`TABLE ${PATH} -> TABLE gravitino|hive|dw|facts`]);
    expect(Object.keys(facts.nodes).filter((name) => name.includes("orders"))).toEqual([]);
    expect(facts.nodes).toHaveProperty(["COLUMN gravitino|hive|dw|facts|a"]);
    expect(facts.mentions).toEqual([`TABLE ${PATH}`, "TABLE gravitino|hive|dw|facts"]);
  });

  test("UPDATE_COMMENT stands above the description before it, and may take it away", () => {
    const content = { description: "old" };
    expect(altered([{ type: "UPDATE_COMMENT", newComment: "new" }], { content }).table).toMatchObject({
      description: "new",
    });
    expect(altered([{ type: "UPDATE_COMMENT" }], { content }).table).toMatchObject({ description: null });
  });

  test("SET_PROPERTY and REMOVE_PROPERTY, before and after", () => {
    const set = { type: "SET_PROPERTY", propertyKey: "ttl", propertyValue: "30" };
    const remove = { type: "REMOVE_PROPERTY", propertyKey: "ttl" };
    const properties = (change: Json, before: Json | undefined) =>
      altered([change], { content: before ? { properties: before } : {} }).table?.["properties"];
    expect(properties(set, { a: "1", ttl: "7" })).toEqual({ a: "1", ttl: "30" });
    expect(properties(remove, { a: "1", ttl: "7" })).toEqual({ a: "1" });
    expect(properties(remove, { a: "1" })).toEqual({ a: "1" });
  });

  test("SET_PROPERTY and REMOVE_PROPERTY of a table whose properties are not listed say nothing of the others", () => {
    const changes = [
      { type: "SET_PROPERTY", propertyKey: "ttl", propertyValue: "30" },
      { type: "SET_PROPERTY", propertyKey: "__proto__", propertyValue: "x" },
      { type: "REMOVE_PROPERTY", propertyKey: "owner" },
    ];
    const { table, members } = altered(changes);
    expect(table).not.toHaveProperty("properties");
    expect(members).toEqual({
      [`TABLE ${PATH}`]: [
        { attribute: "properties", member: "ttl", value: "30" },
        { attribute: "properties", member: "__proto__", value: "x" },
        { attribute: "properties", member: "owner", value: null },
      ],
    });
  });

  test("ADD_INDEX and DELETE_INDEX, before and after", () => {
    const add = { type: "ADD_INDEX", indexName: "pk", indexType: "PRIMARY_KEY", indexColumns: ["a", "b"] };
    const remove = { type: "DELETE_INDEX", indexName: "pk" };
    const indexes = (change: Json, before?: string) =>
      altered([change], { content: before === undefined ? {} : { indexes: before } }).table?.["indexes"];
    expect(indexes(add)).toBe("PRIMARY_KEY pk(a, b)");
    expect(indexes(add, "UNIQUE pk_old(a, c)")).toBe("UNIQUE pk_old(a, c),PRIMARY_KEY pk(a, b)");
    expect(indexes(add, "Index{name=pk, fields=[a,b]}")).toBe("Index{name=pk, fields=[a,b]}");
    expect(indexes(remove, "UNIQUE pk_old(a, c),PRIMARY_KEY pk(a, b)")).toBe("UNIQUE pk_old(a, c)");
    expect(indexes(remove, "PRIMARY_KEY pk(a, b)")).toBeNull();
    expect(indexes(remove)).toBeNull();
    const again = altered([remove, add], { content: { indexes: "UNIQUE pk(a),INDEX i(b)" } });
    expect(again.table?.["indexes"]).toBe("INDEX i(b),PRIMARY_KEY pk(a, b)");
  });
});

describe("changes of columns, whether the schema tells the table before or after them", () => {
  test.each([
    ["before", ["a", "b", "c"]],
    ["after", ["a", "x", "b", "c"]],
  ])("ADD_COLUMN, %s", (_, columns) => {
    const add = {
      type: "ADD_COLUMN",
      columnName: "x",
      dataType: "int",
      columnComment: "new one",
      nullable: false,
      autoIncrement: false,
      defaultValue: "0",
      position: "AFTER a",
    };
    const facts = altered([add], { columns });
    expect(facts.columns).toEqual(["a", "x", "b", "c"]);
    expect(facts.column("x")).toEqual({
      dataType: "int",
      description: "new one",
      nullable: false,
      autoIncrement: false,
      defaultValue: "0",
      position: 2,
    });
    expect(facts.endings).toEqual([]);
  });

  test.each([
    ["before", ["a", "b", "c"]],
    ["after", ["a", "c"]],
  ])("DELETE_COLUMN, %s", (_, columns) => {
    const facts = altered([{ type: "DELETE_COLUMN", columnName: "b" }], { columns });
    expect(facts.columns).toEqual(["a", "c"]);
    expect(facts.endings).toEqual([`COLUMN ${PATH}|b`]);
  });

  test.each([
    ["before", ["a", { name: "b", type: "int" }, "c"]],
    ["after", ["a", { name: "x", type: "int" }, "c"]],
  ])("RENAME_COLUMN, %s", (_, columns) => {
    const facts = altered([{ type: "RENAME_COLUMN", oldColumnName: "b", newColumnName: "x" }], { columns });
    expect(facts.columns).toEqual(["a", "x", "c"]);
    expect(facts.column("x")).toEqual({ dataType: "int", position: 2 });
    expect(facts.endings).toEqual([`COLUMN ${PATH}|b -> COLUMN ${PATH}|x`]);
  });

  test.each([
    ["before", ["a", "b", "c"]],
    ["after", ["c", "a", "b"]],
  ])("UPDATE_COLUMN_POSITION, %s", (_, columns) => {
    expect(
      altered([{ type: "UPDATE_COLUMN_POSITION", columnName: "c", position: "FIRST" }], { columns }).columns,
    ).toEqual(["c", "a", "b"]);
    expect(
      altered([{ type: "UPDATE_COLUMN_POSITION", columnName: "c", position: "AFTER z" }], { columns }).columns,
    ).toEqual(columns);
  });

  test.each<[string, Json, Attributes]>([
    ["UPDATE_COLUMN_TYPE", { dataType: "int" }, { dataType: "int" }],
    ["UPDATE_COLUMN_COMMENT", { newComment: "second" }, { description: "second" }],
    ["UPDATE_COLUMN_COMMENT", {}, { description: null }],
    ["UPDATE_COLUMN_NULLABILITY", { nullable: false }, { nullable: false }],
    ["UPDATE_COLUMN_DEFAULT_VALUE", { defaultValue: "new" }, { defaultValue: "new" }],
    ["UPDATE_COLUMN_DEFAULT_VALUE", {}, { defaultValue: null }],
    ["UPDATE_COLUMN_AUTO_INCREMENT", { autoIncrement: true }, { autoIncrement: true }],
  ])("%s %j", (type, change, attributes) => {
    const content = { columns: [{ name: "b", nullable: true, autoIncrement: false, defaultValue: "old" }] };
    const facts = altered([{ type, columnName: "b", ...change }], { content });
    expect(facts.column("b")).toMatchObject({ position: 2, ...attributes });
    expect(facts.endings).toEqual([]);
  });
});

describe("several changes at once", () => {
  test("a column that is renamed twice has one ending, under the name the table had", () => {
    const facts = altered([
      { type: "RENAME_COLUMN", oldColumnName: "a", newColumnName: "tmp" },
      { type: "RENAME_TABLE", newName: "facts" },
      { type: "RENAME_COLUMN", oldColumnName: "tmp", newColumnName: "x" },
      { type: "UPDATE_COLUMN_TYPE", columnName: "x", dataType: "int" },
    ]);
    expect(facts.endings).toEqual([
      `TABLE ${PATH} -> TABLE gravitino|hive|dw|facts`,
      `COLUMN ${PATH}|a -> COLUMN gravitino|hive|dw|facts|x`,
    ]);
    expect(facts.nodes["COLUMN gravitino|hive|dw|facts|x"]).toEqual({ dataType: "int", position: 1 });
  });

  test("two columns may change their names", () => {
    const facts = altered([
      { type: "RENAME_COLUMN", oldColumnName: "a", newColumnName: "tmp" },
      { type: "RENAME_COLUMN", oldColumnName: "b", newColumnName: "a" },
      { type: "RENAME_COLUMN", oldColumnName: "tmp", newColumnName: "b" },
    ]);
    expect(facts.columns).toEqual(["b", "a", "c"]);
    expect(facts.endings).toEqual([`COLUMN ${PATH}|a -> COLUMN ${PATH}|b`, `COLUMN ${PATH}|b -> COLUMN ${PATH}|a`]);
  });

  test("a column that is added and deleted again was never there, and one that is deleted and added is another", () => {
    const add = { type: "ADD_COLUMN", columnName: "x", dataType: "int" };
    const remove = (columnName: string) => ({ type: "DELETE_COLUMN", columnName });
    expect(altered([add, remove("x")])).toMatchObject({ columns: ["a", "b", "c"], endings: [] });
    const again = altered([remove("a"), { ...add, columnName: "a" }]);
    expect(again.endings).toEqual([`COLUMN ${PATH}|a`]);
    expect(again.column("a")).toEqual({ dataType: "int", position: 3 });
  });
});

test("a change within a column is told by the type of that column, and ends nothing", () => {
  const facts = altered(
    [
      { type: "DELETE_COLUMN", columnName: "a.city" },
      { type: "RENAME_COLUMN", oldColumnName: "a.zip", newColumnName: "code" },
      { type: "ADD_COLUMN", columnName: "a.street", dataType: "string" },
    ],
    { columns: ["a", "b"] },
  );
  expect(facts).toMatchObject({ columns: ["a", "b"], endings: [], warnings: [] });
});

test("a column that the schema does not list is claimed without a position", () => {
  const facts = altered([{ type: "UPDATE_COLUMN_TYPE", columnName: "z", dataType: "int" }]);
  expect(facts.column("z")).toEqual({ dataType: "int" });
  const alone = altered([{ type: "ADD_COLUMN", columnName: "z", dataType: "int" }], { columns: [] });
  expect(alone.column("z")).toEqual({ dataType: "int" });
});

test("more changes than any statement makes are left out, with a warning", () => {
  const changes = Array.from({ length: 1_001 }, (_, index) => ({ type: "ADD_COLUMN", columnName: `x${index}` }));
  const facts = altered(changes, { columns: [] });
  expect(facts.columns).toHaveLength(1_000);
  expect(facts.warnings).toEqual([
    "/outputs/0/facets/gravitino/changes has more than 1000 changes; the rest was left out.",
  ]);
});

test("a property may bear any name", () => {
  const set = (propertyKey: string) => ({ type: "SET_PROPERTY", propertyKey, propertyValue: "1" });
  const properties = altered([set("__proto__"), set("b")], { content: { properties: {} } }).table?.["properties"];
  expect(Object.entries(properties as object)).toEqual([
    ["__proto__", "1"],
    ["b", "1"],
  ]);
});

test("a column that is renamed to its own name stays what it is", () => {
  const facts = altered([{ type: "RENAME_COLUMN", oldColumnName: "b", newColumnName: "b" }]);
  expect(facts).toMatchObject({ columns: ["a", "b", "c"], endings: [] });
});

test("a change that is broken or not known is left out, and the others are made", () => {
  const facts = altered([
    { type: "MAKE_COFFEE" },
    { type: "RENAME_TABLE" },
    7 as never,
    { type: "UPDATE_COLUMN_TYPE", dataType: "int" },
    { type: "RENAME_COLUMN", oldColumnName: "a" },
    { type: "DELETE_COLUMN", columnName: "b" },
  ]);
  expect(facts.columns).toEqual(["a", "c"]);
  expect(facts.warnings).toEqual([
    "/outputs/0/facets/gravitino/changes/0 is no change that is known.",
    "/outputs/0/facets/gravitino/changes/1 lacks what it changes.",
    "/outputs/0/facets/gravitino/changes/2 is no change that is known.",
    "/outputs/0/facets/gravitino/changes/3 lacks what it changes.",
    "/outputs/0/facets/gravitino/changes/4 lacks what it changes.",
  ]);
});
