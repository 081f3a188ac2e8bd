/** Changes of a model while a run of it ends: neither waits for the other in a circle. */
import { beforeAll, describe, expect, test } from "vitest";
import { useDatabase } from "../../../test/database.ts";
import { modelBody, TODAY, useKpis } from "../arrivals.fixture.ts";

const database = useDatabase();
// A deadlock is resolved only after this time, so a test that causes one does not end in time.
beforeAll(() =>
  database.query(`do $$ begin
    execute format('alter database %I set deadlock_timeout = ''10min''', current_database());
  end $$`),
);
const kpis = useKpis(database);
const CHANGES = 20;

/** A run that has stored its values and stops before it ends; a table has arrived meanwhile, so it has a follow-up. */
async function endingRun(): Promise<{ goOn(): Promise<void> }> {
  const gate = await kpis.gate();
  await kpis.publish("M", { engine: "warehouse", sql: `select 'KD1001' as kpi_id, 1 as value ${gate.from}` });
  await kpis.compute("KC1", "KD1001 * 2");
  await kpis.arriveAsync("T");
  await kpis.reaches("M", "RUNNING");
  await kpis.arriveAsync("T");
  const client = await database.db.dedicated("computation");
  await client.query("select pg_advisory_lock(hashtextextended('arrivals.computed ' || $1, 0))", [TODAY]);
  await gate.open();
  await kpis.untilBlocked(1, "advisory", "arrivals.computed");
  return { goOn: () => client.end() };
}

describe("a run that ends with a follow-up", () => {
  test("ends while its model is replaced", async () => {
    const { goOn } = await endingRun();
    const put = kpis.put("/models/M", modelBody());
    await kpis.untilBlocked(1, "transactionid", "metrics_model_kpi");
    await goOn();
    expect((await put).status).toBe(200);
    await kpis.reaches("M", "SUCCESS", 2);
  });

  test("ends while its model is deleted", async () => {
    const { goOn } = await endingRun();
    const removed = kpis.api.delete("/api/v1/kpi/models/M");
    await kpis.untilBlocked(1, "transactionid", "metrics_model");
    await goOn();
    expect((await removed).status).toBe(200);
    // The follow-up may have started before the model was gone.
    expect((await kpis.tasks("M")).at(-1)).toMatchObject({ generation: 1, status: "SUCCESS" });
    expect(await kpis.values()).toEqual([]);
  });

  test("ends while its model is replaced and published again and again, and what it produces runs another", async () => {
    await kpis.publish("M", { produces: "U" });
    const sql = "select 'KD2' as kpi_id, 1 as value";
    await kpis.publish("N", { dependencies: [{ table: "U" }], kpis: ["KD2"], sql });
    await kpis.compute("KC1", "KD1001 + KD2");
    const changes = Array.from({ length: CHANGES }, async (_, index) => {
      await kpis.arriveAsync("T");
      const model = { name: `M ${index}`, produces: "U" };
      return [await kpis.put("/models/M", modelBody(model)), await kpis.post("/models/M:publish")];
    });
    const statuses = (await Promise.all(changes)).flat().map(({ status }) => status);
    expect(new Set(statuses)).toEqual(new Set([200]));
  });
});
