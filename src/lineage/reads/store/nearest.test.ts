/** The nearest assets by exact cosine: of one tenant and one model, without those that are gone. */
import { expect, test } from "vitest";
import { useDatabase } from "../../../../test/database.ts";
import { hashEmbedding } from "../../tasks/providers/hash-embedder.ts";
import { type Asset, BUILTIN, type TestTasks, useTasks } from "../../tasks/tasks.fixture.ts";
import { nearest } from "./nearest.ts";

const database = useDatabase();
const tasks = useTasks(database);
const TEXTS = ["order revenue", "customer orders", "shelf temperature", "客户订单"];

async function embedded(process: TestTasks, tenantId: string) {
  const tenant = await tasks.tenant(tenantId, BUILTIN);
  const assets: Asset[] = [];
  for (const name of TEXTS) assets.push(await tasks.asset(tenantId, { kind: "TAG", path: [name] }));
  await database.db.tx((tx) => process.enqueue(tx, tenant, assets));
  await process.worker.runOnce();
  await tasks.ended();
  return { tenant, assets };
}

test("come best first, and only from the tenant and the model that are asked", async () => {
  const process = tasks.open();
  const { tenant, assets } = await embedded(process, "1");
  await embedded(process, "2");
  const query = await process.embedQuery(tenant, "tag customer orders");
  expect(query?.fingerprint).toBe("builtin:hash-v1:16");
  const { vector = [], fingerprint = "" } = query ?? {};
  const found = await nearest(database.db, "1", vector, fingerprint, { kind: null, limit: 10 });
  expect(found).toHaveLength(4);
  expect(found[0]).toEqual({ node_id: assets[1]?.id, similarity: expect.closeTo(1, 5) });
  for (const { node_id, similarity } of found) {
    const text = `tag ${TEXTS[assets.findIndex(({ id }) => id === node_id)]}`;
    const exact = hashEmbedding(text, 16).reduce((sum, x, index) => sum + x * (vector[index] ?? 0), 0);
    expect(similarity).toBeCloseTo(exact, 5);
  }
  expect(found.map(({ similarity }) => similarity)).toEqual(
    found.map(({ similarity }) => similarity).toSorted((a, b) => b - a),
  );
  expect(await nearest(database.db, "1", vector, fingerprint, { kind: null, limit: 2 })).toEqual(found.slice(0, 2));
  expect(await nearest(database.db, "1", vector, "builtin:hash-v1:32", { kind: null, limit: 10 })).toEqual([]);

  await database.query("update lineage.node set deleted_at = now() where tenant_id = 1 and id = $1", [assets[1]?.id]);
  expect(await nearest(database.db, "1", vector, fingerprint, { kind: null, limit: 10 })).toEqual(found.slice(1));
});

test("are those of the kind that is asked for, however many of another are nearer", async () => {
  const process = tasks.open();
  const tenant = await tasks.tenant("1", BUILTIN);
  const assets: Asset[] = [];
  for (let n = 0; n < 20; n += 1) assets.push(await tasks.asset("1", { kind: "TAG", path: [`orders ${n}`] }));
  const term = await tasks.asset("1", { kind: "WORDROOT", path: ["shelf temperature"] });
  await database.db.tx((tx) => process.enqueue(tx, tenant, [...assets, term]));
  await process.worker.runOnce();
  await tasks.ended();
  const { vector = [], fingerprint = "" } = (await process.embedQuery(tenant, "tag orders 1")) ?? {};
  const found = await nearest(database.db, "1", vector, fingerprint, { kind: "WORDROOT", limit: 2 });
  expect(found.map(({ node_id }) => node_id)).toEqual([term.id]);
});

test("a search without a model, or whose model fails, has no vector", async () => {
  const process = tasks.open();
  expect(await process.embedQuery({ id: "1", model: null }, "orders")).toBeUndefined();
  tasks.models.onEmbeddings(() => 500);
  expect(await process.embedQuery({ id: "1", model: tasks.served() }, "orders")).toBeUndefined();
  expect(process.log.lines).toMatchObject([{ level: "warn", fields: { error: "The model answered 500." } }]);
});
