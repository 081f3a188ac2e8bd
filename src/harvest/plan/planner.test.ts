import { describe, expect, test } from "vitest";
import { useDatabase } from "../../../test/database.ts";
import { DAY_MS } from "../../kernel/time/units.ts";
import { endSlice } from "../store/plans/slices.ts";
import { taskLease } from "../store/queue/tasks.ts";
import { actor, usePlanner } from "./planner.fixture.ts";
import type { PlanRequest } from "./request.ts";

const database = useDatabase();
const planning = usePlanner(database);

const harvest = (fields: Partial<PlanRequest> = {}): PlanRequest => ({
  source: "src",
  operation: "HARVEST",
  ...fields,
});
const window = (from: string, to: string) => ({ window: { from, to } });
const create = (fields: Partial<PlanRequest> = {}) => planning.planner.create(harvest(fields), actor);
const day = (text: string) => new Date(`${text}T00:00:00Z`);

interface SliceRow {
  slice_id: string;
  slice_no: number;
  window_from: Date;
  window_to: Date;
  status_code: string;
}

const slicesOf = (planId: string) =>
  database.query<SliceRow>("select * from harvest.ing_plan_slice where plan_id = $1 order by slice_no", [planId]);
const statusOf = async (planId: string) =>
  (
    await database.query<{ status_code: string }>("select status_code from harvest.ing_plan where plan_id = $1", [
      planId,
    ])
  )[0]?.status_code;
const countOf = async (table: string) =>
  (await database.query<{ n: number }>(`select count(*)::int as n from harvest.${table}`))[0]?.n;

/** Ends slices of a plan as a worker would, in one transaction each. */
async function end(planId: string, state: string, from?: string): Promise<void> {
  await database.db.tx(async (tx) => {
    await tx.rows(
      {
        name: `test.end.${state}.${from === undefined}`,
        text: `with ended as (
                 update harvest.ing_plan_slice
                 set status_code = $2, ended_at = now(), reason = case when $2 in ('FAILED', 'INCOMPLETE') then 'too many' end
                 where plan_id = $1 and status_code = 'READY' and ($3::timestamptz is null or window_from = $3) returning slice_id)
               update harvest.ing_task t set status_code = 'SUCCEEDED', finished_at = now(), scheduled_at = null,
                 session_id = null, fence = null
               from ended where t.slice_id = ended.slice_id`,
      },
      [planId, state, from === undefined ? null : day(from)],
    );
    await planning.settle(tx, [planId]);
  });
}

const HOLD_TASK = `update harvest.ing_task set status_code = 'SUCCEEDED', scheduled_at = null, finished_at = now()
  where slice_id = $1 and status_code = 'QUEUED' returning task_id`;

const setWatermark = (to: string, key = "works") =>
  database.query(
    `insert into harvest.ing_cursor (provenance_code, operation_code, cursor_key, namespace_scope_code, namespace_key,
       cursor_type_code, cursor_value, normalized_instant, plan_id, slice_id, generation, expr_hash)
     values ('src', 'HARVEST', 'updated', 'EXPR', $2, 'TIME', '', $1, gen_random_uuid(), 1, 1, '')
     on conflict (provenance_code, operation_code, cursor_key, namespace_scope_code, namespace_key)
     do update set normalized_instant = excluded.normalized_instant`,
    [day(to), key],
  );

