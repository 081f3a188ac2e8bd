/** A claim, a page and the end of a slice touch as few database pages after years of harvests as on the first day. */

import { afterAll, beforeAll, expect, test } from "vitest";
import { useDatabase } from "../../../test/database.ts";
import { openRecordingDb, type RecordingDb } from "../../../test/plans.ts";
import type { Db, Tx } from "../../kernel/data/db.ts";
import { HOUR_MS } from "../../kernel/time/units.ts";
import { makeSource, type TestSource } from "../landing/windows.fixture.ts";
import { advanceWatermark } from "../store/cursors/cursors.ts";
import { settlePlans } from "../store/plans/plan-ends.ts";
import { endSlice, restartSlice } from "../store/plans/slices.ts";
import { endRun, nextTaskDueMs, startRuns, type TaskContext, taskContexts, taskLease } from "../store/queue/tasks.ts";
import { commitBatch, quarantine, readIdHashes } from "../store/records/batches.ts";
import { type IncomingRecord, putRecords } from "../store/records/records.ts";

const HISTORY = 100_000;
const QUEUE = 10_000;
const START = new Date(Date.UTC(2026, 7, 1));
/** Several times the measured numbers. A scan of history reads 1,000 and more. */
const PAGES_MAX = 100;
const PARTITION = "source/works/HARVEST";

const database = useDatabase();
let recording: RecordingDb;
let db: Db;

beforeAll(() => {
  recording = openRecordingDb(database.connection, "harvest.");
  ({ db } = recording);
});
afterAll(() => db.close());

let turns = 0;

/** The slice of the next hour, with its task. */
async function addTask(source: TestSource, planId: string): Promise<void> {
  turns += 1;
  const from = new Date(START.getTime() + turns * HOUR_MS);
  const { sliceId } = await source.slice(planId, from, new Date(from.getTime() + HOUR_MS));
  await database.query(
    `insert into harvest.ing_task (schedule_instance_id, plan_id, slice_id, provenance_code, operation_code, partition_key, params,
       expr_hash, idempotent_key, priority, scheduled_at)
     values ($1, $1, $2::int8, $3, 'HARVEST', $4, '{}', '', $2::int8::text, 100, now())`,
    [planId, sliceId, source.source, PARTITION],
  );
}

interface Claimed {
  task: { task_id: string; fence: string };
  context: TaskContext;
}

async function claim(limit: number): Promise<Claimed> {
  await nextTaskDueMs(db);
  const [task] = await taskLease.claim(db, { limit, holder: "1" }, startRuns);
  if (!task) throw new Error("nothing to claim");
  const [context] = await taskContexts(db, [task.task_id]);
  if (!context) throw new Error("no context");
  return { task, context };
}

function record(key: string, text: string): IncomingRecord {
  const content_hash = Buffer.from(text).toString("hex").padEnd(32, "0").slice(0, 32);
  return {
    item_key: key,
    content_hash,
    source_time: START,
    provider_version: null,
    deleted: false,
    data: `{"text":"${text}"}`,
  };
}

/** A page with a record that is new and one that changes. */
async function commit(tx: Tx, { task, context }: Claimed): Promise<void> {
  const origin = {
    endpointId: context.endpoint_id,
    planMonth: context.plan_month,
    sliceId: context.slice_id,
    generation: 1,
    batchNo: 1,
  };
  await taskLease.hold(tx, [task]);
  const counts = await putRecords(tx, origin, [record(`new ${turns}`, "x"), record("old", `text ${turns}`)]);
  await quarantine(tx, origin, "", [
    { item_key: "q", reason_code: "MISSING_ID", reason: "", expression: null, fragment: "" },
  ]);
  const isThere = await commitBatch(tx, {
    ...origin,
    runId: context.run_id,
    taskId: context.task_id,
    planId: context.plan_id,
    exprHash: "",
    phase: 1,
    pageNo: 1,
    pageSize: 10,
    beforeToken: null,
    afterToken: null,
    nextUrl: null,
    request: {},
    responseDigest: {},
    stats: {},
    credentialVersion: null,
    bodyHash: null,
    idHashes: Buffer.from("12345678"),
    counts: { ...counts, received: 2, quarantined: 1, missing: 0 },
    expected: 3,
    position: { pageNo: 1, isListed: true },
  });
  expect(isThere).toBe(true);
}

