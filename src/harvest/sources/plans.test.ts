/** What the pages of sources read costs what they show, after years of plans and runs. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { useDatabase } from "../../../test/database.ts";
import { openRecordingDb, planForValues, type RecordingDb } from "../../../test/plans.ts";
import type { Db } from "../../kernel/data/db.ts";
import { actor, usePlanner } from "../plan/planner.fixture.ts";
import { coverOf, namespacesOf } from "../store/cursors/coverage.ts";
import { gapSlices, sliceSums } from "../store/plans/plan-reads.ts";
import { runsOfPlan, runsOfTasks, tasksOfSlice } from "../store/queue/task-reads.ts";
import { failuresOf, newestRunAt, paceOf, parkedOf } from "../store/sources/pace.ts";
import { limitsOf, listSummaries, watermarksOf } from "../store/sources/source-reads.ts";

const PLANS = 300;
const SLICES_EACH = 100;
/** Of the cancelled plan. */
const FAILED_SLICES = 3;
/** Several times the measured numbers. A scan of the slices, tasks or runs reads 1,000 and more. */
const PAGES_MAX = 150;
const WINDOW = { from: "2026-08-01", to: "2026-08-02" };

const database = useDatabase();
const planning = usePlanner(database);
let db: Db;
let calls: RecordingDb["calls"];
let explainLast: RecordingDb["explainLast"];

beforeAll(() => {
  ({ db, calls, explainLast } = openRecordingDb(database.connection, "harvest."));
});
afterAll(() => db.close());

/** Plans before the first one of the source, with complete slices of an hour, each with a task and a run. */
async function addHistory(source: string): Promise<void> {
  await database.query(
    `with made as (
       insert into harvest.ing_plan (plan_id, schedule_instance_id, provenance_code, endpoint_id, endpoint_name, operation_code,
         window_from, window_to, plan_strategy, spec_fingerprint, expr_proto_hash, namespace_scope_code, namespace_key, priority,
         planned_at, plan_month, status_code, created_at, ended_at)
       select ('00000000-0000-7000-8000-' || lpad(n::text, 12, '0'))::uuid, p.schedule_instance_id, p.provenance_code, p.endpoint_id,
         p.endpoint_name, p.operation_code, p.window_from, p.window_to, 'TIME', p.spec_fingerprint, '', p.namespace_scope_code,
         p.namespace_key, 100, now(), p.plan_month, 'COMPLETE', now(), now()
       from harvest.ing_plan p, generate_series(1, $2::int) n where p.provenance_code = $1
       returning plan_id, provenance_code, endpoint_id, operation_code, namespace_scope_code, namespace_key, schedule_instance_id,
         window_from - make_interval(hours => $3 * right(plan_id::text, 12)::int) as first_hour
     ),
     slice as (
       insert into harvest.ing_plan_slice (plan_id, slice_no, provenance_code, endpoint_id, operation_code, namespace_scope_code,
         namespace_key, window_from, window_to, slice_spec, slice_signature_hash, expr_hash, expr_snapshot, status_code, ended_at)
       select plan_id, n, provenance_code, endpoint_id, operation_code, namespace_scope_code, namespace_key,
         first_hour + make_interval(hours => n), first_hour + make_interval(hours => n + 1), '{}', n::text, '', '{}', 'COMPLETE', now()
       from made, generate_series(1, $3::int) n order by 1, 2 returning slice_id, plan_id, provenance_code, window_from
     ),
     task as (
       insert into harvest.ing_task (schedule_instance_id, plan_id, slice_id, provenance_code, operation_code, partition_key, params,
         expr_hash, idempotent_key, status_code, priority, finished_at)
       select gen_random_uuid(), plan_id, slice_id, provenance_code, 'HARVEST', provenance_code || '/works/HARVEST', '{}', '',
         slice_id::text, 'SUCCEEDED', 100, now() from slice returning task_id, provenance_code
     )
     insert into harvest.ing_task_run (task_id, attempt_no, provenance_code, operation_code, status_code, stats, started_at, ended_at)
     select task_id, 1, provenance_code, 'HARVEST', 'SUCCEEDED', '{"reqCount": 1}', at, at
     from (select *, now() - make_interval(days => 1, mins => row_number() over (order by task_id)::int) as at from task) task`,
    [source, PLANS, SLICES_EACH],
  );
}

