/** Cancels beside what adds tasks to the plan. */
import { expect, test } from "vitest";
import { useDatabase } from "../../../../test/database.ts";
import { until } from "../../../../test/until.ts";
import { actor, usePlanner } from "../../plan/planner.fixture.ts";
import { insertParts } from "./parts.ts";
import { cancelPlan, cancelSlice, lockTasksOf } from "./plan-ends.ts";

const database = useDatabase();
const planning = usePlanner(database);

/** Somebody waits for an advisory lock. */
async function untilWaiting(): Promise<void> {
  const waiting = "select from pg_stat_activity where datname = current_database() and wait_event = 'advisory'";
  await until(async () => (await database.query(waiting)).length > 0, "a lock that is waited for");
}

const WINDOW = { from: "2026-08-01", to: "2026-08-02" };
const part = {
  slice_spec: {},
  slice_signature_hash: "part",
  expr_hash: "",
  expr_snapshot: {},
  idempotent_key: "part",
  part: { pages: { from: 1, until: 3 } },
  expected: 1,
};

test.each(["plan", "slice"])(
  "a cancel of a %s locks no task while others are added, and cancels those too",
  async (what) => {
    await planning.addSource("src");
    const { planId } = await planning.planner.create({ source: "src", operation: "HARVEST", window: WINDOW }, actor);
    const [task] = await database.query<{ slice_id: string; task_id: string }>(
      "select slice_id::text, task_id::text from harvest.ing_task where plan_id = $1",
      [planId],
    );
    if (!task) throw new Error("the plan has no task");
    const { slice_id: sliceId, task_id: taskId } = task;
    let cancelling: Promise<unknown> = Promise.resolve();
    await database.db.tx(async (tx) => {
      await lockTasksOf(tx, planId);
      cancelling = database.db.tx(
        async (other): Promise<object | undefined> =>
          what === "plan" ? cancelPlan(other, planId, "why") : cancelSlice(other, { planId, sliceId }, "why"),
      );
      await untilWaiting();
      await database.query("select from harvest.ing_task where task_id = $1 for update nowait", [taskId]);
      await insertParts(tx, { planId, sliceId, taskId }, [part]);
    });
    expect(await cancelling).toBeDefined();
    const rows = await database.query(
      `select t.status_code as task, s.status_code as slice from harvest.ing_task t join harvest.ing_plan_slice s using (slice_id)
     where t.plan_id = $1`,
      [planId],
    );
    const cancelled = { task: "CANCELLED", slice: "CANCELLED" };
    expect(rows).toEqual([cancelled, cancelled]);
  },
);

test("the rest of a plan is not sliced while its tasks are cancelled", async () => {
  await planning.addSource("src", { queuedTasksMax: 2 });
  const window = { from: "2026-08-01", to: "2026-08-05" };
  const { planId } = await planning.planner.create({ source: "src", operation: "HARVEST", window }, actor);
  await database.query(
    "update harvest.ing_task set status_code = 'SUCCEEDED', scheduled_at = null, finished_at = now()",
  );
  let slicing: Promise<{ sliced: number }> | undefined;
  await database.db.tx(async (tx) => {
    await lockTasksOf(tx, planId);
    slicing = planning.planner.continuePlans();
    await untilWaiting();
    await cancelPlan(tx, planId, "why");
  });
  expect(await slicing).toEqual({ sliced: 0, waiting: 0 });
});