describe("a plan", () => {
  test("has a slice for each day of its window, and each slice a task in the queue", async () => {
    await planning.addSource("src", { concurrency: 3 });
    const plan = await create({ ...window("2026-08-10", "2026-08-13"), params: { q: "x" } });

    expect(plan).toMatchObject({
      status: "READY",
      endpoint: "works",
      slices: 3,
      priority: 100,
      unslicedFrom: null,
      notes: [],
    });
    const slices = await slicesOf(plan.planId);
    expect(slices.map(({ window_from, window_to }) => [window_from, window_to])).toEqual([
      [day("2026-08-10"), day("2026-08-11")],
      [day("2026-08-11"), day("2026-08-12")],
      [day("2026-08-12"), day("2026-08-13")],
    ]);
    const tasks = await database.query<Record<string, unknown>>(
      "select slice_id, status_code, partition_key, priority, params, schedule_instance_id from harvest.ing_task order by task_id",
    );
    expect(tasks).toEqual(
      slices.map(({ slice_id }) => ({
        slice_id,
        status_code: "QUEUED",
        partition_key: "src/works/HARVEST",
        priority: 100,
        params: { q: "x" },
        schedule_instance_id: plan.scheduleInstanceId,
      })),
    );
    expect(await database.query("select * from harvest.ing_partition")).toEqual([
      { partition_key: "src/works/HARVEST", concurrency: 3, is_refused: false },
    ]);
    expect(planning.hints).toEqual(["harvest.tasks"]);
    const [trigger] = await database.query("select * from harvest.ing_schedule_instance");
    expect(trigger).toMatchObject({ trigger_type_code: "MANUAL", created_by: "ada", scheduler_code: "api" });
  });

  test("keeps its month and its recorded time", async () => {
    await planning.addSource("src");
    planning.at("2026-08-31T23:30:00Z");
    await create(window("2026-08-10", "2026-08-11"));
    const rows = await database.query(
      "select planned_at, to_char(plan_month, 'YYYY-MM-DD') as plan_month, plan_strategy from harvest.ing_plan",
    );
    expect(rows).toEqual([
      { planned_at: new Date("2026-08-31T23:30:00Z"), plan_month: "2026-08-01", plan_strategy: "TIME" },
    ]);
  });

  test("has 7,300 slices for 20 years of days", async () => {
    await planning.addSource("src");
    const plan = await create(window("2006-01-01", "2026-01-01"));
    expect(plan).toMatchObject({ status: "READY", slices: 7_305 });
    const [sum] = await database.query(
      `select count(*)::int as n, min(window_from) as first, max(window_to) as last, count(distinct window_from)::int as starts,
              sum(extract(epoch from window_to - window_from))::int / 86400 as days from harvest.ing_plan_slice`,
    );
    expect(sum).toEqual({ n: 7_305, first: day("2006-01-01"), last: day("2026-01-01"), starts: 7_305, days: 7_305 });
    expect(await countOf("ing_task")).toBe(7_305);
  });

  test("is one slice where the endpoint knows no time, and only one at a time", async () => {
    await planning.addSource("src", { window: null });
    const plan = await create();
    expect(plan).toMatchObject({ status: "READY", slices: 1, window: null });
    await expect(create()).rejects.toMatchObject({ code: "HARVEST_NOTHING_TO_PLAN" });
    await end(plan.planId, "COMPLETE");
    await create();
    await expect(create(window("2026-08-10", "2026-08-11"))).rejects.toMatchObject({ code: "VALIDATION_FAILED" });
  });

  test("names the credential of its requests", async () => {
    await planning.addSource("src", {
      auth: { type: "API_KEY", location: "HEADER", name: "x", credential: "main", required: false },
    });
    const [credential] = await database.query<{ credential_id: number }>(
      `insert into harvest.reg_prov_credential (provenance_code, credential_name, kind, reference)
       values ('src', 'main', 'env', 'KEY') on conflict (provenance_code, credential_name) do update set kind = 'env'
       returning credential_id`,
    );
    await create(window("2026-08-10", "2026-08-11"));
    expect(await database.query("select credential_id from harvest.ing_task")).toEqual([credential]);
  });

  test("cuts its slices where a table of the lake has its partitions", async () => {
    await planning.addSource("src", {
      window: { granularityMs: 1_000, maxWindowMs: 7 * DAY_MS, align: "min", format: "iso" },
      landing: { table: "T", grain: "day" },
    });
    const plan = await create(window("2026-08-10T12:00:00Z", "2026-08-12T00:00:00Z"));
    const slices = await slicesOf(plan.planId);
    expect(slices.map(({ window_from }) => window_from)).toEqual([new Date("2026-08-10T12:00:00Z"), day("2026-08-11")]);
  });
});

test("a plan whose parameters select records says that nothing lands", async () => {
  await planning.addSource("src", { landing: { table: "works", grain: "day" } });
  const days = window("2026-08-01", "2026-08-02");
  expect((await create({ ...days, params: { q: "x" } })).notes).toEqual([
    "No window lands in works: the parameters select a part of the records.",
  ]);
  expect((await create({ ...days, params: { mailto: "me@example.org" } })).notes).toEqual([]);
});

