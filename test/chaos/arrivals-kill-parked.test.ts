/** All workers are killed while a model waits for its chain, whose node waits for another model. The run ends once, in another process. */
import { expect, test } from "vitest";
import { findViolations } from "../../src/arrivals/store/invariants.ts";
import { endSessionOf, setUpServers } from "../arrivals-servers.ts";
import type { Json } from "../client.ts";
import { useDatabase } from "../database.ts";
import { until } from "../until.ts";

const database = useDatabase();
const DAY = "20250101";
const SLEEP_MS = 2_000;

test("a parked model survives the kill of the worker that parked it", { timeout: 120_000 }, async () => {
  const setup = await setUpServers(database);
  const [api, worker] = await Promise.all([setup.start("api,scheduler"), setup.start("worker")]);
  const put = (path: string, body: Json) => api.api.put(`/api/v1/kpi/models/${path}`, body);
  const define = async (modelId: string, body: Json) => {
    expect((await put(modelId, { name: modelId, dependencies: [{ table: "T" }], ...body })).status).toBe(201);
    expect((await api.api.post(`/api/v1/kpi/models/${modelId}:publish`)).status).toBe(200);
  };
  const chain = (name: string, nodes: Json[]) => api.api.post("/api/v1/chains", { name, dagJson: { nodes } });
  const sql = "select 'KD1' as kpi_id, 7 as value";
  await chain("inner", [
    { id: "wait", type: "sleep", cfg: { ms: SLEEP_MS } },
    { id: "values", type: "sql", cfg: { sql }, dependsOn: ["wait"] },
  ]);
  await define("INNER", { chain: "inner", kpis: ["KD1"], dependencies: [{ table: "Z" }] });
  await chain("outer", [{ id: "run", type: "model", cfg: { modelId: "INNER", force: true } }]);
  await define("OUTER", { chain: "outer", kpis: [] });

  await api.api.send("/api/open/kpi/srcTableComplete", {
    method: "POST",
    headers: { "content-type": "application/json", prefer: "respond-async" },
    body: JSON.stringify({ srcTableName: "T", opTime: DAY }),
  });
  await until(async () => {
    const parked = await database.query("select from arrivals.model_instance where state = 'parked'");
    return parked.length === 2;
  }, "both models to be parked");
  worker.kill("SIGKILL");
  expect(await worker.exited).toBe("SIGKILL");
  await endSessionOf(database, worker.pid);
  const next = await setup.start("worker");
  const tasks = () =>
    database.query<{ model_id: string; status: string; generation: number }>(
      "select model_id, status, generation from arrivals.metrics_task_log order by id",
    );
  await until(async () => (await tasks()).every(({ status }) => status !== "RUNNING"), "both models to end", 60_000);
  expect(await tasks()).toEqual([
    { model_id: "OUTER", status: "SUCCESS", generation: 1 },
    { model_id: "INNER", status: "SUCCESS", generation: 1 },
  ]);
  expect((await api.api.get(`/api/v1/kpi/data?opTime=${DAY}`)).body["items"]).toMatchObject([
    { kpiId: "KD1", value: 7 },
  ]);
  expect(await database.query("select from chains.job_run")).toHaveLength(2);
  expect(await findViolations(database.db)).toEqual([]);
  expect(await Promise.all([next.stop(), api.stop()])).toEqual([0, 0]);
});
