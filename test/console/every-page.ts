/** Something to see on every page of the console: work of all modules, done and failed, with names of the lengths that people give. */
import { expect } from "vitest";
import {
  correct,
  itemsOf,
  type Script,
  type ScriptedHarvests,
  type TestItem,
} from "../../src/harvest/run/scripted.fixture.ts";
import { createGraph, lakeTable } from "../../src/lineage/graph/graph.fixture.ts";
import type { TestDatabase } from "../database.ts";
import { reached, trackingTable } from "../tracking.ts";
import { until } from "../until.ts";
import { addLog } from "./large-data.ts";

/** The server needs it: the receiver of webhooks is on this machine. */
export const EVERY_PAGE_ENV = { MILLRACE_WEBHOOKS_ALLOW_PRIVATE: "true" };

const OP_TIME = "20260401";
const TENANT = 7;

export type EveryPage = Awaited<ReturnType<typeof fillEveryPage>>;

export async function fillEveryPage(database: TestDatabase, harvests: ScriptedHarvests) {
  const [chain, readiness, harvested, lineage] = await Promise.all([
    fillChains(database, harvests),
    fillArrivals(harvests),
    fillHarvest(harvests),
    fillLineage(database),
  ]);
  const keyName = "nightly-loader-of-all-shops-and-regions";
  await sent(harvests, "post", "/keys", { name: keyName, scopes: ["pipeline:write", "kpi:write"] });
  const opTimes = { opTime: OP_TIME, firstOpTime: "20260301" };
  return { ...chain, ...readiness, ...harvested, ...lineage, ...(await fillTracking(database)), ...opTimes, keyName };
}

async function sent<Body = Record<string, unknown>>(
  { api }: ScriptedHarvests,
  method: "get" | "post" | "put",
  path: string,
  body?: unknown,
): Promise<Body> {
  const answer = await api[method]<Body>(`/api/v1${path}`, body);
  if (answer.status >= 300) throw new Error(`${path} answered ${answer.status}: ${JSON.stringify(answer.body)}`);
  return answer.body;
}

/** A chain of two versions, a run of each, and a failure of the second. */
async function fillChains({ query }: TestDatabase, harvests: ScriptedHarvests) {
  const chainName = "orders-of-all-shops-and-regions";
  const nodes = (load: object) => [
    { id: "extract", type: "noop" },
    { id: "load_orders_of_all_shops", dependsOn: ["extract"], ...load },
    { id: "publish", type: "noop", dependsOn: ["load_orders_of_all_shops"] },
  ];
  const body = { name: chainName, dagJson: { nodes: nodes({ type: "noop" }) } };
  const { chainId } = await sent<{ chainId: string }>(harvests, "post", "/chains", body);
  const run = async () => {
    const { runId } = await sent<{ runId: string }>(harvests, "post", `/chains/${chainId}:start`, { opTime: OP_TIME });
    await until(
      async () => (await sent<{ endedAt: unknown }>(harvests, "get", `/runs/${runId}`)).endedAt !== null,
      `the end of run ${runId}`,
    );
    return runId;
  };
  const goodRunId = await run();
  const failing = { type: "sql", cfg: { engine: "duckdb", sql: "select price_in_cents" } };
  await sent(harvests, "put", `/chains/${chainId}`, { ...body, version: 1, dagJson: { nodes: nodes(failing) } });
  const runId = await run();
  await addLog(query, runId, "load_orders_of_all_shops", 40);
  await sent(harvests, "post", `/chains/${chainId}/schedules`, { name: "nightly", cron: "0 3 * * *", timeZone: "UTC" });
  return { chainId, chainName, goodRunId, runId, failedNode: "load_orders_of_all_shops" };
}