describe("the window of a plan", () => {
  test("ends where nothing can change any more, and the plan says so", async () => {
    await planning.addSource("src");
    const plan = await create(window("2026-08-18", "2026-09-01"));
    expect(plan.window).toEqual({ from: day("2026-08-18"), to: day("2026-08-20") });
    expect(plan.notes).toEqual(["The window ends at 2026-08-20T00:00:00Z: what is later may still change."]);
  });

  test("is widened to whole units of the source", async () => {
    await planning.addSource("src");
    const plan = await create(window("2026-08-10T05:00:00Z", "2026-08-11T01:00:00+02:00"));
    expect(plan.window).toEqual({ from: day("2026-08-10"), to: day("2026-08-11") });
    expect(plan.notes[0]).toContain("widened");
  });

  test("starts where the source does", async () => {
    await planning.addSource("src", { window: { earliest: "2026-08-05" } });
    const plan = await create(window("2026-08-01", "2026-08-07"));
    expect(plan.window).toEqual({ from: day("2026-08-05"), to: day("2026-08-07") });
    await expect(create(window("2026-08-01", "2026-08-03"))).rejects.toMatchObject({ code: "VALIDATION_FAILED" });
  });

  test("is the last days that can be closed", async () => {
    await planning.addSource("src");
    expect((await create({ window: { last: "P3D" } })).window).toEqual({
      from: day("2026-08-17"),
      to: day("2026-08-20"),
    });
  });

  test("is refused while it cannot be closed, with the time when it can", async () => {
    await planning.addSource("src");
    planning.at("2026-08-20T00:30:00Z");
    await expect(create(window("2026-08-19", "2026-08-20"))).rejects.toMatchObject({
      code: "HARVEST_NOTHING_TO_PLAN",
      status: 409,
      message: expect.stringContaining("2026-08-20T01:00:00Z") as string,
      details: { closesAt: "2026-08-20T01:00:00.000Z" },
    });
    expect(await countOf("ing_schedule_instance")).toBe(0);
  });

  test.each([
    [{ from: "2026-08-10", to: "2026-08-10" }, "window.to"],
    [{ from: "2026-08-11", to: "2026-08-10" }, "window.to"],
    [{ from: "yesterday", to: "2026-08-10" }, "window.from"],
    [{ from: "2026-08-09", to: "2026-02-30" }, "window.to"],
    [{ last: "PT0S" }, "window.last"],
    [{ last: "P1000000D" }, "window.last"],
    [{ from: "1500-01-01", to: "2026-01-01" }, "slices"],
  ])("is refused as %j", async (asked, field) => {
    await planning.addSource("src");
    await expect(create({ window: asked })).rejects.toMatchObject({
      code: "VALIDATION_FAILED",
      message: expect.stringContaining(field) as string,
    });
    expect(await countOf("ing_plan")).toBe(0);
  });
});

