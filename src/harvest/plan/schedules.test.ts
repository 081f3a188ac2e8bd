import { beforeEach, describe, expect, test } from "vitest";
import { useDatabase } from "../../../test/database.ts";
import { noHints } from "../../../test/no-hints.ts";
import { createWake } from "../../kernel/work/wake.ts";
import { nextScheduleMs } from "../store/plans/schedules.ts";
import { PLANS_TOPIC } from "../topics.ts";
import { actor, usePlanner } from "./planner.fixture.ts";
import { createPlannerService } from "./planner-service.ts";
import { createSchedules, type Schedules } from "./schedules.ts";

const database = useDatabase();
const planning = usePlanner(database);
const logged: string[] = [];
const log = {
  info: () => {},
  warn: (_: object, text: string) => void logged.push(text),
  error: (_: object, text: string) => void logged.push(text),
};
let schedules: Schedules;

const open = () =>
  createSchedules({
    db: database.db,
    hints: noHints,
    wake: createWake(),
    clock: planning.clock,
    planner: planning.planner,
    log,
  });

beforeEach(() => {
  logged.length = 0;
  schedules = open();
});

/** Adds a schedule that is due so many minutes ago; null for one without a next fire. */
async function add(
  name: string,
  fields: { minutesAgo?: number; cron?: string; operation?: string; params?: object } = {},
) {
  const { minutesAgo = 0, cron = "* * * * *", operation = "HARVEST", params = {} } = fields;
  const [row] = await database.query<{ schedule_id: number; next_at: Date }>(
    `insert into harvest.ing_schedule (provenance_code, schedule_name, endpoint_name, operation_code, cron, time_zone, params, next_at)
     values ('src', $1, 'works', $2, $3, 'UTC', $4, date_trunc('minute', now()) - make_interval(mins => $5))
     returning schedule_id, next_at`,
    [name, operation, cron, JSON.stringify(params), minutesAgo],
  );
  if (!row) throw new Error("no schedule");
  return row;
}

const nextOf = async (scheduleId: number) => {
  const [row] = await database.query<{ next_at: Date; now: Date }>(
    "select next_at, now() from harvest.ing_schedule where schedule_id = $1",
    [scheduleId],
  );
  return row ?? { next_at: new Date(0), now: new Date(0) };
};
const plans = () => database.query<{ plan_id: string }>("select plan_id from harvest.ing_plan");
const instances = () =>
  database.query<Record<string, unknown>>("select * from harvest.ing_schedule_instance order by created_at");

describe("a schedule that is due", () => {
  test("makes a plan of what is new, and has its next time", async () => {
    await planning.addSource("src");
    const { schedule_id, next_at } = await add("minutely");
    expect(await schedules.fire()).toBe(1);
    expect(await plans()).toHaveLength(1);
    expect(await instances()).toMatchObject([
      {
        scheduler_code: "cron",
        scheduler_job_id: String(schedule_id),
        scheduler_log_id: next_at.toISOString(),
        trigger_type_code: "SCHEDULE",
        created_by: "schedule minutely",
      },
    ]);
    const { next_at: later, now } = await nextOf(schedule_id);
    expect(later.getTime()).toBeGreaterThan(now.getTime());
    expect(await schedules.fire()).toBe(0);
  });

  test("is fired once by several processes", async () => {
    await planning.addSource("src");
    await add("minutely");
    const fired = await Promise.all([open().fire(), open().fire(), open().fire(), open().fire()]);
    expect(fired.reduce((sum, count) => sum + count, 0)).toBe(1);
    expect(await plans()).toHaveLength(1);
  });

  test("makes one plan for all the times that were missed", async () => {
    await planning.addSource("src");
    const { next_at } = await add("minutely", { minutesAgo: 600 });
    await schedules.fire();
    expect(await plans()).toHaveLength(1);
    const [trigger] = await instances();
    const fired = Date.parse(String(trigger?.["scheduler_log_id"]));
    expect(fired).toBeGreaterThanOrEqual(next_at.getTime() + 599 * 60_000);
  });

  test("keeps why there was nothing to plan", async () => {
    await planning.addSource("src");
    const first = await add("minutely");
    await schedules.fire();
    await database.query("update harvest.ing_schedule set next_at = now() - interval '1 second'");
    expect(await schedules.fire()).toBe(0);
    const [, second] = await instances();
    expect(second).toMatchObject({
      record_remarks: { nothing: expect.stringContaining("2026-08-21T01:00:00Z") as string },
    });
    const [listed] = await schedules.list({ source: "src" });
    expect(listed).toMatchObject({ schedule_id: first.schedule_id, last_remarks: second?.["record_remarks"] });
  });

  test("keeps what is wrong with its definition, sends an alert, and has its next time", async () => {
    const problems = [{ table: "trigger", field: "params.q", reason: "It is unknown." }];
    await planning.addSource("src", { problems });
    const { schedule_id } = await add("minutely");
    expect(await schedules.fire()).toBe(0);
    expect(await instances()).toMatchObject([{ record_remarks: { code: "DEFINITION_INVALID", problems } }]);
    expect(planning.events).toMatchObject([{ topic: "plan.refused", payload: { source: "src", endpoint: "works" } }]);
    const { next_at, now } = await nextOf(schedule_id);
    expect(next_at.getTime()).toBeGreaterThan(now.getTime());
  });

  test("of an operation that cannot be planned is refused in the same way", async () => {
    await planning.addSource("src");
    await add("refresh", { operation: "BACKFILL" });
    expect(await schedules.fire()).toBe(0);
    expect(await instances()).toMatchObject([{ record_remarks: { code: "VALIDATION_FAILED" } }]);
    expect(planning.events).toHaveLength(1);
  });

  test("is postponed when it cannot be fired, and holds up no other", async () => {
    await planning.addSource("src");
    const broken = await add("broken", { minutesAgo: 1 });
    await database.query("update harvest.ing_schedule set time_zone = 'Nowhere/At_All' where schedule_name = 'broken'");
    await add("fine");
    expect(await schedules.fire()).toBe(1);
    const { next_at, now } = await nextOf(broken.schedule_id);
    expect(next_at.getTime() - now.getTime()).toBeGreaterThan(3_000_000);
    expect(logged).toEqual(["a schedule failed to fire and is postponed"]);
  });
});