/** A model that has run, and whose receiver does not answer; and one that waits for a table. */
async function fillArrivals(harvests: ScriptedHarvests) {
  const [table, modelId, waitingModelId, kpiId] = [
    "ORDERS_OF_ALL_SHOPS_AND_REGIONS",
    "REVENUE_BY_SHOP_AND_REGION",
    "MARGIN_BY_SHOP_AND_REGION",
    "KD1001",
  ];
  const model = { sql: `select '${kpiId}' as kpi_id, 12 as value`, grain: "day" };
  for (const [id, tables, kpis] of [
    [modelId, [table], [kpiId]],
    [waitingModelId, [table, "COSTS"], ["KD1002"]],
  ] as const) {
    const dependencies = tables.map((one) => ({ table: one }));
    await sent(harvests, "put", `/kpi/models/${id}`, { ...model, name: id, dependencies, kpis });
    await sent(harvests, "post", `/kpi/models/${id}:publish`);
  }
  const callbackUrl = `${harvests.server.origin}/away/webhooks`;
  await sent(harvests, "post", "/kpi/subscriptions", { kpiId, callbackUrl, retryNum: 0 });
  for (const opTime of ["20260331", OP_TIME]) {
    const { status } = await harvests.api.post("/api/open/kpi/srcTableComplete", { srcTableName: table, opTime });
    expect(status).toBe(200);
  }
  const deliveryId = await until(async () => {
    const failed = "/kpi/deliveries?status=FAILED";
    return (await sent<{ items: { id: string }[] }>(harvests, "get", failed)).items[0]?.id;
  }, "a failed delivery");
  return { table, modelId, waitingModelId, kpiId, deliveryId };
}

/** Three days, the second of which is refused: a gap, a failure and two complete slices, one with a record that is quarantined. */
async function fillHarvest(harvests: ScriptedHarvests) {
  const days = ["2026-08-01", "2026-08-02", "2026-08-03"];
  const nameless = { updated: "2026-08-03T01:00:00.000Z" } as TestItem;
  const answer = correct([...days.flatMap((day) => itemsOf(15, day)), nameless]);
  const refusing: Script = (asked) =>
    asked.query.get("from") === days[1] ? { status: 400, body: { error: "bad day" } } : answer(asked);
  const source = await harvests.source(refusing);
  const { planId } = await harvests.harvest(source, 3);
  const runs = await sent<{ items: { runId: number; sliceId: number; status: string }[] }>(
    harvests,
    "get",
    `/harvest/plans/${planId}/runs`,
  );
  const failed = runs.items.find(({ status }) => status === "FAILED");
  const ofNewPlan = { planFrom: "2026-08-01", planTo: "2026-08-04" };
  return { source, planId, sliceId: failed?.sliceId, sliceRunId: failed?.runId, ...ofNewPlan };
}

/** Two tables with a statement between them, an event, a dead letter, and a task that has failed in a batch. */
async function fillLineage(database: TestDatabase) {
  const graph = await createGraph(database, String(TENANT));
  const from = await graph.table("shop.orders");
  const assetId = await graph.table("shop.revenue_by_shop_and_region");
  await graph.flow([from], [assetId], "refresh_revenue_by_shop_and_region");
  const fromColumn = await graph.column("shop.orders.price", { dataType: "decimal" });
  const columnId = await graph.column("shop.revenue_by_shop_and_region.total", { dataType: "decimal" });
  await graph.edge(columnId, "DERIVES_FROM", fromColumn, [{ type: "DIRECT", subtype: "AGGREGATION" }]);
  const time = "2026-01-01T00:00:00Z";
  const body = JSON.stringify({ job: { namespace: "spark", name: "daily" }, inputs: [], outputs: [] });
  const eventId = await graph.event({ time, names: [lakeTable("shop.revenue_by_shop_and_region")], body });
  const deadLetterId = await graph.event({ time, state: "DEAD", error: "It names 10,000 columns.", body });
  const [task] = await database.query<{ id: string }>(
    `insert into lineage.ol_async_task (task_type, tenant_id, tenant_code, resource_type, resource_id, content_hash,
       model_fingerprint, status, last_error)
     values ('EMBEDDING', $1, 't7', 'TABLE', $2, 'h', 'm', 'DEAD', 'the model answered 500') returning id::text`,
    [TENANT, assetId],
  );
  await database.query(
    `insert into lineage.ol_async_batch (batch_no, task_type, tenant_id, model_fingerprint, worker_id, planned_size,
       success_count, failed_count, started_at, finished_at, status)
     values ('b1', 'EMBEDDING', $1, 'm', 'w', 2, 1, 1, now() - interval '3 s', now(), 'FAILED')`,
    [TENANT],
  );
  return { tenant: TENANT, from, fromColumn, assetId, columnId, eventId, deadLetterId, taskId: task?.id };
}

/** One file whose name is as long as machines make them, with shards that have failed, and one that is done. */
async function fillTracking(database: TestDatabase) {
  const tracking = trackingTable(database);
  const filename = `${"long-".repeat(20)}.csv`;
  await tracking.put(reached("shard-worker", "failed"), { filename, shards: Array.from({ length: 40 }, (_, n) => n) });
  await tracking.put(reached("mysql-sender", "done"), { filename: "done.csv" });
  return { filename };
}
