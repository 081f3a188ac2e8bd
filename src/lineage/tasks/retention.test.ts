/** What is forgotten, and what is not: an asset keeps its embedding, and needs no new task for it. */
import { expect, test } from "vitest";
import { useDatabase } from "../../../test/database.ts";
import { BUILTIN, useTasks } from "./tasks.fixture.ts";

const database = useDatabase();
const tasks = useTasks(database);

test("tasks that succeeded long ago go with their attempts and batches; others stay, whatever their age", async () => {
  const process = tasks.open();
  const tenant = await tasks.tenant("1", BUILTIN);
  const assets = await tasks.columns("1", 4);
  await database.db.tx((tx) => process.enqueue(tx, tenant, assets));
  await process.worker.runOnce();
  const [old, dead, canceled] = await tasks.ended();
  await database.query("update lineage.ol_async_task set next_run_at = now() - interval '31 days' where id = any($1)", [
    [old?.id, dead?.id, canceled?.id],
  ]);
  await database.query("update lineage.ol_async_task set status = 'DEAD' where id = $1", [dead?.id]);
  await database.query("update lineage.ol_async_task set status = 'CANCELED' where id = $1", [canceled?.id]);
  expect(await process.retention.runOnce()).toEqual({ tasks: 1, batches: 0 });
  expect((await tasks.rows()).map(({ status }) => status)).toEqual(["DEAD", "CANCELED", "SUCCEEDED"]);
  expect(await database.query("select from lineage.ol_async_task_attempt")).toHaveLength(3);

  await database.query("update lineage.ol_async_batch set created_at = now() - interval '31 days'");
  expect(await process.retention.runOnce()).toEqual({ tasks: 0, batches: 1 });
  expect(await database.db.tx((tx) => process.enqueue(tx, tenant, assets.slice(0, 1)))).toBe(0);
});

test("a task that is forgotten at the moment its content comes back is made anew", async () => {
  const process = tasks.open();
  const tenant = await tasks.tenant("1", BUILTIN);
  const assets = await tasks.columns("1", 1);
  await database.db.tx((tx) => process.enqueue(tx, tenant, assets));
  await database.query("update lineage.ol_async_task set status = 'SUCCEEDED'");
  let queued: Promise<number> | undefined;
  await database.db.exclusive(async (client) => {
    await client.query("begin");
    await client.query("delete from lineage.ol_async_task");
    queued = database.db.tx((tx) => process.enqueue(tx, tenant, assets));
    for (;;) {
      const waiting = await client.query("select from pg_locks where not granted");
      if (waiting.rows.length > 0) break; // It has found the task, and waits for us.
    }
    await client.query("commit");
  });
  expect(await queued).toBe(1);
  expect(await tasks.rows()).toMatchObject([{ status: "PENDING" }]);
});
