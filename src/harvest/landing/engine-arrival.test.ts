/** Landing in a table of a Postgres engine by a running Millrace that has no lake: the window lands, the table arrives, and a model reads it. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Json } from "../../../test/client.ts";
import { useDatabase } from "../../../test/database.ts";
import { until } from "../../../test/until.ts";
import { correct, itemsOf, useScripted } from "../run/scripted.fixture.ts";

const database = useDatabase();
const warehouse = useDatabase();
const directory = mkdtempSync(join(tmpdir(), "millrace-landing-"));
const config = join(directory, "millrace.yaml");
beforeAll(() => {
  writeFileSync(config, JSON.stringify({ engines: { warehouse: { kind: "postgres", url: warehouse.url } } }));
});
afterAll(() => rmSync(directory, { recursive: true }));
const harvests = useScripted(database, { MILLRACE_CONFIG: config });

const landingIn = (engine: string) => ({ landing: { table: "engine_items", engine, grain: "day" } });

test("a harvested window lands in the engine, arrives, and a model that depends on the table reads it", async () => {
  const { api } = harvests;
  await api.put("/api/v1/kpi/indicators/KE1", { type: "EXTENDED", name: "Items" });
  const sql = "select 'KE1' as kpi_id, count(*) as value from engine_items where op_time = $op_time and not _deleted";
  const model = { name: "Items", engine: "warehouse", sql, dependencies: [{ table: "engine_items" }], kpis: ["KE1"] };
  const defined = await api.put("/api/v1/kpi/models/ITEMS", model);
  expect(defined.status, JSON.stringify(defined.body)).toBeLessThan(300);
  expect((await api.post("/api/v1/kpi/models/ITEMS:publish")).status).toBeLessThan(300);

  const source = await harvests.source(correct(itemsOf(12)), landingIn("warehouse"));
  expect(await harvests.harvest(source)).toMatchObject({ status: "COMPLETE" });
  const [value] = await until(async () => {
    const { body } = await api.get<{ items: Json[] }>("/api/v1/kpi/data?opTime=20260801");
    return body.items.length > 0 && body.items;
  }, "the value of the model");
  expect(value).toMatchObject({ kpiId: "KE1", value: 12 });
  expect(await warehouse.query("select op_time, count(*)::int as rows from engine_items group by 1")).toEqual([
    { op_time: "20260801", rows: 12 },
  ]);
  const arrivals = await api.get("/api/v1/kpi/arrivals?table=engine_items");
  expect(arrivals.body).toMatchObject({ items: [{ opTime: "20260801" }] });
});

test("an engine that there is not is refused when the definition is applied", async () => {
  await expect(harvests.source(correct([]), landingIn("warehous"))).rejects.toThrow(
    "There is no engine `warehous`. Did you mean `warehouse`?",
  );
});