async function end(tx: Tx, { task, context }: Claimed): Promise<void> {
  const slice = { sliceId: context.slice_id, generation: 1 };
  await readIdHashes(tx, { ...slice, planMonth: context.plan_month });
  await endRun(tx, { runId: context.run_id, state: "SUCCEEDED", stats: {}, error: null, checkpoint: null });
  await endSlice(tx, slice, "COMPLETE", null);
  await taskLease.finish(tx, "succeeded", [task]);
  const moved = await advanceWatermark(tx, {
    provenance_code: context.provenance_code,
    operation_code: "HARVEST",
    cursor_key: "updated",
    namespace_scope_code: "EXPR",
    namespace_key: "works",
    endpointId: context.endpoint_id,
    planMonth: context.plan_month,
    ...slice,
    scheduleInstanceId: context.schedule_instance_id,
    planId: context.plan_id,
    taskId: context.task_id,
    runId: context.run_id,
    exprHash: "",
    maxWindowMs: HOUR_MS,
    observedMax: null,
  });
  expect(moved).toBeDefined();
  await settlePlans(tx, [context.plan_id]);
}

/** Hours before the first turn: tasks, runs, batches, cursor events and records, all done. */
async function addHistory({ source, endpointId, plan }: TestSource): Promise<void> {
  await database.query(
    `with slice as (
       insert into harvest.ing_plan_slice (plan_id, slice_no, provenance_code, endpoint_id, operation_code, namespace_scope_code,
         namespace_key, window_from, window_to, slice_spec, slice_signature_hash, expr_hash, expr_snapshot, status_code, ended_at)
       select $1, n, $2, $3, 'HARVEST', 'EXPR', 'works', $4::timestamptz - make_interval(hours => n - 1),
         $4::timestamptz - make_interval(hours => n - 2), '{}', 'history ' || n, '', '{}', 'COMPLETE', now()
       from generate_series(1, $5::int) n returning slice_id
     ),
     task as (
       insert into harvest.ing_task (schedule_instance_id, plan_id, slice_id, provenance_code, operation_code, partition_key,
         params, expr_hash, idempotent_key, priority, status_code, finished_at)
       select $1, $1, slice_id, $2, 'HARVEST', $6, '{}', '', 'history ' || slice_id, 100, 'SUCCEEDED', now() from slice
       returning task_id, slice_id
     ),
     run as (
       insert into harvest.ing_task_run (task_id, attempt_no, provenance_code, operation_code, status_code, ended_at)
       select task_id, 1, $2, 'HARVEST', 'SUCCEEDED', now() from task returning run_id, task_id
     ),
     event as (
       insert into harvest.ing_cursor_event (plan_month, slice_id, generation, provenance_code, operation_code, cursor_key,
         namespace_scope_code, namespace_key, cursor_type_code, direction_code, new_value, schedule_instance_id, plan_id, task_id,
         run_id, expr_hash)
       select '2026-08-01', slice_id, 1, $2, 'HARVEST', 'updated', 'EXPR', 'works', 'TIME', 'FORWARD', '', $1, $1, 1, 1, '' from slice
     ),
     batch as (
       insert into harvest.ing_task_run_batch (plan_month, slice_id, generation, batch_no, run_id, task_id, plan_id, endpoint_id,
         expr_hash, phase, request, response_digest, stats, id_hashes)
       select '2026-08-01', slice_id, 1, 1, run_id, task_id, $1, $3, '', 1, '{}', '{}', '{}', '' from run join task using (task_id)
     )
     insert into harvest.record (endpoint_id, item_key, content_hash, plan_month, slice_id, generation, batch_no, data)
     select $3, 'history ' || slice_id, gen_random_uuid(), '2026-08-01', slice_id, 1, 1, '{}' from slice`,
    [await plan(), source, endpointId, START, HISTORY, PARTITION],
  );
}

