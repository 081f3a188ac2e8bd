import { expect, test } from "vitest";
import { useDatabase } from "../../../test/database.ts";
import { columnName, tableName } from "./names.ts";
import { queryWords, wordsOf } from "./words.ts";

const database = useDatabase();

async function finds(stored: string, asked: string): Promise<boolean> {
  const [row] = await database.query<{ found: boolean }>(
    "select to_tsvector('simple', $1) @@ to_tsquery('simple', $2) as found",
    [wordsOf(tableName("external", "lake", "shop", stored), {}), queryWords(asked)],
  );
  return row?.found ?? false;
}

test.each([
  ["order_line_items", "line"],
  ["order_line_items", "order items"],
  ["order_line_items", "orderlineitems"],
  ["order_line_items", "order_line_items"],
  ["orderLineItems", "line"],
  ["orderLineItems", "order_line"],
  ["OrderLineItems", "orderLineItems"],
  ["HTTPRequestLog", "http"],
  ["HTTPRequestLog", "request log"],
  ["orders2024", "orders 2024"],
  ["orders_2024", "orders2024"],
  ["s3/raw/2024-01-02/part.parquet", "raw parquet"],
  ["customers", "cust"],
  ["customers", "lake.shop.cust"],
  ["订单明细表", "订单"],
  ["订单明细表", "明细表"],
  ["订单明细表", "单"],
  ["dwd_订单_id", "订单 id"],
  ["売上データ", "データ"],
  ["주문내역", "내역"],
  ["ｏｒｄｅｒｓ", "orders"],
  ["größe_straße", "größe"],
  ["заказы_клиентов", "клиент"],
  ["v1e5", "v1e5"],
])("the table %s is found by %s", async (stored, asked) => {
  expect(await finds(stored, asked)).toBe(true);
});

test.each([
  ["order_line_items", "orders"],
  ["order_line_items", "cust"],
  ["customers", "cust orders"],
  ["订单明细表", "订明"],
  ["customers", "external"],
])("the table %s is not found by %s", async (stored, asked) => {
  expect(await finds(stored, asked)).toBe(false);
});

test("what is told of an asset is found by its words, and what tells nothing is left out", () => {
  const table = tableName("gravitino", "lake", "shop", "orders");
  const attributes = {
    description: "All orders, one row per customer's purchase",
    tags: [{ key: "pii", value: "high" }],
    properties: { team: "billing" },
    createTime: "2024-01-02T03:04:05Z",
    producer: "https://example.com/spark",
  };
  expect(wordsOf(table, attributes)).toBe("lake shop orders all one row per customer s purchase pii high billing");
  expect(wordsOf(columnName(table, "customerId"), { dataType: "bigint", position: 3 })).toBe(
    "lake shop orders customer id customerid bigint",
  );
});

test("a statement of any length gives a bounded number of words", () => {
  const content = Array.from({ length: 50_000 }, (_, index) => `col_${index}`).join(", ");
  const words = wordsOf({ kind: "SQL", path: ["spark", "daily", "ab12"] }, { content }).split(" ");
  expect(words.length).toBeLessThan(4_000);
  expect(words).toContain("col7");
  expect(words).not.toContain("ab12");
});

test("no search text can be read as an operator, and one without words looks for nothing", async () => {
  for (const asked of [
    "!a | (b & c)",
    "a <-> b:*",
    "'; drop table x --",
    "a\\",
    "a:A",
    "*",
    "_",
    "  ",
    "( )",
    "😀",
    "ʼ",
    "٣",
  ]) {
    await expect(finds("x", asked), asked).resolves.toBeTypeOf("boolean");
  }
  expect(queryWords("! & | '")).toBe("");
  expect(queryWords("Order's id")).toBe("order & s & id:*");
  expect(queryWords("a ".repeat(100))).toBe("a:*");
  expect(queryWords(Array.from({ length: 40 }, (_, n) => `w${"x".repeat(n)}`).join(" ")).split(" & ")).toHaveLength(16);
});