describe("a paused schedule", () => {
  test("does not fire, and what passed meanwhile is not missed", async () => {
    await planning.addSource("src");
    const { schedule_id } = await add("minutely", { minutesAgo: 5 });
    expect((await schedules.setPaused(schedule_id, true, actor)).paused_at).not.toBeNull();
    expect(await schedules.fire()).toBe(0);
    planning.at(new Date().toISOString());
    expect((await schedules.setPaused(schedule_id, false, actor)).paused_at).toBeNull();
    expect(await schedules.fire()).toBe(0);
    const { next_at, now } = await nextOf(schedule_id);
    expect(next_at.getTime()).toBeGreaterThan(now.getTime() - 60_000);
  });

  test("can be paused twice", async () => {
    await planning.addSource("src");
    const { schedule_id } = await add("minutely");
    const first = await schedules.setPaused(schedule_id, true, actor);
    expect(await schedules.setPaused(schedule_id, true, actor)).toEqual(first);
  });

  test("that does not exist is not found", async () => {
    await expect(schedules.setPaused(999_999, true, actor)).rejects.toMatchObject({
      code: "HARVEST_SCHEDULE_NOT_FOUND",
    });
  });
});

describe("the service", () => {
  const service = (wake = createWake()) =>
    createPlannerService({ db: database.db, wake, planner: planning.planner, schedules, log, onRun: () => {} });

  test("fires schedules and goes on with plans that waited", async () => {
    await planning.addSource("src", { queuedTasksMax: 2 });
    const plan = await planning.planner.create(
      { source: "src", operation: "HARVEST", window: { from: "2026-08-01", to: "2026-08-04" } },
      actor,
    );
    await add("minutely");
    expect(await service().runOnce()).toEqual({ planned: 1, sliced: 0, waiting: 1 });
    await database.query(
      "update harvest.ing_task set status_code = 'SUCCEEDED', scheduled_at = null, finished_at = now() where plan_id = $1",
      [plan.planId],
    );
    expect(await service().runOnce()).toEqual({ planned: 0, sliced: 1, waiting: 0 });
  });

  test("runs after a hint", async () => {
    const wake = createWake();
    const running = service(wake);
    const first = running.nextRun();
    running.start();
    await first;
    const second = running.nextRun();
    wake.hint(PLANS_TOPIC);
    expect(await second).toEqual({ planned: 0, sliced: 0, waiting: 0 });
    await running.stop();
  });
});

test("a schedule of what is paused does not fire, and fires once when it is resumed", async () => {
  await planning.addSource("src");
  const { schedule_id } = await add("hourly", { minutesAgo: 90, cron: "0 * * * *" });
  await database.query(
    "insert into harvest.pause (provenance_code, endpoint_name, paused_by) values ('src', 'works', 'ann')",
  );
  expect(await schedules.fire()).toBe(0);
  expect(await nextScheduleMs(database.db)).toBeUndefined();
  expect(await instances()).toEqual([]);
  await database.query("delete from harvest.pause");
  expect(await nextScheduleMs(database.db)).toBeLessThan(0);
  expect(await schedules.fire()).toBe(1);
  expect(await schedules.fire()).toBe(0);
  expect(await plans()).toHaveLength(1);
  const { next_at, now } = await nextOf(schedule_id);
  expect(next_at.getTime()).toBeGreaterThan(now.getTime());
});
