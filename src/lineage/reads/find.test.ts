import { beforeAll, expect, test } from "vitest";
import { useDatabase } from "../../../test/database.ts";
import {
  dataset,
  gravitinoEvent,
  gravitinoFacet,
  type Json,
  runEvent,
  schemaFacet,
  symlinksFacet,
} from "../events.fixture.ts";
import { sourceOf } from "../graph/stories.fixture.ts";
import { testLineage } from "../lineage.fixture.ts";
import { findAsset } from "./find.ts";
import { fullName } from "./shown.ts";

const database = useDatabase();
const lineage = testLineage(database);
const HIVE = "gravitino://tenant/7/lake/hive";
let tenant: string;

const found = async (text: string) => fullName(await findAsset(database.db, tenant, text));
const at = (minute: number, event: Json): Json => ({ ...event, eventTime: `2026-03-01T10:0${minute}:00Z` });

beforeAll(async () => {
  tenant = await lineage.tenant();
  const inputs = [
    dataset("hdfs://namenode:8020", "/warehouse/shop.db/orders", schemaFacet(["amount"])),
    dataset("hdfs://nn.example.org:8020", "/warehouse/customers"),
    dataset("hdfs://nameservice1", "/warehouse/linked", symlinksFacet(["hive://metastore:9083", "dw.linked"])),
    dataset("hdfs://nameservice1", "/warehouse/renamed", symlinksFacet([HIVE, "dw.renamed"])),
    dataset("s3://bucket", "raw/2026/events.parquet"),
    dataset("s3a://bucket", "/raw/absolute"),
    dataset("gs://bucket", "raw/trailing/"),
    dataset("abfss://container@account.dfs.core.windows.net", "lake/table"),
    dataset("file", "/tmp/local/file.csv"),
    dataset("kafka://broker:9092", "topic.orders"),
    dataset("postgres://db:5432", "shop.public.orders", schemaFacet(["id"])),
    dataset(HIVE, "dw.managed", schemaFacet(["id"])),
  ];
  const rename = { type: "RENAME_TABLE", newName: "renamed_since" };
  const events = [
    at(0, runEvent({ inputs })),
    at(1, gravitinoEvent("create_table", { name: "dw.renamed", facets: schemaFacet(["x"]) })),
    at(2, gravitinoEvent("alter_table", { name: "dw.renamed", facets: gravitinoFacet({ changes: [rename] }) })),
  ];
  for (const event of events) await lineage.send(tenant, event, { source: sourceOf(event) });
});

test.each([
  ["hdfs://namenode:8020/warehouse/shop.db/orders", "hdfs://namenode:8020./warehouse/shop.db/orders"],
  ["hdfs://namenode:8020/warehouse/shop.db/orders/", "hdfs://namenode:8020./warehouse/shop.db/orders"],
  ["hdfs://namenode:8020/warehouse/shop.db/orders.amount", "hdfs://namenode:8020./warehouse/shop.db/orders.amount"],
  ["hdfs://nn.example.org:8020/warehouse/customers", "hdfs://nn.example.org:8020./warehouse/customers"],
  ["s3://bucket/raw/2026/events.parquet", "s3://bucket.raw/2026/events.parquet"],
  ["s3a://bucket/raw/absolute", "s3a://bucket./raw/absolute"],
  ["gs://bucket/raw/trailing", "gs://bucket.raw/trailing/"],
  [
    "abfss://container@account.dfs.core.windows.net/lake/table",
    "abfss://container@account.dfs.core.windows.net.lake/table",
  ],
  ["file:/tmp/local/file.csv", "file./tmp/local/file.csv"],
  ["file:///tmp/local/file.csv", "file./tmp/local/file.csv"],
  ["kafka://broker:9092/topic.orders", "kafka://broker:9092.topic.orders"],
  ["postgres://db:5432/shop.public.orders", "postgres://db:5432.shop.public.orders"],
  ["postgres://db:5432/shop.public.orders.id", "postgres://db:5432.shop.public.orders.id"],
  [`${HIVE}/dw.managed`, "hive.dw.managed"],
])("the address %s finds the dataset that it is of", async (address, name) => {
  expect(await found(address)).toBe(name);
});

test("a location finds the table that a symlink says it is, also once that has another name", async () => {
  expect(await found("hdfs://nameservice1/warehouse/linked")).toBe("hive://metastore:9083.dw.linked");
  expect(await found("hdfs://nameservice1./warehouse/linked"), "as lists show it").toBe(
    "hive://metastore:9083.dw.linked",
  );
  expect(await found("hdfs://nameservice1/warehouse/renamed")).toBe("hive.dw.renamed_since");
  expect(await found("hdfs://nameservice1/warehouse/renamed.x")).toBe("hive.dw.renamed_since.x");
});

test.each(["hdfs://namenode:8020/warehouse/nothing", "hdfs://namenode:8020/", "file:/", "://", "x:/"])(
  "%s is of nothing",
  async (address) => {
    await expect(findAsset(database.db, tenant, address)).rejects.toMatchObject({
      code: "ASSET_NOT_FOUND",
      status: 404,
    });
  },
);