describe("a plan without a window", () => {
  test("takes one `maxWindow` the first time, or all since the source began", async () => {
    await planning.addSource("src", { window: { maxWindowMs: 2 * DAY_MS } });
    expect((await create()).window).toEqual({ from: day("2026-08-18"), to: day("2026-08-20") });
    await planning.addSource("old", { window: { earliest: "2026-08-10" } });
    expect((await create({ source: "old" })).window).toEqual({ from: day("2026-08-10"), to: day("2026-08-20") });
  });

  test("continues at the watermark of its parameters", async () => {
    await planning.addSource("src");
    await setWatermark("2026-08-15");
    expect((await create()).window).toEqual({ from: day("2026-08-15"), to: day("2026-08-20") });
    expect((await create({ params: { q: "x" } })).window).toEqual({ from: day("2026-08-19"), to: day("2026-08-20") });
  });

  test("shares the watermark where its parameters do not select records", async () => {
    await planning.addSource("src");
    await setWatermark("2026-08-15");
    const plan = await create({ params: { mailto: "me@example.org" } });
    expect(plan.window).toEqual({ from: day("2026-08-15"), to: day("2026-08-20") });
    const namespaces = await database.query("select distinct namespace_key from harvest.ing_plan_slice");
    expect(namespaces).toEqual([{ namespace_key: "works" }]);
  });

  test("is limited by what it slices, however long ago its first gap is", async () => {
    const hourly = { granularityMs: 3_600_000, minWindowMs: 3_600_000, maxWindowMs: 3_600_000, earliest: "2010-01-01" };
    await planning.addSource("src", { window: hourly });
    await expect(create()).rejects.toMatchObject({ code: "VALIDATION_FAILED" });
    const first = await create(window("2010-01-01", "2010-01-02"));
    await database.query(
      `insert into harvest.ing_plan_slice (plan_id, slice_no, provenance_code, endpoint_id, operation_code, namespace_scope_code,
         namespace_key, window_from, window_to, slice_spec, slice_signature_hash, expr_hash, expr_snapshot, status_code, ended_at)
       select plan_id, 0, provenance_code, endpoint_id, operation_code, namespace_scope_code, namespace_key, window_from,
         '2026-08-19T00:00:00Z', '{}', 'long', '', '{}', 'COMPLETE', now() from harvest.ing_plan where plan_id = $1`,
      [first.planId],
    );
    expect(await create()).toMatchObject({ window: { from: day("2026-08-19"), to: day("2026-08-20") }, slices: 24 });
  });

  test("leaves out what another plan has completed or is about to, and takes its gaps", async () => {
    await planning.addSource("src");
    await setWatermark("2026-08-10");
    const first = await create();
    await expect(create()).rejects.toMatchObject({
      code: "HARVEST_NOTHING_TO_PLAN",
      details: { closesAt: "2026-08-21T01:00:00.000Z" },
    });

    await end(first.planId, "INCOMPLETE", "2026-08-12");
    await end(first.planId, "FAILED", "2026-08-14");
    await end(first.planId, "COMPLETE", "2026-08-15");
    planning.at("2026-08-21T12:00:00Z");
    const second = await create();
    expect(second.window).toEqual({ from: day("2026-08-12"), to: day("2026-08-21") });
    const slices = await slicesOf(second.planId);
    expect(slices.map(({ window_from }) => window_from)).toEqual(
      ["2026-08-12", "2026-08-14", "2026-08-20"].map((text) => day(text)),
    );
  });

  test("is made once when two are asked for at the same time", async () => {
    await planning.addSource("src");
    await setWatermark("2026-08-10");
    const answers = await Promise.allSettled([create(), create(), create()]);
    expect(answers.filter(({ status }) => status === "fulfilled")).toHaveLength(1);
    expect(await countOf("ing_plan_slice")).toBe(10);
  });
});

