/** Files that are deleted: one by name, and old ones that are done. */
import { expect, test } from "vitest";
import { useDatabase } from "../../test/database.ts";
import { useMillrace } from "../../test/millrace.ts";
import { reached, trackingTable } from "../../test/tracking.ts";
import { deletesFiles } from "./store/deletion.ts";

const database = useDatabase();
const millrace = useMillrace(database);
const table = trackingTable(database);
const BASE = "/api/v1/pipeline";
const remove = (filename: string, query = "") => millrace.api.delete(`${BASE}/files/${filename}${query}`);
const totals = async () => (await millrace.api.get(`${BASE}/metrics/summary`)).body;

test("a file is deleted with its shards, and the totals forget it; a preview changes nothing", async () => {
  await table.clear();
  const before = await totals();
  await table.put(reached("shard-worker", "failed"), { filename: "f", shards: [0, 1, 2] });
  expect(await remove("f", "?dryRun=true")).toMatchObject({ status: 200, body: { deleted_shards: 3, dry_run: true } });
  expect((await millrace.api.get(`${BASE}/files/f`)).status).toBe(200);
  expect(await remove("f")).toMatchObject({ status: 200, body: { filename: "f", deleted_shards: 3, dry_run: false } });
  expect((await millrace.api.get(`${BASE}/files/f`)).status).toBe(404);
  expect(await totals()).toEqual(before);
  expect(await remove("f")).toMatchObject({ status: 404, body: { code: "FILE_NOT_FOUND" } });
  const audited = await database.query("select target, details from kernel.audit_log where action = 'file.delete'");
  expect(audited).toEqual([{ target: "f", details: { shards: 3 } }]);
});

test("a file of which a worker holds a shard is not deleted", async () => {
  await table.clear();
  await table.put(reached("shard-splitter", "new"), { filename: "held", shards: [0, 1] });
  const claim = { worker: "w", limit: 1, lease_seconds: 60 };
  expect((await millrace.api.post(`${BASE}/queues/shard-splitter/claim`, claim)).status).toBe(200);
  expect(await remove("held")).toMatchObject({ status: 409, body: { code: "FILE_IN_WORK", details: { held: 1 } } });
  await database.query(
    "update tracking.pipeline_tracking set leased_until = now() - interval '1 s' where leased_until is not null",
  );
  expect((await remove("held")).status).toBe(200);
});

test("old files whose shards are all done go, and others stay", async () => {
  await table.clear();
  await table.put(reached("mysql-sender", "done"), { filename: "done", shards: [0, 1] });
  await table.put(reached("mysql-sender", "failed"), { filename: "failed", shards: [0] });
  await table.put(reached("mysql-sender", "done"), { filename: "young", shards: [0] });
  const old = "created_at = now() - interval '400 days'";
  await database.query(`update tracking.pipeline_file set ${old} where filename <> 'young'`);
  await database.query("update tracking.pipeline_tracking set updated_at = now() - interval '399 days'");
  expect(await database.db.tx((tx) => deletesFiles(365)(tx, 10))).toEqual({ looked: 1, deleted: 1 });
  const left = await database.query<{ filename: string }>("select filename from tracking.pipeline_file order by 1");
  expect(left.map(({ filename }) => filename)).toEqual(["failed", "young"]);
});
