/** The text of an asset, and the hash that a task knows it by. */
import { createHash } from "node:crypto";
import { expect, test } from "vitest";
import { columnName, NODE_KINDS, tableName } from "../graph/names.ts";
import { EMBEDDED_KINDS, embeddedText, textOf } from "./text.ts";

const ORDERS = tableName("gravitino", "lake", "sales", "orders");

test("an asset is told by its kind, its whole name and what describes it", () => {
  expect(textOf(ORDERS, { description: "all orders", tags: ["pii", "gold"] })?.text).toBe(
    "table lake.sales.orders\nall orders\npii gold",
  );
  expect(textOf(columnName(ORDERS, "id"), { dataType: "bigint", description: null, nullable: false })?.text).toBe(
    "column lake.sales.orders.id",
  );
  expect(textOf(tableName("external", "s3://bucket", "", "a/b.parquet"), {})?.text).toBe(
    "table s3://bucket.a/b.parquet",
  );
  const metric = { kind: "METRIC", path: ["gravitino", "lake", "sales", "gmv"] } as const;
  expect(textOf(metric, { code: "gmv", name: "成交额", unit: "CNY" })?.text).toBe("metric lake.sales.gmv\n成交额\nCNY");
  expect(textOf({ kind: "TAG", path: ["pii"] }, { description: "personal" })?.text).toBe("tag pii\npersonal");
  expect(textOf({ kind: "SQL", path: ["ns", "job", "hash"] }, { content: "select 1" })?.text).toBe("sql job\nselect 1");
});

test("every kind but jobs has one", () => {
  expect([...EMBEDDED_KINDS].sort()).toEqual(NODE_KINDS.filter((kind) => kind !== "JOB").sort());
  expect(textOf({ kind: "JOB", path: ["ns", "job"] }, { description: "x" })).toBeUndefined();
});

test("the hash is that of the text, so what is not in it does not count", () => {
  const one = textOf(ORDERS, { description: "all orders", creator: "a", lastModifiedTime: "2024" });
  expect(one?.hash).toBe(
    createHash("sha256")
      .update(one?.text ?? "")
      .digest("hex"),
  );
  expect(textOf(ORDERS, { description: "all orders", creator: "b" })?.hash).toBe(one?.hash);
  expect(textOf(ORDERS, { description: "some orders" })?.hash).not.toBe(one?.hash);
});

test("a text is cut off, and never in the middle of a character", () => {
  const long = textOf(ORDERS, { description: "😀".repeat(20_000) })?.text ?? "";
  expect(long.length).toBeLessThanOrEqual(8_000);
  expect(long.isWellFormed()).toBe(true);
  const sql = textOf({ kind: "SQL", path: ["n", "j", "h"] }, { content: "x".repeat(50_000) })?.text ?? "";
  expect(sql).toHaveLength(16_000);
  expect(embeddedText(sql, "Reads x.")).toHaveLength(8_000);
  expect(embeddedText(sql, "Reads x.")).toMatch(/^Reads x\.\nsql j/);
});