describe("a plan that finds the queue full", () => {
  test("is PARTIAL, and is sliced further when the queue is half empty", async () => {
    await planning.addSource("src", { queuedTasksMax: 4 });
    const plan = await create(window("2026-08-01", "2026-08-11"));
    expect(plan).toMatchObject({ status: "PARTIAL", slices: 4, unslicedFrom: day("2026-08-05") });
    expect(planning.hints).toContain("harvest.plans");

    expect(await planning.planner.continuePlans()).toEqual({ sliced: 0, waiting: 1 });
    await end(plan.planId, "COMPLETE", "2026-08-01");
    expect(await planning.planner.continuePlans()).toEqual({ sliced: 0, waiting: 1 });
    await end(plan.planId, "COMPLETE", "2026-08-02");
    expect(await planning.planner.continuePlans()).toEqual({ sliced: 2, waiting: 1 });
    expect(await statusOf(plan.planId)).toBe("PARTIAL");
    await end(plan.planId, "COMPLETE");
    expect(await statusOf(plan.planId)).toBe("PARTIAL");
    expect(await planning.planner.continuePlans()).toEqual({ sliced: 4, waiting: 0 });
    expect(await statusOf(plan.planId)).toBe("READY");

    const slices = await slicesOf(plan.planId);
    expect(slices.map(({ slice_no }) => slice_no)).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
    expect(slices.map(({ window_from }) => window_from)).toEqual(
      Array.from({ length: 10 }, (_, index) => new Date(day("2026-08-01").getTime() + index * DAY_MS)),
    );
    await end(plan.planId, "COMPLETE");
    expect(await statusOf(plan.planId)).toBe("COMPLETE");
  });

  test("has no slices at first where others have filled it", async () => {
    await planning.addSource("src", { queuedTasksMax: 2 });
    await create(window("2026-08-01", "2026-08-03"));
    const plan = await create(window("2026-08-05", "2026-08-07"));
    expect(plan).toMatchObject({ status: "PARTIAL", slices: 0, unslicedFrom: day("2026-08-05") });
  });

  test("keeps what it has not sliced from other plans", async () => {
    await planning.addSource("src", { queuedTasksMax: 2 });
    await setWatermark("2026-08-10");
    expect(await create()).toMatchObject({ status: "PARTIAL" });
    await expect(create()).rejects.toMatchObject({ code: "HARVEST_NOTHING_TO_PLAN" });
  });

  test("is complete where others have harvested the rest meanwhile", async () => {
    await planning.addSource("src", { queuedTasksMax: 2 });
    await setWatermark("2026-08-16");
    const plan = await create();
    expect(plan).toMatchObject({ status: "PARTIAL", unslicedFrom: day("2026-08-18") });
    await end(plan.planId, "COMPLETE");
    const other = await create(window("2026-08-18", "2026-08-20"));
    await end(other.planId, "COMPLETE");
    expect(await planning.planner.continuePlans()).toEqual({ sliced: 0, waiting: 0 });
    expect(await statusOf(plan.planId)).toBe("COMPLETE");
  });

  test("fails with the reason if the rest cannot be sliced, and others are sliced all the same", async () => {
    const plans = [];
    for (const source of ["one", "two"]) {
      await planning.addSource(source, { queuedTasksMax: 2 });
      const plan = await create({ source, ...window("2026-08-01", "2026-08-05") });
      await end(plan.planId, "COMPLETE", "2026-08-01");
      plans.push(plan.planId);
    }
    const [broken = "", other = ""] = plans;
    await database.query(
      `update harvest.snapshot set snapshot = jsonb_set(snapshot, '{spec,window,timezone}', '"No/Where"')
       where snapshot ->> 'provenanceCode' = 'one'`,
    );
    expect(await planning.planner.continuePlans()).toEqual({ sliced: 1, waiting: 1 });
    expect(await statusOf(other)).toBe("PARTIAL");
    expect(await statusOf(broken)).toBe("READY");
    expect(planning.events).toEqual([]);
    await end(broken, "COMPLETE");
    expect(await statusOf(broken)).toBe("FAILED");
    expect(planning.events).toMatchObject([
      {
        topic: "plan.failed",
        payload: { planId: broken, reason: expect.stringMatching(/^The window from 2026-08-03.* No\/Where/) as string },
      },
    ]);
  });

  test("is continued by one of several processes", async () => {
    await planning.addSource("src", { queuedTasksMax: 4 });
    const plan = await create(window("2026-08-01", "2026-08-07"));
    await end(plan.planId, "COMPLETE");
    const answers = await Promise.all([1, 2, 3].map(() => planning.open(database.db).continuePlans()));
    expect(answers.reduce((sum, { sliced }) => sum + sliced, 0)).toBe(2);
    expect(await countOf("ing_task")).toBe(6);
  });
});

describe("a trigger", () => {
  test("of the same schedule and time makes one plan", async () => {
    await planning.addSource("src");
    const resolved = await planning.planner.resolve(harvest(window("2026-08-10", "2026-08-12")));
    const trigger = { type: "SCHEDULE" as const, scheduleId: "7", firedAt: day("2026-08-20"), by: "schedule daily" };
    const fire = () => database.db.tx((tx) => planning.planner.planIn(tx, resolved, trigger));
    expect(await fire()).toHaveProperty("plan");
    expect(await fire()).toEqual({ repeated: true });
    expect(await countOf("ing_plan")).toBe(1);
    expect(await countOf("ing_task")).toBe(2);
  });

  test("of a definition that does not compile makes no plan, keeps the errors and sends an alert", async () => {
    const problems = [
      { table: "reg_prov_pagination_cfg", field: "pagination.type", reason: "There is none." },
      { table: "trigger", field: "params.q", reason: "It is unknown." },
    ];
    await planning.addSource("src", { problems });
    await expect(create()).rejects.toMatchObject({ code: "DEFINITION_INVALID", status: 400, details: { problems } });
    expect(await countOf("ing_plan")).toBe(0);
    const [trigger] = await database.query<{ record_remarks: object }>("select * from harvest.ing_schedule_instance");
    expect(trigger?.record_remarks).toMatchObject({ code: "DEFINITION_INVALID", problems });
    expect(planning.events).toMatchObject([
      { topic: "plan.refused", payload: { source: "src", operation: "HARVEST" } },
    ]);
  });

  test("with a mistake of the caller's own sends no alert", async () => {
    await planning.addSource("src", { problems: [{ table: "trigger", field: "params.q", reason: "It is unknown." }] });
    await expect(create()).rejects.toMatchObject({ code: "DEFINITION_INVALID" });
    expect(planning.events).toEqual([]);
    expect(await countOf("ing_schedule_instance")).toBe(1);
  });

  test.each([
    [{ source: "nobody" }, "SOURCE_NOT_FOUND"],
    [{ operation: "UPDATE" as const, ...window("2026-08-01", "2026-08-02") }, "VALIDATION_FAILED"],
    [{ ids: ["1"] }, "VALIDATION_FAILED"],
    [{ operation: "BACKFILL" as const }, "VALIDATION_FAILED"],
    [{ endpoint: "detail" }, "VALIDATION_FAILED"],
  ])("with %j is refused", async (fields, code) => {
    await planning.addSource("src");
    await expect(create(fields)).rejects.toMatchObject({ code });
    expect(await countOf("ing_plan")).toBe(0);
  });
});

