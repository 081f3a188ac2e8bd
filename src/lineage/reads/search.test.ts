import { beforeAll, describe, expect, test } from "vitest";
import { useDatabase } from "../../../test/database.ts";
import { createGraph, type TestGraph } from "../graph/graph.fixture.ts";
import { type Search, type Semantic, search } from "./search.ts";

const database = useDatabase();
let graph: TestGraph;
let other: TestGraph;
const ids: Record<string, string> = {};

function find(q: string, asked: Partial<Search> = {}, semantic?: Semantic, of = graph) {
  return search(database.db, semantic, of.tenantId, {
    q,
    kind: null,
    limit: 20,
    mode: "text",
    dropped: false,
    ...asked,
  });
}
const names = async (q: string, asked: Partial<Search> = {}) => (await find(q, asked)).items.map(({ name }) => name);

beforeAll(async () => {
  [graph, other] = [await createGraph(database, "1"), await createGraph(database, "2")];
  ids["lines"] = await graph.table("shop.order_lines", { description: "One row for each article of a purchase" });
  ids["orders"] = await graph.table("shop.orders", { description: "Every purchase, with its customer" });
  ids["customers"] = await graph.table("shop.customers", { description: "Who placed orders" });
  ids["amount"] = await graph.column("shop.orders.amount", { dataType: "decimal" });
  ids["daily"] = await graph.sql("daily_load", `insert into x select ${"col, ".repeat(60)} customer_key from orders`);
  ids["gone"] = await graph.table("shop.orders_old");
  await graph.drop(ids["gone"] ?? "");
  await other.table("shop.orders");
});

describe("by words", () => {
  test("the asset of that name comes first, then those with the word in their names, then those that speak of it", async () => {
    expect(await names("orders")).toEqual(["orders", "amount", "customers", "daily_load"]);
    // A whole word counts more than the beginning of one.
    expect(await names("order")).toEqual(["order_lines", "orders", "amount", "customers", "daily_load"]);
  });

  test("the last word may be unfinished, and all must be there", async () => {
    expect(await names("purchase custom")).toEqual(["orders"]);
    expect(await names("purchase nothing")).toEqual([]);
  });

  test("a hit says where it was found, with some of the text around", async () => {
    const { items } = await find("customer key");
    expect(items).toHaveLength(1);
    expect(items[0]?.matched[0]?.field).toBe("content");
    expect(items[0]?.matched[0]?.snippet).toMatch(/^….*customer_key from orders$/);
    expect((await find("article")).items[0]?.matched).toEqual([
      { field: "description", snippet: "One row for each article of a purchase" },
    ]);
  });

  test("a kind narrows the search, and the limit ends it", async () => {
    expect(await names("orders", { kind: "COLUMN" })).toEqual(["amount"]);
    expect(await names("orders", { limit: 1 })).toEqual(["orders"]);
  });

  test("dropped assets are found only if they are asked for", async () => {
    expect(await names("orders_old")).toEqual([]);
    const { items } = await find("orders", { dropped: true });
    expect(items.map(({ name, isDropped }) => [name, isDropped])).toEqual([
      ["orders", false],
      ["orders_old", true],
      ["amount", false],
      ["customers", false],
      ["daily_load", false],
    ]);
    expect((await find("orders_old", { dropped: true }, undefined, other)).items).toEqual([]);
  });

  test("text without a word finds nothing", async () => {
    expect(await names("!&|")).toEqual([]);
  });

  test("of thousands of assets with the word, the one of that name is still the first", async () => {
    const big = await createGraph(database, "3");
    await database.query(
      `insert into lineage.node (tenant_id, kind, key, path, name, words)
       select 3, 'COLUMN', gen_random_uuid(), array['x', 'c', 's', 't', 'needle' || n], 'needle' || n, to_tsvector('simple', 'needle')
       from generate_series(1, 5000) n`,
    );
    await big.table("shop.needle");
    const { items } = await find("needle", {}, undefined, big);
    expect(items[0]?.name).toBe("needle");
  });
});

describe("by meaning", () => {
  const near: Semantic = async () => [
    { nodeId: ids["customers"] ?? "", score: 0.9 },
    { nodeId: ids["orders"] ?? "", score: 0.8 },
    { nodeId: ids["gone"] ?? "", score: 0.7 },
  ];
  const none: Semantic = async () => undefined;

  test("the nearest come first, without those that are gone", async () => {
    const { items, mode } = await find("clients", { mode: "semantic" }, near);
    expect(mode).toBe("semantic");
    expect(items.map(({ name, score }) => [name, score])).toEqual([
      ["customers", 0.9],
      ["orders", 0.8],
    ]);
    expect(items[0]?.matched).toEqual([{ field: "meaning", snippet: "" }]);
  });

  test("both together put first what both have found", async () => {
    const { items, notice } = await find("orders", { mode: "hybrid" }, near);
    expect(items.slice(0, 2).map(({ name }) => name)).toEqual(["orders", "customers"]);
    expect(notice).toBeNull();
  });

  test("without a model, a hybrid search is one by words and says so, and a semantic one is refused", async () => {
    for (const semantic of [none, undefined]) {
      const { items, mode, notice } = await find("orders", { mode: "hybrid" }, semantic);
      expect({ first: items[0]?.name, mode }).toEqual({ first: "orders", mode: "text" });
      expect(notice).toContain("no model");
      const refused = find("orders", { mode: "semantic" }, semantic);
      await expect(refused).rejects.toMatchObject({ code: "SEMANTIC_UNAVAILABLE", status: 409 });
    }
  });
});
