/** The statements of the planner touch as few pages after years of plans as on the first day. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { useDatabase } from "../../../test/database.ts";
import { silentLog } from "../../../test/log.ts";
import { noHints } from "../../../test/no-hints.ts";
import { openRecordingDb, planForValues, type RecordingDb } from "../../../test/plans.ts";
import type { Db } from "../../kernel/data/db.ts";
import { createWake } from "../../kernel/work/wake.ts";
import { listPlans } from "../store/plans/plan-reads.ts";
import { lastSliceNo } from "../store/plans/plans.ts";
import { nextScheduleMs } from "../store/plans/schedules.ts";
import { listTasks } from "../store/queue/task-reads.ts";
import { nextTaskDueMs } from "../store/queue/tasks.ts";
import { actor, usePlanner } from "./planner.fixture.ts";
import type { Planner } from "./planner.ts";
import { createSchedules } from "./schedules.ts";

const PLANS = 2_000;
const SLICES_EACH = 30;
/** Several times the measured numbers. A scan of history reads 1,000 and more. */
const PAGES_MAX = 150;
/** The same for pages of ten. */
const PAGES_OF_PAGE_MAX = 50;

const database = useDatabase();
const planning = usePlanner(database);
let db: Db;
let calls: RecordingDb["calls"];
let explainLast: RecordingDb["explainLast"];

beforeAll(() => {
  ({ db, calls, explainLast } = openRecordingDb(database.connection, "harvest."));
});
afterAll(() => db.close());

/** Years of plans of the same endpoint, complete, with their tasks. */
async function addHistory(source: string): Promise<void> {
  await database.query(
    `insert into harvest.ing_plan (plan_id, schedule_instance_id, provenance_code, endpoint_id, endpoint_name, operation_code,
       window_from, window_to, plan_strategy, spec_fingerprint, expr_proto_hash, namespace_scope_code, namespace_key, priority,
       planned_at, plan_month, status_code, created_at, ended_at)
     select gen_random_uuid(), p.schedule_instance_id, p.provenance_code, p.endpoint_id, p.endpoint_name, p.operation_code,
       p.window_from - make_interval(days => n), p.window_to - make_interval(days => n), 'TIME', p.spec_fingerprint, '', p.namespace_scope_code,
       p.namespace_key, 100, now(), p.plan_month, 'COMPLETE', now() - make_interval(days => n), now()
     from (select * from harvest.ing_plan where provenance_code = $2 limit 1) p, generate_series(1, $1::int) n`,
    [PLANS, source],
  );
  await database.query(
    `insert into harvest.ing_plan_slice (plan_id, slice_no, provenance_code, endpoint_id, operation_code, namespace_scope_code,
       namespace_key, window_from, window_to, slice_spec, slice_signature_hash, expr_hash, expr_snapshot, status_code, ended_at)
     select p.plan_id, n, p.provenance_code, p.endpoint_id, p.operation_code, p.namespace_scope_code, p.namespace_key,
       p.window_from - make_interval(days => 40), p.window_to - make_interval(days => 40), '{}', n::text, '', '{}', 'COMPLETE', now()
     from harvest.ing_plan p, generate_series(1, $1::int) n where p.expr_proto_hash = ''`,
    [SLICES_EACH],
  );
  await database.query(
    `insert into harvest.ing_task (schedule_instance_id, plan_id, slice_id, provenance_code, operation_code, partition_key, params,
       expr_hash, idempotent_key, status_code, priority, finished_at)
     select p.schedule_instance_id, p.plan_id, s.slice_id, p.provenance_code, p.operation_code, 'src/works/HARVEST', '{}', '',
       s.slice_id::text, 'SUCCEEDED', 100, now()
     from harvest.ing_plan_slice s join harvest.ing_plan p using (plan_id) where p.expr_proto_hash = ''`,
  );
}

/** What is queued is done. */
async function finishAll(): Promise<void> {
  await database.query(
    `update harvest.ing_plan_slice set status_code = 'COMPLETE', ended_at = now() where status_code = 'READY'`,
  );
  await database.query(
    `update harvest.ing_task set status_code = 'SUCCEEDED', scheduled_at = null, finished_at = now() where status_code = 'QUEUED'`,
  );
}

/** Every statement of the planner, once. */
async function turn(planner: Planner, round: number): Promise<void> {
  const schedules = createSchedules({
    db,
    hints: noHints,
    wake: createWake(),
    clock: planning.clock,
    planner,
    log: silentLog,
  });
  planning.at(new Date(Date.UTC(2026, 7, 20 + 4 * round, 12)).toISOString());
  const plan = await planner.create({ source: "src", operation: "HARVEST" }, actor);
  expect(plan.status).toBe("PARTIAL");
  let waiting = 1;
  while (waiting > 0) {
    await finishAll();
    ({ waiting } = await planner.continuePlans());
  }
  await finishAll();
  await db.tx((tx) => planning.settle(tx, [plan.planId]));
  const window = { from: "2026-08-17", to: "2026-08-19" };
  const other = await planner.create({ source: "src", operation: "HARVEST", window }, actor);
  await planner.cancel(other.planId, actor);
  await schedules.fire();
  await nextScheduleMs(db);
}

