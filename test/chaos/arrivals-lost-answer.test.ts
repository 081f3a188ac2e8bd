/** The answer to a commit is lost: nobody knows whether the claim, the end of the run or the arrival itself was written. */
import { expect, test } from "vitest";
import { findViolations } from "../../src/arrivals/store/invariants.ts";
import { announce, defineModel, KPI, openPlant, valuesOf } from "../arrivals-plant.ts";
import { useDatabase } from "../database.ts";
import { until } from "../until.ts";
import { startCuttingProxy } from "./cutting-proxy.ts";

const QUICK = { engine: "duckdb", sql: `select '${KPI}' as kpi_id, 7 as value` };

const database = useDatabase();

test("a model runs once whose claim, end or arrival was committed without an answer", async () => {
  const plant = await openPlant(database);
  const [workerWay, apiWay] = [await startCuttingProxy(database), await startCuttingProxy(database)];
  const [api, worker] = await Promise.all([plant.start("api,scheduler", apiWay), plant.start("worker", workerWay)]);
  await defineModel(api, QUICK);

  const ended = workerWay.cut("arrivals.instance.end");
  await announce(api.api, "ended");
  await ended;
  expect(await plant.ended("ended", "SUCCESS")).toMatchObject([{ generation: 1 }]);

  const recorded = apiWay.cut("arrivals.record");
  expect((await announce(api.api, "recorded", "k1")).status).toBeGreaterThanOrEqual(500);
  await recorded;
  await until(async () => (await announce(api.api, "recorded", "k1")).status === 200, "the repeat to be answered");
  expect(await plant.ended("recorded", "SUCCESS")).toMatchObject([{ generation: 1 }]);
  const arrivals = "select arrivals from arrivals.metrics_etl_log where op_time = 'recorded'";
  expect(await database.query(arrivals)).toEqual([{ arrivals: 1 }]);

  const claimed = workerWay.cut("arrivals.task.begin"); // Only a claim that got something begins any.
  await announce(api.api, "claimed");
  await claimed;
  expect(await plant.ended("claimed", "SUCCESS")).toMatchObject([
    { status: "FAILED", generation: 1, message: "its process lost it" },
    { status: "SUCCESS", generation: 1 },
  ]);

  for (const opTime of ["ended", "recorded", "claimed"]) expect(await valuesOf(api, opTime)).toEqual([[7, 1]]);
  expect(await findViolations(database.db)).toEqual([]);
  expect(await Promise.all([worker.stop(), api.stop()])).toEqual([0, 0]);
});