describe("a preview", () => {
  test("shows the windows and writes nothing", async () => {
    await planning.addSource("src");
    const draft = await planning.planner.preview(harvest(window("2026-08-18", "2026-08-25")));
    expect(draft).toMatchObject({ slices: 2, window: { from: day("2026-08-18"), to: day("2026-08-20") } });
    expect(draft.windows).toHaveLength(2);
    for (const table of ["ing_schedule_instance", "ing_plan", "ing_plan_slice", "ing_task"]) {
      expect(await countOf(table)).toBe(0);
    }
  });

  test("shows the first thousand windows", async () => {
    await planning.addSource("src");
    const draft = await planning.planner.preview(harvest(window("2006-01-01", "2026-01-01")));
    expect([draft.slices, draft.windows.length]).toEqual([7_305, 1_000]);
  });
});

describe("the end of a plan", () => {
  test("is COMPLETE when all slices are, and FAILED with the reason when one is not", async () => {
    await planning.addSource("src");
    const whole = await create(window("2026-08-01", "2026-08-03"));
    await end(whole.planId, "COMPLETE", "2026-08-01");
    expect(await statusOf(whole.planId)).toBe("READY");
    await end(whole.planId, "COMPLETE");
    expect(await statusOf(whole.planId)).toBe("COMPLETE");
    expect(planning.events).toEqual([]);

    const broken = await create(window("2026-08-01", "2026-08-03"));
    await end(broken.planId, "INCOMPLETE", "2026-08-01");
    expect(await statusOf(broken.planId)).toBe("READY");
    await end(broken.planId, "COMPLETE");
    const [row] = await database.query<{ status_code: string; record_remarks: { reason: string } }>(
      "select status_code, record_remarks from harvest.ing_plan where plan_id = $1",
      [broken.planId],
    );
    expect(row?.status_code).toBe("FAILED");
    expect(row?.record_remarks.reason).toBe("1 of 2 slices are not complete. The first: too many");
    expect(planning.events).toMatchObject([
      { topic: "plan.failed", payload: { planId: broken.planId, source: "src", endpoint: "works" } },
    ]);
  });

  test("comes with the last of slices that end at the same time", async () => {
    await planning.addSource("src");
    const days = ["2026-08-01", "2026-08-02", "2026-08-03", "2026-08-04"];
    for (let round = 0; round < 5; round += 1) {
      const plan = await create(window("2026-08-01", "2026-08-05"));
      await Promise.all(days.map((from) => end(plan.planId, "COMPLETE", from)));
      expect(await statusOf(plan.planId)).toBe("COMPLETE");
    }
  });

  test("does not come while a child of a split slice is open", async () => {
    await planning.addSource("src");
    const plan = await create(window("2026-08-01", "2026-08-03"));
    await end(plan.planId, "SPLIT", "2026-08-01");
    expect(await statusOf(plan.planId)).toBe("READY");
    await end(plan.planId, "COMPLETE");
    expect(await statusOf(plan.planId)).toBe("COMPLETE");
  });
});

