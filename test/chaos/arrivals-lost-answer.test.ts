/** The answer to a COMMIT is lost: the process does not know whether its claim, the end of its run or the arrival was committed. */
import { expect, test } from "vitest";
import { findViolations } from "../../src/arrivals/store/invariants.ts";
import { announce, defineModel, KPI, setUpServers, valuesOf } from "../arrivals-servers.ts";
import { useDatabase } from "../database.ts";
import { until } from "../until.ts";
import { startCuttingProxy } from "./cutting-proxy.ts";

const QUICK = { engine: "duckdb", sql: `select '${KPI}' as kpi_id, 7 as value` };

const database = useDatabase();

test("a model runs once whose claim, end or arrival was committed without an answer", async () => {
  const setup = await setUpServers(database);
  const [workerProxy, apiProxy] = [await startCuttingProxy(database), await startCuttingProxy(database)];
  const [api, worker] = await Promise.all([setup.start("api,scheduler", apiProxy), setup.start("worker", workerProxy)]);
  await defineModel(api, QUICK);

  const ended = workerProxy.cut("arrivals.instance.end");
  await announce(api.api, "ended");
  await ended;
  expect(await setup.ended("ended", "SUCCESS")).toMatchObject([{ generation: 1 }]);

  const recorded = apiProxy.cut("arrivals.record");
  expect((await announce(api.api, "recorded", "k1")).status).toBeGreaterThanOrEqual(500);
  await recorded;
  await until(async () => (await announce(api.api, "recorded", "k1")).status === 200, "the repeat to be answered");
  expect(await setup.ended("recorded", "SUCCESS")).toMatchObject([{ generation: 1 }]);
  const arrivals = "select arrivals from arrivals.metrics_etl_log where op_time = 'recorded'";
  expect(await database.query(arrivals)).toEqual([{ arrivals: 1 }]);

  const claimed = workerProxy.cut("arrivals.task.begin"); // Sent only by a claim that got an item.
  await announce(api.api, "claimed");
  await claimed;
  expect(await setup.ended("claimed", "SUCCESS")).toMatchObject([
    { status: "FAILED", generation: 1, message: "its process lost track of it" },
    { status: "SUCCESS", generation: 1 },
  ]);

  for (const opTime of ["ended", "recorded", "claimed"]) expect(await valuesOf(api, opTime)).toEqual([[7, 1]]);
  expect(await findViolations(database.db)).toEqual([]);
  expect(await Promise.all([worker.stop(), api.stop()])).toEqual([0, 0]);
});
