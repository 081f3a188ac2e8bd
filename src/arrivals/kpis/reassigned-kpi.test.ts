/** An indicator that moves to another model while a run of its old model is in flight. */
import { expect, test } from "vitest";
import { useDatabase } from "../../../test/database.ts";
import { useKpis } from "../arrivals.fixture.ts";

const database = useDatabase();
const kpis = useKpis(database);

test("a run whose indicator has moved to another model does not change its value", async () => {
  const gate = await kpis.gate();
  const slow = { engine: "warehouse", sql: `select 'KD1001' as kpi_id, 1 as value ${gate.from}` };
  await kpis.publish("A", slow);
  await kpis.arriveAsync("T");
  await kpis.reaches("A", "RUNNING");
  await kpis.define("A", { ...slow, kpis: [] });
  await kpis.publish("B", { sql: "select 'KD1001' as kpi_id, 7 as value", dependencies: [{ table: "U" }] });
  await kpis.arrive("U");
  await gate.open();
  await kpis.reaches("A", "SUCCESS");
  expect(await kpis.values()).toEqual(["KD1001=7"]);
  expect(await kpis.tasks("A")).toMatchObject([{ status: "SUCCESS", computeCount: 1, storageCount: 0 }]);
});