/** As many tasks that are due as tasks that wait for later. */
async function addQueue({ source, endpointId, plan }: TestSource): Promise<void> {
  await database.query(
    `with slice as (
       insert into harvest.ing_plan_slice (plan_id, slice_no, provenance_code, endpoint_id, operation_code, namespace_scope_code,
         namespace_key, slice_spec, slice_signature_hash, expr_hash, expr_snapshot)
       select $1, n, $2, $3, 'HARVEST', 'EXPR', 'works', '{}', 'queue ' || n, '', '{}' from generate_series(1, $4::int) n
       returning slice_id, slice_no
     )
     insert into harvest.ing_task (schedule_instance_id, plan_id, slice_id, provenance_code, operation_code, partition_key,
       params, expr_hash, idempotent_key, priority, scheduled_at)
     select $1, $1, slice_id, $2, 'HARVEST', $5, '{}', '', 'queue ' || slice_id, 100, now() + make_interval(hours => slice_no % 2)
     from slice`,
    [await plan(), source, endpointId, QUEUE, PARTITION],
  );
}

class Undone extends Error {}

/** Sends the statements of `work` without keeping what they change, so that each can be explained afterwards. */
async function undone(work: (tx: Tx) => Promise<void>): Promise<void> {
  const attempt = db.tx(async (tx) => {
    await work(tx);
    throw new Undone();
  });
  await expect(attempt).rejects.toBeInstanceOf(Undone);
}

async function expectFew(names: readonly string[]): Promise<void> {
  for (const name of names) {
    const facts = await recording.explainLast(`harvest.${name}`);
    expect.soft(facts.nodes, name).not.toContain("Seq Scan");
    expect.soft(facts.pages, `pages of ${name} by ${facts.indexes.join()}`).toBeLessThan(PAGES_MAX);
  }
}

test("plans made on an empty database go by the index on a full one", { timeout: 120_000 }, async () => {
  const source = await makeSource(database);
  await database.query("insert into harvest.ing_partition (partition_key) values ($1)", [PARTITION]);
  for (const table of TABLES) {
    // No ANALYZE, so the connection keeps its plans, as under a sudden load.
    await database.query(`alter table harvest.${table} set (autovacuum_enabled = false)`);
  }
  await database.query("analyze");
  // Postgres may choose a generic plan after five executions.
  for (let round = 0; round < 12; round += 1) {
    const planId = await source.plan();
    await addTask(source, planId);
    const claimed = await claim(1);
    await db.tx((tx) => commit(tx, claimed));
    await db.tx((tx) => end(tx, claimed));
    await db.tx(async (tx) => void (await restartSlice(tx, claimed.context.slice_id, 7)));
    await taskLease.heldBy(db, "1");
    await taskLease.reclaim(db, { limit: 10, lostLimit: 5 });
  }
  await addHistory(source);
  recording.calls.clear();

  const planId = await source.plan();
  await addTask(source, planId);
  const claimed = await claim(1);
  await taskLease.heldBy(db, "1");
  await db.tx(async (tx) => void (await restartSlice(tx, claimed.context.slice_id, 7)));
  await expectFew(["task.next_due", "task.context", "task.held_by", "slice.restart"]);
  await database.query("delete from harvest.ing_task_run where task_id = $1", [claimed.task.task_id]);
  await expectFew(["run.start"]);
  await undone((tx) => commit(tx, claimed));
  await expectFew(["task.hold", "record.insert", "quarantine.insert", "batch.commit"]);
  await expectFew(["record.compare", "record.lock", "record.change"]);
  await undone((tx) => end(tx, claimed));
  await expectFew(["cursor.lock", "cursor.value", "batch.id_hashes", "run.end", "slice.end", "task.succeeded"]);
  await expectFew(["cursor.complete_slices", "cursor.event", "cursor.move", "plan.lock_many", "plan.settle"]);

  await addTask(source, await source.plan());
  await expectFew(["task.lock_keys", "task.claim_in_keys"]);
  await taskLease.reclaim(db, { limit: 10, lostLimit: 5 }); // There is no session 1.
  await expectFew(["task.reclaim"]);
});

test("a claim reads what it takes of a long queue that the statistics do not know of", async () => {
  const source = await makeSource(database);
  await database.query(
    "update harvest.ing_task set status_code = 'SUCCEEDED', scheduled_at = null, finished_at = now() where status_code = 'QUEUED'",
  );
  await database.query("analyze harvest.ing_task");
  await addQueue(source);
  recording.calls.clear();
  await claim(2);
  await expectFew(["task.lock_keys", "task.claim_in_keys", "task.next_due"]);
});

const TABLES = [
  "ing_plan",
  "ing_plan_slice",
  "ing_task",
  "ing_task_run",
  "ing_task_run_batch_default",
  "ing_cursor_event_default",
  "record",
];
