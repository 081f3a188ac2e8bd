import { beforeEach, describe, expect, test } from "vitest";
import { useDatabase } from "../../../test/database.ts";
import {
  dataset,
  gravitinoEvent,
  gravitinoFacet,
  type Json,
  lifecycleFacet,
  runEvent,
  schemaFacet,
} from "../events.fixture.ts";
import { sourceOf } from "../graph/stories.fixture.ts";
import { testLineage } from "../lineage.fixture.ts";
import { assetDetail } from "./asset.ts";

const database = useDatabase();
const lineage = testLineage(database);
let tenant: string;

beforeEach(async () => {
  tenant = await lineage.tenant();
});

const timeAt = (second: number) => new Date(Date.parse("2026-03-01T10:00:00Z") + second * 1_000).toISOString();
/** One event for each second. */
async function send(...events: Json[]): Promise<void> {
  for (const [second, event] of events.entries()) {
    await lineage.send(tenant, { ...event, eventTime: timeAt(second) }, { source: sourceOf(event) });
  }
}
const create = (...columns: string[]) =>
  gravitinoEvent("create_table", {
    facets: { ...schemaFacet(columns), ...gravitinoFacet({ description: `with ${columns.join(" and ")}` }) },
  });
const drop = gravitinoEvent("drop_table", { facets: lifecycleFacet("DROP") });
const read = runEvent({ jobName: "report", inputs: [dataset("gravitino://tenant/7/lake/hive", "dw.orders")] });
const dropColumn = (columnName: string, ...columns: string[]) =>
  gravitinoEvent("alter_table", {
    facets: { ...schemaFacet(columns), ...gravitinoFacet({ changes: [{ type: "DELETE_COLUMN", columnName }] }) },
  });

async function idOf(name: string): Promise<string> {
  const [row] = await database.query<{ id: string }>(
    "select id::text from lineage.node where tenant_id = $1 and name = $2 and kind <> 'JOB'",
    [tenant, name],
  );
  return row?.id ?? "";
}
const detail = async (name: string, of = tenant) => assetDetail(database.db, of, await idOf(name));
/** When it was dropped, and by what. */
async function dropped(name: string) {
  const { droppedAt, droppedBy } = await detail(name);
  return [droppedAt && Math.round((Date.parse(droppedAt) - Date.parse(timeAt(0))) / 1_000), droppedBy?.jobName ?? null];
}

describe("a dropped table", () => {
  test("is shown with what was known of it last, the event that dropped it, and no neighbours", async () => {
    await send(create("old", "key"), read, dropColumn("old", "key"), drop);
    const table = await detail("orders");
    expect(table).toMatchObject({
      kind: "TABLE",
      fullName: "hive.dw.orders",
      attributes: { description: "with old and key" },
      neighbours: {},
      droppedAt: "2026-03-01T10:00:03.000000Z",
      droppedBy: { jobName: "gravitino.drop_table", eventTime: "2026-03-01T10:00:03.000000Z" },
    });
    // `old` was dropped before.
    expect(table.columns.map(({ name, attributes }) => [name, attributes["dataType"]])).toEqual([["key", "string"]]);
    expect(table.history.map(({ jobName }) => jobName)).toEqual([
      "gravitino.drop_table",
      "gravitino.alter_table",
      "report",
      "gravitino.create_table",
    ]);
    expect([await dropped("old"), await dropped("key")]).toEqual([
      [2, "gravitino.alter_table"],
      [3, "gravitino.drop_table"],
    ]);
    // The schema had nothing else.
    expect(await dropped("dw")).toEqual([expect.any(Number), null]);
    await expect(detail("orders", await lineage.tenant())).rejects.toThrow("no asset");
  });

  test("that is created again is not, with nothing of what it was", async () => {
    await send(create("old"), drop, create("new"));
    const table = await detail("orders");
    expect(table).toMatchObject({ droppedAt: null, droppedBy: null, attributes: { description: "with new" } });
    expect(table.columns.map(({ name }) => name)).toEqual(["new"]);
    await send(create("old"), drop, create("new"), drop);
    expect(await dropped("orders")).toEqual([3, "gravitino.drop_table"]);
  });

  test("was dropped by the event of its schema, if it was dropped with it", async () => {
    await send(
      create("key"),
      drop,
      create("key"),
      gravitinoEvent("drop_schema", { name: "dw", facets: lifecycleFacet("DROP") }),
    );
    expect([await dropped("orders"), await dropped("key"), await dropped("dw")]).toEqual([
      [3, "gravitino.drop_schema"],
      [3, "gravitino.drop_schema"],
      [3, "gravitino.drop_schema"],
    ]);
  });
});

test("a column is dropped by the first full sync that does not list it", async () => {
  for (const [second, columns] of [["a", "b"], ["a", "b"], ["a"], ["a"]].entries()) {
    const event = { ...gravitinoEvent("create_table", { facets: schemaFacet(columns) }), eventTime: timeAt(second) };
    await lineage.send(tenant, event, { baseline: true });
  }
  expect(await dropped("b")).toEqual([2, "gravitino.create_table"]);
});