/** A plan whose slices had failed before it was cancelled: over the last hours of the history, which are complete, and one that is not. */
async function addCancelled(source: string): Promise<string> {
  const planId = "00000000-0000-7000-9000-000000000000";
  await database.query(
    `with made as (
       insert into harvest.ing_plan (plan_id, schedule_instance_id, provenance_code, endpoint_id, endpoint_name, operation_code,
         window_from, window_to, plan_strategy, spec_fingerprint, expr_proto_hash, namespace_scope_code, namespace_key, priority,
         planned_at, plan_month, status_code, created_at, ended_at)
       select $2::uuid, p.schedule_instance_id, p.provenance_code, p.endpoint_id,
         p.endpoint_name, p.operation_code, p.window_from, p.window_to, 'TIME', p.spec_fingerprint, '', p.namespace_scope_code,
         p.namespace_key, 100, now(), p.plan_month, 'CANCELLED', now(), now()
       from harvest.ing_plan p where p.provenance_code = $1 order by p.plan_id desc limit 1
       returning *
     )
     insert into harvest.ing_plan_slice (plan_id, slice_no, provenance_code, endpoint_id, operation_code, namespace_scope_code,
       namespace_key, window_from, window_to, slice_spec, slice_signature_hash, expr_hash, expr_snapshot, status_code, ended_at, reason)
     select plan_id, n, provenance_code, endpoint_id, operation_code, namespace_scope_code, namespace_key,
       window_from + make_interval(hours => n - $3), window_from + make_interval(hours => n + 1 - $3), '{}', n::text, '', '{}', 'FAILED', now(), 'no'
     from made, generate_series(1, $3::int + 1) n`,
    [source, planId, FAILED_SLICES],
  );
  return planId;
}

test("health, pace, coverage and runs of a plan go by the index", async () => {
  await planning.addSource("src");
  const { planId } = await planning.planner.create({ source: "src", operation: "HARVEST", window: WINDOW }, actor);
  await addHistory("src");
  const [task] = await database.query<{ task_id: string; slice_id: string }>(
    `update harvest.ing_task set status_code = 'FAILED', scheduled_at = null, finished_at = now() where plan_id = $1
     returning task_id::text, slice_id::text`,
    [planId],
  );
  if (!task) throw new Error("the plan has no task");
  await database.query(
    `insert into harvest.ing_task_run (task_id, attempt_no, provenance_code, operation_code, status_code, error, ended_at)
     values ($1, 1, 'src', 'HARVEST', 'FAILED', 'no', now())`,
    [task.task_id],
  );
  const cancelled = await addCancelled("src");
  await database.query(
    `insert into harvest.ing_cursor (provenance_code, operation_code, cursor_key, namespace_scope_code, namespace_key,
       cursor_type_code, cursor_value, normalized_instant, plan_id, slice_id, generation, expr_hash)
     select provenance_code, operation_code, 'updated', namespace_scope_code, namespace_key, 'TIME', '', window_from, plan_id, 1, 1, ''
     from harvest.ing_plan where plan_id = $1`,
    [planId],
  );
  await database.query(
    "vacuum analyze harvest.ing_plan, harvest.ing_plan_slice, harvest.ing_task, harvest.ing_task_run, harvest.ing_cursor",
  );
  await planForValues(db);
  const reading: Db = { ...db, read: db.rows };
  const since = new Date(Date.now() - 3_600_000);

  calls.clear();
  const summaries = await listSummaries(reading, { q: undefined, source: undefined }, { size: 10, offset: 0 });
  expect(summaries).toMatchObject({ total: 1, rows: [{ plan_id: planId, open_plans: 1 }] });
  expect(await watermarksOf(reading, ["src"], 10)).toHaveLength(1);
  expect(await limitsOf(reading, ["src"], 10)).toHaveLength(1);
  expect(await paceOf(reading, "src", since, 75)).toMatchObject([{ runs: 1, failed: 1 }]);
  expect(await parkedOf(reading, "src", since, 5)).toEqual([]);
  expect(await failuresOf(reading, "src", since, 5)).toMatchObject([{ plan_id: planId }]);
  expect(await newestRunAt(reading, "src")).toBeInstanceOf(Date);
  const [namespace] = await namespacesOf(reading, "src", 10);
  if (!namespace) throw new Error("the source has no namespace");
  const cover = await coverOf(
    reading,
    [
      {
        endpointId: namespace.endpoint_id,
        operation: namespace.operation_code,
        scope: namespace.namespace_scope_code,
        key: namespace.namespace_key,
        since: new Date("2026-07-31T00:00:00Z"),
        widestMs: 3_600_000,
        watermark: namespace.watermark,
        slicesAfter: namespace.slices_after,
      },
    ],
    10,
  );
  expect(cover.map(({ kind }) => kind)).toEqual(["complete", "open", "gap"]);
  expect(await tasksOfSlice(reading, task.slice_id, 10)).toHaveLength(1);
  expect(await runsOfTasks(reading, [task.task_id], 10)).toHaveLength(1);
  const large = "00000000-0000-7000-8000-000000000007";
  expect(await runsOfPlan(reading, large, { taskId: "9223372036854775807", attempt: 0 }, 10)).toHaveLength(10);

  const sums = await sliceSums(reading, cancelled);
  expect(sums).toMatchObject([{ status_code: "FAILED", slices: FAILED_SLICES + 1, gaps: 1 }]);
  expect(await gapSlices(reading, cancelled, 10)).toMatchObject([{ slice_no: FAILED_SLICES + 1 }]);

  expect(calls.size).toBe(15);
  for (const name of calls.keys()) {
    const { pages, indexes } = await explainLast(name);
    expect(pages, `pages of ${name} by ${indexes.join()}`).toBeLessThan(PAGES_MAX);
  }
}, 60_000);
