/** Deletion of runs that ended more than keepDays ago. */
import { expect, test } from "vitest";
import { type TestDatabase, useDatabase } from "../../../test/database.ts";
import { silentLog } from "../../../test/log.ts";
import { noHints } from "../../../test/no-hints.ts";
import { until } from "../../../test/until.ts";
import { addRun } from "../run.fixture.ts";
import type { NewRun } from "../store/runs.ts";
import { createRetention } from "./retention.ts";

const database = useDatabase();
const query: TestDatabase["query"] = (text, values) => database.query(text, values);
const KEEP_DAYS = 30;
const LOCKS_WAITED_FOR = `select from pg_locks l join pg_database d on d.oid = l.database
   where d.datname = current_database() and l.locktype = 'advisory' and not l.granted`;

async function addEnded(daysAgo: number, fields: Partial<NewRun> = {}): Promise<string> {
  const runId = await addRun(database, { a: [], b: ["a"] }, fields);
  await end(runId, daysAgo);
  await query(
    "insert into chains.job_run_log (run_id, node_id, attempt, level, line, at) values ($1, 'a', 1, 'info', 'x', now())",
    [runId],
  );
  await query("insert into chains.job_run_event (run_id, kind, at) values ($1, 'stop asked for', now())", [runId]);
  await query("insert into chains.job_run_checkpoint values ($1, 'a', '1')", [runId]);
  await query(
    "insert into chains.job_run_attempt (run_id, node_id, attempt, status, started_at, ended_at) values ($1, 'a', 1, 'FAILED', now(), now())",
    [runId],
  );
  return runId;
}

async function end(runId: string, daysAgo: number): Promise<void> {
  await query(
    `update chains.job_run set status = 'SUCCESS', created_at = now() - make_interval(days => $2 + 1),
            started_at = now() - make_interval(days => $2 + 1), ended_at = now() - make_interval(days => $2) where run_id = $1`,
    [runId, daysAgo],
  );
}

/** Runs the service until it deletes nothing more. */
async function deleteOld(): Promise<void> {
  const settings = { slots: 1, stopGraceSeconds: 1, drainSeconds: 1, lostLimit: 1, keepDays: KEEP_DAYS, nodeTypes: [] };
  const retention = createRetention({ db: database.db, hints: noHints, log: silentLog, onRun: () => {}, settings });
  for (let deleted = 1; deleted > 0; ) deleted = (await retention.runOnce())["deleted"] ?? 0;
}

/** The tables that still have rows of the run. */
async function tablesWith(runId: string): Promise<string[]> {
  const tables = await query<{ name: string }>(
    `select table_name as name from information_schema.columns
     where table_schema = 'chains' and column_name = 'run_id' order by 1`,
  );
  const found: string[] = [];
  for (const { name } of tables) {
    if ((await query(`select from chains.${name} where run_id = $1`, [runId])).length > 0) found.push(name);
  }
  return found;
}

test("an old run is deleted from all tables, a newer one stays complete", async () => {
  const old = await addEnded(KEEP_DAYS + 1);
  const newer = await addEnded(KEEP_DAYS - 1);
  const before = await tablesWith(newer);
  expect(before).toEqual([
    "job_run",
    "job_run_attempt",
    "job_run_checkpoint",
    "job_run_event",
    "job_run_log",
    "job_run_node",
  ]);
  await deleteOld();
  expect(await tablesWith(old)).toEqual([]);
  expect(await tablesWith(newer)).toEqual(before);
});

test("a run that has not ended stays, however old it is", async () => {
  const runId = await addRun(database, { a: [] });
  await query("update chains.job_run set created_at = now() - interval '10 years' where run_id = $1", [runId]);
  await deleteOld();
  expect(await tablesWith(runId)).toContain("job_run");
});

test("a child run stays as long as its parent run, and is deleted after it", async () => {
  const parent = await addEnded(KEEP_DAYS - 1);
  const child = await addEnded(KEEP_DAYS + 1, { parent_run_id: parent, parent_node_id: "a", depth: 1 });
  await deleteOld();
  expect(await tablesWith(child)).toContain("job_run");
  await end(parent, KEEP_DAYS + 1);
  await deleteOld();
  expect([await tablesWith(parent), await tablesWith(child)]).toEqual([[], []]);
});

test("many runs are deleted a few at a time, until none is left", async () => {
  const runs = await Promise.all(Array.from({ length: 45 }, () => addEnded(KEEP_DAYS + 1)));
  await deleteOld();
  expect(await query("select from chains.job_run where run_id = any($1)", [runs])).toEqual([]);
});

test("a run that is revived during the deletion stays", async () => {
  const runId = await addEnded(KEEP_DAYS + 1);
  await database.db.exclusive(async (client) => {
    await client.query("begin");
    await client.query("select pg_advisory_xact_lock(hashtextextended('chains.run ' || $1, 0))", [runId]);
    const deleting = deleteOld();
    await until(async () => (await query(LOCKS_WAITED_FOR)).length > 0, "the deletion to wait");
    await client.query("update chains.job_run set status = 'RUNNING', ended_at = null where run_id = $1", [runId]);
    await client.query("commit");
    await deleting;
  });
  expect(await tablesWith(runId)).toContain("job_run_node");
});
