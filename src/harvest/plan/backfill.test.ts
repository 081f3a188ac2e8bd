/** Backfills as plans: the newest window first, back from where HARVEST began, without what is there already. */
import { describe, expect, test } from "vitest";
import { useDatabase } from "../../../test/database.ts";
import { actor, type SourceOptions, usePlanner } from "./planner.fixture.ts";
import type { PlanRequest } from "./request.ts";

const database = useDatabase();
const planning = usePlanner(database);

const day = (text: string) => new Date(`${text}T00:00:00Z`);
const EARLIEST = { window: { earliest: "2026-08-01" } } as const satisfies SourceOptions;
const window = (from: string, to: string): Partial<PlanRequest> => ({ window: { from, to } });

const create = (fields: Partial<PlanRequest> = {}) =>
  planning.planner.create({ source: "src", operation: "BACKFILL", ...fields }, actor);
const harvest = (from: string, to: string) =>
  planning.planner.create({ source: "src", operation: "HARVEST", ...window(from, to) }, actor);

const daysOf = async (planId: string) =>
  (
    await database.query<{ day: string }>(
      `select to_char(s.window_from at time zone 'UTC', 'DD') as day
       from harvest.ing_plan_slice s join harvest.ing_task t using (slice_id) where s.plan_id = $1 order by t.task_id`,
      [planId],
    )
  ).map((row) => Number(row.day));

async function end(planId: string, state = "COMPLETE", from?: string): Promise<void> {
  await database.db.tx(async (tx) => {
    await tx.rows(
      {
        name: `test.backfill.end.${from === undefined}`,
        text: `with ended as (
                 update harvest.ing_plan_slice set status_code = $2, ended_at = now(), reason = 'too many'
                 where plan_id = $1 and status_code = 'READY' and ($3::timestamptz is null or window_from = $3) returning slice_id)
               update harvest.ing_task t set status_code = 'SUCCEEDED', finished_at = now(), scheduled_at = null
               from ended where t.slice_id = ended.slice_id`,
      },
      [planId, state, from === undefined ? null : day(from)],
    );
    await planning.settle(tx, [planId]);
  });
}

describe("a backfill without a window", () => {
  test("goes back from where HARVEST began to the earliest record, the newest day first", async () => {
    await planning.addSource("src", EARLIEST);
    await harvest("2026-08-06", "2026-08-10");
    const plan = await create();
    expect(plan).toMatchObject({
      operation: "BACKFILL",
      priority: 300,
      window: { from: day("2026-08-01"), to: day("2026-08-06") },
      slices: 5,
    });
    expect(await daysOf(plan.planId)).toEqual([5, 4, 3, 2, 1]);
    const [partition] = await database.query("select partition_key from harvest.ing_task where plan_id = $1 limit 1", [
      plan.planId,
    ]);
    expect(partition).toEqual({ partition_key: "src/works/BACKFILL" });
    const places = await database.query("select partition_key, concurrency from harvest.ing_partition order by 1");
    expect(places).toEqual([
      { partition_key: "src/works/BACKFILL", concurrency: 4 },
      { partition_key: "src/works/HARVEST", concurrency: 8 },
    ]);
  });

  test("goes back from what is closed where nothing was harvested", async () => {
    await planning.addSource("src", { window: { earliest: "2026-08-18" } });
    expect(await create()).toMatchObject({ window: { from: day("2026-08-18"), to: day("2026-08-20") } });
  });

  test("leaves out what HARVEST or another backfill has completed, or is about to", async () => {
    await planning.addSource("src", EARLIEST);
    await harvest("2026-08-09", "2026-08-10");
    await end((await create(window("2026-08-02", "2026-08-04"))).planId);
    await create(window("2026-08-07", "2026-08-08"));
    const plan = await create();
    expect(plan.window).toEqual({ from: day("2026-08-01"), to: day("2026-08-09") });
    expect(await daysOf(plan.planId)).toEqual([8, 6, 5, 4, 1]);
  });

  test("takes a day that failed again, and has nothing to do when all is complete", async () => {
    await planning.addSource("src", EARLIEST);
    await harvest("2026-08-04", "2026-08-05");
    const first = await create();
    await end(first.planId, "FAILED", "2026-08-02");
    await end(first.planId);
    const second = await create();
    expect(await daysOf(second.planId)).toEqual([2]);
    await end(second.planId);
    await expect(create()).rejects.toMatchObject({
      code: "HARVEST_NOTHING_TO_PLAN",
      message: expect.stringContaining("2026-08-01T00:00:00Z to 2026-08-04T00:00:00Z"),
    });
  });

  test("has nothing to do where HARVEST began at the earliest record", async () => {
    await planning.addSource("src", EARLIEST);
    await harvest("2026-08-01", "2026-08-02");
    await expect(create()).rejects.toMatchObject({
      code: "HARVEST_NOTHING_TO_PLAN",
      message: "There is nothing to plan. HARVEST began at 2026-08-01T00:00:00Z, and the source has nothing older.",
    });
  });

  test("is refused where nothing says how far back", async () => {
    await planning.addSource("src");
    await expect(create()).rejects.toMatchObject({
      code: "VALIDATION_FAILED",
      message: expect.stringContaining("declare `window.earliest`"),
    });
  });
});

test("a backfill of a window takes all of it, whatever is there", async () => {
  await planning.addSource("src");
  await end((await harvest("2026-08-02", "2026-08-04")).planId);
  const plan = await create(window("2026-08-01", "2026-08-06"));
  expect(await daysOf(plan.planId)).toEqual([5, 4, 3, 2, 1]);
});

test("a preview shows the windows in the order in which they are taken", async () => {
  await planning.addSource("src", EARLIEST);
  const draft = await planning.planner.preview({
    source: "src",
    operation: "BACKFILL",
    window: { from: "2026-08-01", to: "2026-08-04" },
  });
  expect(draft.windows.map((one) => one && "from" in one && one.from)).toEqual([
    day("2026-08-03"),
    day("2026-08-02"),
    day("2026-08-01"),
  ]);
});

test("a backfill of which a part fills the queue goes on before it, and keeps that part from others", async () => {
  await planning.addSource("src", { ...EARLIEST, queuedTasksMax: 2 });
  const plan = await create(window("2026-08-01", "2026-08-07"));
  expect(plan).toMatchObject({ status: "PARTIAL", slices: 2, unslicedFrom: day("2026-08-05") });
  const other = await create();
  expect(other.window).toEqual({ from: day("2026-08-07"), to: day("2026-08-20") });
  await planning.planner.cancel(other.planId, actor);
  await end(plan.planId);
  expect(await planning.planner.continuePlans()).toEqual({ sliced: 2, waiting: 1 });
  await end(plan.planId);
  expect(await planning.planner.continuePlans()).toEqual({ sliced: 2, waiting: 0 });
  expect(await daysOf(plan.planId)).toEqual([6, 5, 4, 3, 2, 1]);
  await end(plan.planId);
  const [row] = await database.query("select status_code from harvest.ing_plan where plan_id = $1", [plan.planId]);
  expect(row).toEqual({ status_code: "COMPLETE" });
});
