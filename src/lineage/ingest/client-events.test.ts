/** What unmodified clients send, as whole stories: by events of our own of the same shape, and by recorded ones where there are some. */
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { useDatabase } from "../../../test/database.ts";
import { columnLineageFacet, dataset, type Json, lifecycleFacet, runEvent, symlinksFacet } from "../events.fixture.ts";
import type { GraphChange } from "../graph/apply.ts";
import { testLineage } from "../lineage.fixture.ts";
import { findAsset } from "../reads/find.ts";
import { impactOf } from "../reads/impact.ts";

const FOLDER = join(process.env["MILLRACE_OPENLINEAGE_DATA"] ?? "", "clients");
const isRecorded = process.env["MILLRACE_OPENLINEAGE_DATA"] !== undefined && existsSync(FOLDER);
if (!isRecorded) console.warn("MILLRACE_OPENLINEAGE_DATA names no folder with clients/: recorded events are not read");

const database = useDatabase();
const doubted: GraphChange["doubted"][number][] = [];
const lineage = testLineage(database, { onChange: async (_, __, change) => void doubted.push(...change.doubted) });

async function send(tenant: string, events: readonly Json[]): Promise<void> {
  for (const event of events) await lineage.send(tenant, event, { source: "COMPUTE_ENGINE" });
}

/** The tables that a change of this one reaches. */
async function reached(tenant: string, table: string): Promise<string[]> {
  const asset = await findAsset(database.db, tenant, table);
  const { items } = await impactOf(database.db, tenant, asset, () => performance.now());
  return items.filter(({ kind }) => kind === "TABLE").map(({ name }) => name);
}

function recorded(file: string): Json[] {
  const lines = readFileSync(join(FOLDER, file), "utf8").trim().split("\n");
  return lines.map((line) => JSON.parse(line) as Json);
}

describe("dbt, which lists no inputs beside column lineage", () => {
  const DUCKDB = "duckdb:///data/shop.duckdb";
  const model = (name: string, source: string, eventType = "COMPLETE") =>
    runEvent({
      jobNamespace: "dbt",
      jobName: `shop.main.${name}`,
      eventType,
      outputs: [
        dataset(DUCKDB, `shop.main.${name}`, columnLineageFacet({ id: [[DUCKDB, `shop.main.${source}`, "id"]] })),
      ],
    });

  test("tells what a change of a source reaches", async () => {
    const tenant = await lineage.tenant();
    await send(tenant, [model("stg_orders", "raw_orders", "START"), model("stg_orders", "raw_orders")]);
    await send(tenant, [model("by_customer", "stg_orders")]);
    expect(await reached(tenant, "shop.main.raw_orders")).toEqual(["stg_orders", "by_customer"]);
  });

  test.skipIf(!isRecorded)("does so in recorded events", async () => {
    const tenant = await lineage.tenant();
    await send(tenant, recorded("dbt-1.10.jsonl"));
    expect(await reached(tenant, "shop.main.raw_orders")).toEqual(
      expect.arrayContaining(["stg_orders", "by_customer", "not_null_stg_orders_id"]),
    );
    expect(await reached(tenant, "shop.main.raw_customers")).toEqual(
      expect.arrayContaining(["stg_customers", "by_customer"]),
    );
  });
});

describe("Spark", () => {
  /** As it reports one that failed: complete, with an old name that it has cut from the new one. */
  const failedRename = (target: string, garbled: string) =>
    runEvent({
      jobName: "tail.execute_alter_table_rename_command",
      eventTime: "2026-11-16T06:29:40Z",
      outputs: [
        dataset("file", `/data/sp/wh/shop.db/${target}`, {
          ...symlinksFacet(["file:/data/sp/wh", `shop.${target}`]),
          ...lifecycleFacet("RENAME", { namespace: "file", name: `/data/sp/wh/shop.db/${garbled}` }),
        }),
      ],
    });

  test("loses no lineage by a rename that it reports and that failed", async () => {
    const tenant = await lineage.tenant();
    const table = (name: string) =>
      dataset("file", `/data/sp/wh/shop.db/${name}`, symlinksFacet(["file:/data/sp/wh", `shop.${name}`]));
    const copy = runEvent({ jobName: "copy", inputs: [table("orders")], outputs: [table("daily")] });
    await send(tenant, [copy, failedRename("orders", "orderss")]);
    expect(await reached(tenant, "shop.orders")).toEqual(["shop.daily"]);
    expect(doubted).toMatchObject([{ doubt: "unknown" }]);
  });

  test.skipIf(!isRecorded)(
    "renames a table with its lineage, and fails to rename onto one, in recorded events",
    async () => {
      const tenant = await lineage.tenant();
      doubted.length = 0;
      await send(tenant, recorded("spark-3.5.jsonl"));
      expect(doubted).toEqual([]);
      // What was read from the table under its first name and under its second; and not what was made of the next table of the first name.
      expect(await reached(tenant, "shop.orders")).toContain("shop.ctas2");
      expect(await reached(tenant, "shop.ctas2")).toEqual(
        expect.arrayContaining(["/data/sp/out/from_view", "/data/sp/out/from_ctas2"]),
      );
      const [orders, before] = [await reached(tenant, "shop.orders"), await lineage.graph(tenant)];
      await send(tenant, [failedRename("orders", "ordersorders"), failedRename("orders", "customers")]);
      expect(await reached(tenant, "shop.orders")).toEqual(orders);
      expect(doubted.map(({ doubt }) => doubt)).toEqual(["unknown", "taken"]);
      const isOfRename = (edge: string) => edge.includes("execute_alter_table_rename_command");
      const { edges } = await lineage.graph(tenant);
      expect(edges.filter((edge) => !isOfRename(edge))).toEqual(before.edges.filter((edge) => !isOfRename(edge)));
    },
  );
});
