import { describe, expect, test } from "vitest";
import { datasetTable, gravitinoNamespace } from "./dataset-names.ts";

describe("a namespace of Gravitino", () => {
  test.each([
    ["gravitino", {}],
    ["gravitino://lake", { metalake: "lake" }],
    ["gravitino://lake/hive", { metalake: "lake", catalog: "hive" }],
    ["gravitino://tenant/7", { tenantId: "7" }],
    ["gravitino://tenant/7/lake", { tenantId: "7", metalake: "lake" }],
    ["gravitino://tenant/7/lake/hive", { tenantId: "7", metalake: "lake", catalog: "hive" }],
    ["gravitino://tenant/hive", { metalake: "tenant", catalog: "hive" }],
  ])("%s", (namespace, parts) => {
    expect(gravitinoNamespace(namespace)).toEqual(parts);
  });

  test("is none that only looks like it", () => {
    expect(gravitinoNamespace("gravitino-prod")).toBeUndefined();
    expect(gravitinoNamespace("hive://gravitino")).toBeUndefined();
  });
});

describe("a dataset is a table", () => {
  test.each([
    ["gravitino://lake/hive", "dw.orders", "gravitino|hive|dw|orders"],
    ["gravitino://tenant/7/lake/hive", "dw.orders", "gravitino|hive|dw|orders"],
    ["gravitino://lake", "hive.dw.orders", "gravitino|hive|dw|orders"],
    ["gravitino://lake/files", "landing", "gravitino|files||landing"],
  ])("of Gravitino: %s %s", (namespace, name, path) => {
    expect(datasetTable(namespace, name).path.join("|")).toBe(path);
  });

  test.each([
    ["postgres://db:5432", "shop.public.orders", "shop.public", "orders"],
    ["jdbc:postgresql://db:5432", "shop.public.orders", "shop.public", "orders"],
    ["mysql://db:3306", "shop.orders", "shop", "orders"],
    ["hive://metastore:9083", "dw.orders", "dw", "orders"],
    ["bigquery", "project.dataset.orders", "project.dataset", "orders"],
    ["snowflake://org-account", "DB.PUBLIC.ORDERS", "DB.PUBLIC", "ORDERS"],
    ["Trino://t:8080", "hive.dw.orders", "hive.dw", "orders"],
    ["sqlserver://db", "orders", "", "orders"],
    ["arn:aws:glue:us-west-2:123", "table/dw/orders", "dw", "orders"],
    ["aws:glue:us-west-2:123", "dw.orders", "dw", "orders"],
  ])("of a database, cut at the last dot: %s %s", (namespace, name, schema, table) => {
    expect(datasetTable(namespace, name).path).toEqual(["external", namespace, schema, table]);
  });

  test.each([
    ["s3://bucket", "w/a.b/c.parquet"],
    ["file", "/w/a.b/c.parquet"],
    ["hdfs://nn:9000", "/w/dw.db/orders"],
    ["kafka://k:9092", "shop.orders.v1"],
    ["food_delivery", "public.orders"],
    ["postgres-exports", "a.b"],
    ["gravitino", "hive"],
    ["mysql://db", ".hidden"],
    ["mysql://db", "dot."],
  ])("without a schema, its name kept whole: %s %s", (namespace, name) => {
    expect(datasetTable(namespace, name).path).toEqual(["external", namespace, "", name]);
  });
});