test("plans made on an empty database go by the index on a full one", async () => {
  // A plan of four days finds room for two.
  await planning.addSource("src", { queuedTasksMax: 2, window: { earliest: "2026-08-17" } });
  const planner = planning.open(db);
  for (const table of ["ing_plan", "ing_plan_slice", "ing_task"]) {
    // No ANALYZE, so the connection keeps its plans, as under a sudden load.
    await database.query(`alter table harvest.${table} set (autovacuum_enabled = false)`);
  }
  await database.query("analyze");
  for (let round = 0; round < 12; round += 1) await turn(planner, round); // Postgres may choose a generic plan after five executions.
  await addHistory("src");
  calls.clear();
  await turn(planner, 12);

  expect([...calls.keys()]).toEqual(expect.arrayContaining(HOT));
  for (const name of HOT) {
    const facts = await explainLast(name);
    expect(facts.nodes, name).not.toContain("Seq Scan");
    expect(facts.pages, `pages of ${name}`).toBeLessThan(PAGES_MAX);
  }
});

test("pages and the next task cost what they show, however much there was before", async () => {
  await planning.addSource("src");
  await planning.addSource("rare");
  const window = { from: "2026-08-01", to: "2026-08-02" };
  const { planId } = await planning.planner.create({ source: "rare", operation: "HARVEST", window }, actor);
  await database.query("update harvest.ing_plan set status_code = 'FAILED', ended_at = now()");
  await planning.planner.create({ source: "src", operation: "HARVEST", window }, actor);
  await addHistory("src");
  // One plan with many slices, all of them queued and due, and one task that is not due yet.
  await database.query(
    `with slice as (
       insert into harvest.ing_plan_slice (plan_id, slice_no, provenance_code, endpoint_id, operation_code, namespace_scope_code,
         namespace_key, slice_spec, slice_signature_hash, expr_hash, expr_snapshot)
       select plan_id, n, provenance_code, endpoint_id, operation_code, namespace_scope_code, namespace_key, '{}', n::text, '', '{}'
       from harvest.ing_plan, generate_series(2, 20000) n where plan_id = $1 returning slice_id, slice_no)
     insert into harvest.ing_task (schedule_instance_id, plan_id, slice_id, provenance_code, operation_code, partition_key, params,
       expr_hash, idempotent_key, priority, scheduled_at)
     select gen_random_uuid(), $1, slice_id, 'rare', 'HARVEST', 'rare/works/HARVEST', '{}', '', 'q' || slice_id, slice_no % 1000,
       case slice_no when 20000 then now() + interval '1 day' else now() - interval '1 day' end from slice`,
    [planId],
  );
  await database.query("insert into harvest.ing_partition (partition_key) values ('old/works/HARVEST')");
  await database.query(
    "update harvest.ing_task set partition_key = 'old/works/HARVEST' where idempotent_key = 'q' || slice_id",
  );
  await database.query(
    "vacuum analyze harvest.ing_plan, harvest.ing_plan_slice, harvest.ing_task, harvest.ing_partition",
  );
  await planForValues(db);
  const reading: Db = { ...db, read: db.rows };
  const anyPlan = { source: undefined, endpoint: undefined, operation: undefined, status: undefined, after: undefined };

  calls.clear();
  expect(await listPlans(reading, { ...anyPlan, source: "rare" }, 10)).toHaveLength(1);
  expect(await listPlans(reading, { ...anyPlan, status: "FAILED" }, 10)).toHaveLength(1);
  expect(await listTasks(reading, { ...anyPlan, plan: undefined, source: "rare", endpoint: "works" }, 10)).toHaveLength(
    1,
  );
  expect(await lastSliceNo(reading, planId)).toBe(20_000);
  expect(await nextTaskDueMs(reading)).toBeGreaterThan(0);
  expect(calls.size).toBe(5);
  for (const name of calls.keys()) {
    const { pages, indexes } = await explainLast(name);
    expect(pages, `pages of ${name} by ${indexes.join()}`).toBeLessThan(PAGES_OF_PAGE_MAX);
  }
}, 60_000);

const HOT = [
  "harvest.plan.missing_ranges",
  "harvest.cursor.value",
  "harvest.snapshot.insert",
  "harvest.partition.set",
  "harvest.plan.begin_slicing",
  "harvest.task.queued",
  "harvest.slice.insert",
  "harvest.plan.end_slicing",
  "harvest.plan.partial",
  "harvest.plan.lock_partial",
  "harvest.slice.last_no",
  "harvest.plan.lock_many",
  "harvest.plan.settle",
  "harvest.task.cancel",
  "harvest.slice.cancel",
  "harvest.id_item.clear_cancelled",
  "harvest.plan.cancel",
  "harvest.schedule.due",
  "harvest.schedule.next_due",
];
