/** Turns of tenants: by the choice itself, and by the worker with one tenant that has far more than the others. */
import { describe, expect, test } from "vitest";
import { useDatabase } from "../../../test/database.ts";
import { until } from "../../../test/until.ts";
import { choose } from "./fairness.ts";
import type { Lane } from "./store/tasks.ts";
import { SETTINGS, useTasks } from "./tasks.fixture.ts";

const lane = (tenant: number, task_type: Lane["task_type"] = "EMBEDDING"): Lane => ({
  tenant_id: String(tenant),
  task_type,
  model_fingerprint: "m",
});
const tenantsOf = (lanes: readonly Lane[]) => lanes.map(({ tenant_id }) => Number(tenant_id));
const slots = { free: 4, perTenant: 2, busy: [], lastTenant: "-1" };

describe("free slots", () => {
  test("go to one tenant after the other, from the one behind the last on", () => {
    const due = [1, 2, 3, 10].map((tenant) => lane(tenant));
    expect(tenantsOf(choose(due, { ...slots, free: 3 }))).toEqual([1, 2, 3]);
    expect(tenantsOf(choose(due, { ...slots, free: 3, lastTenant: "3" }))).toEqual([10, 1, 2]);
    expect(tenantsOf(choose(due, { ...slots, lastTenant: "10" }))).toEqual([1, 2, 3, 10]);
  });

  test("are given to a tenant again only after all others, and never beyond its share", () => {
    expect(tenantsOf(choose([lane(1)], slots))).toEqual([1, 1]);
    expect(tenantsOf(choose([lane(1), lane(2)], slots))).toEqual([1, 2, 1, 2]);
    expect(tenantsOf(choose([lane(1), lane(2)], { ...slots, busy: [lane(1), lane(1)] }))).toEqual([2, 2]);
    expect(choose([lane(1)], { ...slots, busy: [lane(1), lane(1)] })).toEqual([]);
    expect(choose([], slots)).toEqual([]);
  });

  test("go to the lane of a tenant that has fewer batches under way", () => {
    const due = [lane(1), lane(1, "SQL_SUMMARY")];
    expect(choose(due, slots)).toEqual(due);
    expect(choose(due, { ...slots, busy: [lane(1)] })).toEqual([lane(1, "SQL_SUMMARY")]);
  });
});

describe("a tenant with thousands of tasks", () => {
  const database = useDatabase();
  const tasks = useTasks(database);

  test("holds back none with five", async () => {
    const process = tasks.open({ settings: { ...SETTINGS, batchSize: 16, batches: 2, perTenant: 1 } });
    for (const [id, count] of [
      ["1", 3_000],
      ["2", 5],
      ["3", 5],
      ["4", 5],
    ] as const) {
      const tenant = await tasks.tenant(id, tasks.served());
      const assets = await tasks.columns(id, count);
      await database.db.tx((tx) => process.enqueue(tx, tenant, assets));
    }
    process.worker.start();
    const small = () =>
      database.query<{ n: number }>(
        "select count(*)::int as n from lineage.ol_async_task where tenant_id > 1 and status = 'SUCCEEDED'",
      );
    await until(async () => (await small())[0]?.n === 15, "the small tenants");
    const [big] = await database.query<{ n: number }>(
      "select count(*)::int as n from lineage.ol_async_task where tenant_id = 1 and status = 'SUCCEEDED'",
    );
    expect(big?.n).toBeLessThan(600); // In turn it had about as many batches as they had; without turns it would be through.
  });
});
