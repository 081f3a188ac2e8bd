/** Changing the model: what is stale is queued in steps that survive a crash, and what is not stays as it is. */
import { expect, test } from "vitest";
import { useDatabase } from "../../../test/database.ts";
import { until } from "../../../test/until.ts";
import { tableName } from "../graph/names.ts";
import { actor, BUILTIN, sqlAsset, type TestTasks, useTasks } from "./tasks.fixture.ts";

const database = useDatabase();
const tasks = useTasks(database);
const OTHER = { embedding: { provider: "builtin", model: "hash-v1", dimension: 32 } } as const;

async function drain(process: TestTasks): Promise<number> {
  let queued = 0;
  for (let counts = await process.requeue.runOnce(); (counts["tenants"] ?? 0) > 0; ) {
    queued += counts["queued"] ?? 0;
    counts = await process.requeue.runOnce();
  }
  return queued;
}

async function work(process: TestTasks): Promise<void> {
  for (;;) {
    await process.worker.runOnce();
    const waiting = await until(async () => {
      const rows = await tasks.rows();
      return rows.every(({ status }) => status !== "RUNNING") && [rows.some(({ status }) => status === "PENDING")];
    }, "the batches");
    if (!waiting[0]) return;
  }
}

const fingerprints = () =>
  database.query("select model_fingerprint, count(*)::int as n from lineage.embedding group by 1 order by 1");

test("a chosen model finds all assets of its tenant, and another one all of them again", async () => {
  const process = tasks.open();
  await tasks.tenant("1", null);
  await tasks.tenant("2", null);
  await tasks.columns("1", 1_100); // More than two steps.
  await tasks.columns("2", 10);
  await tasks.asset("1", ...sqlAsset("select 1"));
  await tasks.asset("1", { kind: "JOB", path: ["spark", "daily"] });
  await process.models.choose("1", BUILTIN, actor);
  expect(await drain(process)).toBe(1_101);
  await work(process);
  expect(await fingerprints()).toEqual([{ model_fingerprint: "builtin:hash-v1:16", n: 1_101 }]);

  await process.models.choose("1", BUILTIN, actor); // The same again: nothing is stale.
  expect(await drain(process)).toBe(0);
  await process.models.choose("1", OTHER, actor);
  expect(await drain(process)).toBe(1_101);
  await work(process);
  expect(await fingerprints()).toEqual([{ model_fingerprint: "builtin:hash-v1:32", n: 1_101 }]);
  expect((await tasks.rows()).every(({ tenant_id }) => tenant_id === "1")).toBe(true);
});

test("it goes on where a lost process left off", async () => {
  const lost = tasks.open();
  await tasks.tenant("1", null);
  await tasks.columns("1", 700);
  await lost.models.choose("1", BUILTIN, actor);
  expect(await lost.requeue.runOnce()).toEqual({ tenants: 1, queued: 500 });
  const other = tasks.open();
  expect(await other.requeue.runOnce()).toEqual({ tenants: 1, queued: 200 });
  expect(await other.requeue.runOnce()).toEqual({ tenants: 0, queued: 0 });
});

test("an asset that a process made without knowing of the choice is found by a second round, and what failed is left alone", async () => {
  const process = tasks.open();
  await tasks.tenant("1", null);
  await tasks.columns("1", 2);
  await process.models.choose("1", BUILTIN, actor);
  expect(await drain(process)).toBe(2);
  await database.query("update lineage.ol_async_task set status = 'DEAD'");
  await tasks.asset("1", tableName("gravitino", "lake", "sales", "orders"));
  expect(await process.requeue.runOnce()).toEqual({ tenants: 0, queued: 0 }); // Not yet.
  await database.query(
    "update lineage.tenant set model = jsonb_set(model, '{requeue,at}', to_jsonb(now())) where model ? 'requeue'",
  );
  expect(await drain(process)).toBe(1);
  expect((await tasks.rows()).map(({ status }) => status)).toEqual(["DEAD", "DEAD", "PENDING"]);
  expect(await database.query("select from lineage.tenant where model ? 'requeue'")).toEqual([]);
});

test("a model that is chosen while the one before is still being queued begins anew", async () => {
  const process = tasks.open();
  await tasks.tenant("1", null);
  await tasks.columns("1", 700);
  await process.models.choose("1", OTHER, actor);
  await process.requeue.runOnce();
  await process.models.choose("1", BUILTIN, actor);
  expect(await drain(process)).toBe(700);
  await work(process);
  expect(await fingerprints()).toEqual([{ model_fingerprint: "builtin:hash-v1:16", n: 700 }]);
  // The tasks of the other model are done with, without having been run.
  const old = await database.query(
    "select distinct status, last_error from lineage.ol_async_task where model_fingerprint = 'builtin:hash-v1:32'",
  );
  expect(old).toEqual([{ status: "CANCELED", last_error: "The tenant has another model by now." }]);
});

test("choosing a model tries what was given up, such as after a wrong credential", async () => {
  const process = tasks.open();
  await tasks.tenant("1", null);
  const assets = await tasks.columns("1", 3);
  await process.models.choose("1", BUILTIN, actor);
  await drain(process);
  await database.query("update lineage.ol_async_task set status = 'DEAD'");
  const tenant = { id: "1", code: "tenant-1", model: BUILTIN };
  expect(await database.db.tx((tx) => process.enqueue(tx, tenant, assets))).toBe(0); // An event does not.
  await process.models.choose("1", BUILTIN, actor);
  expect(await drain(process)).toBe(3);
});

test("without a model what is queued is canceled as its turn comes, and what there is stays", async () => {
  const process = tasks.open();
  await tasks.tenant("1", null);
  await tasks.asset("1", tableName("gravitino", "lake", "sales", "orders"));
  await process.models.choose("1", BUILTIN, actor);
  await drain(process);
  await work(process);
  await tasks.columns("1", 3);
  await process.models.choose("1", BUILTIN, actor);
  await drain(process);
  await process.models.remove("1", actor);
  await work(process);
  expect((await tasks.rows()).map(({ status }) => status)).toEqual(["SUCCEEDED", "CANCELED", "CANCELED", "CANCELED"]);
  expect(await fingerprints()).toHaveLength(1);
});

test("the loops do all this by themselves once a model is chosen", async () => {
  const process = tasks.open();
  await tasks.tenant("1", null);
  await tasks.columns("1", 20);
  for (const service of process.services) service.start();
  await process.models.choose("1", BUILTIN, actor);
  await until(async () => (await database.query("select from lineage.embedding")).length === 20, "the embeddings");
});
