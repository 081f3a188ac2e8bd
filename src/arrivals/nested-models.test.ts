/** Models that run chains whose nodes run models, over the API: with one slot each, and with one alert for a failure. */
import { describe, expect, test } from "vitest";
import { useDatabase } from "../../test/database.ts";
import { until } from "../../test/until.ts";
import { TODAY, useKpis } from "./arrivals.fixture.ts";

const database = useDatabase();
const kpis = useKpis(database, { arrivals: { slots: 1, timeoutSeconds: 30 }, chains: { slots: 1 } });
let names = 0;

/** A published model that runs a chain of this one node. */
async function publishOuter(modelId: string, node: object, fields: object = {}): Promise<string> {
  names += 1;
  const name = `chain ${names}`;
  const { body } = await kpis.api.post("/api/v1/chains", { name, dagJson: { nodes: [{ id: "n", ...node }] } });
  await kpis.publish(modelId, { chain: name, kpis: [], ...fields });
  return String(body["chainId"]);
}
const runs = (modelId: string) => ({ type: "model", cfg: { modelId, force: true } });
const BROKEN = { type: "sql", cfg: { sql: "select * from nowhere" } };
const alerts = async () => [...(await kpis.events("run.failed")), ...(await kpis.events("model.failed"))];

test("N + 1 nested models finish with N slots", async () => {
  await kpis.publish("M4", { dependencies: [{ table: "Z" }] });
  for (const no of [3, 2]) await publishOuter(`M${no}`, runs(`M${no + 1}`), { dependencies: [{ table: "Z" }] });
  await publishOuter("M1", runs("M2"));
  expect((await kpis.arrive("T")).triggeredModels).toMatchObject([{ modelId: "M1", status: "SUCCESS" }]);
  expect(await kpis.values()).toEqual(["KD1001=1"]);
});

describe("one failure sends one alert:", () => {
  test("that of the model, if a model waits for the chain's run", async () => {
    await publishOuter("M", BROKEN);
    expect((await kpis.arrive("T")).triggeredModels).toMatchObject([{ status: "FAILED" }]);
    expect(await alerts()).toMatchObject([{ modelId: "M", opTime: TODAY }]);
  });

  test("that of the outermost run, if a node waits for the model", async () => {
    await kpis.publish("M", { dependencies: [{ table: "Z" }], sql: "select * from nowhere" });
    const { body: chain } = await kpis.api.post("/api/v1/chains", {
      name: "outermost",
      dagJson: { nodes: [{ id: "n", ...runs("M") }] },
    });
    const { body: run } = await kpis.api.post(`/api/v1/chains/${String(chain["chainId"])}:start`, { opTime: TODAY });
    await until(async () => (await alerts()).length > 0, "an alert");
    expect(await alerts()).toMatchObject([{ runId: run["runId"] }]);
  });

  test("that of the outermost model, however deep the failure is", async () => {
    await publishOuter("M3", BROKEN, { dependencies: [{ table: "Z" }] });
    await publishOuter("M2", runs("M3"), { dependencies: [{ table: "Z" }] });
    await publishOuter("M1", runs("M2"));
    expect((await kpis.arrive("T")).triggeredModels).toMatchObject([{ modelId: "M1", status: "FAILED" }]);
    expect(await alerts()).toMatchObject([{ modelId: "M1" }]);
  });

  test("that of the model, if its chain takes too long and is stopped", async () => {
    const chainId = await publishOuter("M", { type: "sleep", cfg: { ms: 60_000 } }, { timeoutSeconds: 1 });
    expect((await kpis.arrive("T")).triggeredModels).toMatchObject([{ status: "FAILED" }]);
    const { body } = await kpis.api.get<{ items: { status: string }[] }>(`/api/v1/runs?chainId=${chainId}`);
    expect(body.items).toMatchObject([{ status: "STOPPED" }]);
    expect(await alerts()).toMatchObject([{ modelId: "M" }]);
  });
});

test("a failed model is mended by a retry of its chain's run", async () => {
  await database.query("create table public.late_source (value integer)");
  await publishOuter(
    "M",
    {
      type: "sql",
      cfg: { engine: "warehouse", sql: "select 'KD1001' as kpi_id, value from late_source", expectRows: 1 },
    },
    { kpis: ["KD1001"] },
  );
  expect((await kpis.arrive("T")).triggeredModels).toMatchObject([{ status: "FAILED" }]);
  const [failed] = await kpis.tasks("M");
  await database.query("insert into public.late_source values (7)");
  await kpis.api.post(`/api/v1/runs/${String(failed?.["chainRunId"])}:retry`, {});
  expect(await kpis.reaches("M", "SUCCESS")).toMatchObject({ id: failed?.id, message: null });
  expect(await kpis.values()).toEqual(["KD1001=7"]);
  expect(await alerts()).toHaveLength(1);
  expect(await kpis.events("kpi.updated")).toHaveLength(1);
});