describe("cancelling a plan", () => {
  test("cancels what is open of it, and takes the fence of what runs", async () => {
    await planning.addSource("src", { queuedTasksMax: 3 });
    const plan = await create(window("2026-08-01", "2026-08-10"));
    await end(plan.planId, "COMPLETE", "2026-08-01");
    const [task] = await database.query<{ task_id: string; fence: string }>(
      `update harvest.ing_task set status_code = 'EXECUTING', scheduled_at = null, session_id = 1, fence = 77
       where task_id = (select min(task_id) from harvest.ing_task where status_code = 'QUEUED') returning task_id::text, fence::text`,
    );
    await database.query(
      `insert into harvest.ing_task_run (task_id, attempt_no, provenance_code, operation_code) values ($1, 1, 'src', 'HARVEST')`,
      [task?.task_id],
    );

    await database.query(
      "insert into harvest.slice_id_item (slice_id, generation, ord, item_id) select slice_id, 1, 1, 'a' from harvest.ing_plan_slice",
    );

    await planning.planner.cancel(plan.planId, actor);
    expect(await statusOf(plan.planId)).toBe("CANCELLED");
    // Those of a slice that has ended are deleted with its end.
    expect(await countOf("slice_id_item")).toBe(1);
    const states = await database.query(
      `select s.status_code as slice, t.status_code as task from harvest.ing_plan_slice s
       join harvest.ing_task t using (slice_id) order by s.slice_no`,
    );
    expect(states).toEqual([
      { slice: "COMPLETE", task: "SUCCEEDED" },
      { slice: "CANCELLED", task: "CANCELLED" },
      { slice: "CANCELLED", task: "CANCELLED" },
    ]);
    expect(await database.query("select status_code from harvest.ing_task_run")).toEqual([
      { status_code: "CANCELLED" },
    ]);
    const held = await database.db.tx((tx) => taskLease.hold(tx, [{ task_id: task?.task_id ?? "", fence: "77" }]));
    expect(held).toEqual([]);
    expect(await planning.planner.continuePlans()).toEqual({ sliced: 0, waiting: 0 });
    await expect(planning.planner.cancel(plan.planId, actor)).rejects.toMatchObject({
      code: "PLAN_ENDED",
      status: 409,
    });
  });

  test("and the end of its slices at the same time leave nothing open", async () => {
    await planning.addSource("src");
    for (let round = 0; round < 10; round += 1) {
      const plan = await create(window("2026-08-01", "2026-08-04"));
      const tasks = await database.query<{ slice_id: string }>(
        "select slice_id::text from harvest.ing_task where plan_id = $1",
        [plan.planId],
      );
      // A worker has its task first, then the slice, then the plan.
      const ends = tasks.map(({ slice_id }) =>
        database.db.tx(async (tx) => {
          const held = await tx.rows({ name: "test.hold_task", text: HOLD_TASK }, [slice_id]);
          if (held.length === 0) return;
          await endSlice(tx, { sliceId: slice_id, generation: 1 }, "COMPLETE", null);
          await planning.settle(tx, [plan.planId]);
        }),
      );
      const cancelled = await planning.planner.cancel(plan.planId, actor).then(
        () => "CANCELLED",
        ({ code }: { code: string }) => code,
      );
      await Promise.all(ends);
      expect([cancelled, await statusOf(plan.planId)]).toEqual(
        cancelled === "CANCELLED" ? ["CANCELLED", "CANCELLED"] : ["PLAN_ENDED", "COMPLETE"],
      );
      const slices = await slicesOf(plan.planId);
      expect(slices.map(({ status_code }) => status_code)).not.toContain("READY");
      expect(slices).toHaveLength(3);
    }
    const open = await database.query("select from harvest.ing_task where status_code in ('QUEUED', 'EXECUTING')");
    expect(open).toEqual([]);
  });

  test("is answered for a plan that does not exist", async () => {
    const id = "01900000-0000-7000-8000-000000000000";
    await expect(planning.planner.cancel(id, actor)).rejects.toMatchObject({ code: "PLAN_NOT_FOUND" });
  });

  test("leaves its window to the next plan", async () => {
    await planning.addSource("src");
    await setWatermark("2026-08-15");
    const plan = await create();
    await planning.planner.cancel(plan.planId, actor);
    expect((await create()).window).toEqual(plan.window);
  });
});
