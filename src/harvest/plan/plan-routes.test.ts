import { beforeAll, beforeEach, describe, expect, test } from "vitest";
import type { Json } from "../../../test/client.ts";
import { useDatabase } from "../../../test/database.ts";
import { useMillrace } from "../../../test/millrace.ts";
import { definitionWith } from "../definition/definition.fixture.ts";

const database = useDatabase();
const millrace = useMillrace(database);
const BASE = "/api/v1/harvest";
const NOBODY = "01900000-0000-7000-8000-000000000000";

const get = <Body = Json>(path: string) => millrace.api.get<Body>(BASE + path);
const post = (path: string, body?: unknown) => millrace.api.post(BASE + path, body);
const days = { granularity: "P1D", align: "day", minWindow: "P1D", format: "yyyy-MM-dd" } as const;
const plan = async (fields: Json = {}) => {
  const { status, body } = await post("/plans", {
    source: "shop",
    window: { from: "2026-01-01", to: "2026-01-04" },
    ...fields,
  });
  expect({ status, body }).toMatchObject({ status: 201 });
  return body as Json & { planId: string };
};

beforeAll(async () => {
  const definition = definitionWith(
    {
      default: true,
      window: {
        ...days,
        supportsUpdatedSince: true,
        watermarkKey: "updated",
        maxWindow: "P1D",
        earliest: "2025-12-01",
      },
      landing: { table: "shop_orders", grain: "day" },
      params: [
        { name: "state", location: "QUERY", required: false, pattern: "[a-z]+" },
        { name: "mailto", location: "QUERY", required: false, selects: false },
      ],
    },
    { schedules: { nightly: { operation: "HARVEST", cron: "0 3 * * *", timeZone: "Europe/Berlin" } } },
  );
  const { status, body } = await millrace.api.put(`${BASE}/registry/sources/shop`, definition);
  expect({ status, body }).toMatchObject({ status: 201 });
});
beforeEach(async () => {
  await database.query(
    "truncate harvest.ing_schedule_instance, harvest.ing_plan, harvest.ing_plan_slice, harvest.ing_task, harvest.ing_cursor cascade",
  );
});

describe("POST /plans", () => {
  test("makes a plan with its slices", async () => {
    const body = await plan({ params: { mailto: "me@example.org" }, priority: 7 });
    expect(body).toMatchObject({
      status: "READY",
      source: "shop",
      endpoint: "orders",
      operation: "HARVEST",
      window: { from: "2026-01-01T00:00:00.000Z", to: "2026-01-04T00:00:00.000Z" },
      slices: 3,
      priority: 7,
      notes: [],
      unslicedFrom: null,
    });
    expect((await get(`/plans/${body.planId}`)).body).toMatchObject({
      status: "READY",
      slices: { READY: 3 },
      tasks: { QUEUED: 3 },
      reconciliation: { expected: null, received: 0, inserted: 0, gaps: 0 },
      gapWindows: [],
      waits: [{ reason: "They wait for a worker.", tasks: 3, until: null }],
      landings: [],
    });
  });

  test("shows windows and bounds in a dry run, and writes nothing", async () => {
    const { status, body } = await post("/plans?dryRun=true", {
      source: "shop",
      window: { from: "2026-01-01", to: "2026-01-03" },
    });
    expect(status).toBe(200);
    expect(body).toMatchObject({ planId: null, status: "DRAFT", slices: 2 });
    expect(body["windows"]).toMatchObject([
      {
        from: "2026-01-01T00:00:00.000Z",
        to: "2026-01-02T00:00:00.000Z",
        bounds: { from: "2026-01-01", until: "2026-01-01", to: "2026-01-02" },
      },
      {
        from: "2026-01-02T00:00:00.000Z",
        to: "2026-01-03T00:00:00.000Z",
        bounds: { from: "2026-01-02", until: "2026-01-02", to: "2026-01-03" },
      },
    ]);
    expect((await get("/plans")).body).toEqual({ items: [], next: null });
  });

  test.each([
    ["no source", {}, 400, "VALIDATION_FAILED"],
    ["an unknown source", { source: "nobody" }, 404, "SOURCE_NOT_FOUND"],
    ["an unknown endpoint", { source: "shop", endpoint: "nothing" }, 404, "ENDPOINT_NOT_FOUND"],
    ["an update without details", { source: "shop", operation: "UPDATE" }, 400, "DEFINITION_INVALID"],
    ["an unknown operation", { source: "shop", operation: "DELETE" }, 400, "VALIDATION_FAILED"],
    ["half a window", { source: "shop", window: { from: "2026-01-01" } }, 400, "VALIDATION_FAILED"],
    [
      "two windows",
      { source: "shop", window: { from: "2026-01-01", to: "2026-01-02", last: "P1D" } },
      400,
      "VALIDATION_FAILED",
    ],
    ["a window that is no time", { source: "shop", window: { from: "x", to: "2026-01-02" } }, 400, "VALIDATION_FAILED"],
    ["a duration that is none", { source: "shop", window: { last: "3 days" } }, 400, "VALIDATION_FAILED"],
    [
      "a window of the future",
      { source: "shop", window: { from: "2999-01-01", to: "2999-01-02" } },
      409,
      "HARVEST_NOTHING_TO_PLAN",
    ],
    ["an unknown parameter", { source: "shop", params: { other: 1 } }, 400, "DEFINITION_INVALID"],
    ["a parameter of another kind", { source: "shop", params: { state: [] } }, 400, "VALIDATION_FAILED"],
    ["a priority below zero", { source: "shop", priority: -1 }, 400, "VALIDATION_FAILED"],
    ["a field that it does not know", { source: "shop", windows: [] }, 400, "VALIDATION_FAILED"],
  ])("refuses %s", async (_, body, status, code) => {
    for (const query of ["", "?dryRun=true"]) {
      const answer = await post(`/plans${query}`, body);
      expect(answer).toMatchObject({ status, body: { code } });
      expect(answer.body["error"]).toMatch(/^[A-Z`].+\.$/);
    }
    expect((await get("/plans")).body["items"]).toEqual([]);
  });

  test("says how a duration is written", async () => {
    const { status, body } = await post("/plans", { source: "shop", window: { last: "3d" } });
    expect(status).toBe(400);
    expect(body["error"]).toBe(
      "The field `window.last`: `3d` is not an ISO 8601 duration of days, hours, minutes or seconds, such as P3D or PT6H, of at most 100 years (did you mean `P3D`?).",
    );
  });

  test("refuses a parameter that does not match its pattern, and names it, its value and the pattern", async () => {
    const { status, body } = await post("/plans", { source: "shop", params: { state: "Open" } });
    expect({ status, body }).toMatchObject({ status: 400, body: { code: "DEFINITION_INVALID" } });
    expect(body["error"]).toMatch(/params\.state: The value `Open` does not match the pattern `\[a-z\]\+`\.$/);
  });
});

test("a definition that no longer compiles makes no plan, and an alert goes out", async () => {
  const [{ cfg } = { cfg: {} }] = await database.query<{ cfg: object }>(
    "select cfg from harvest.reg_prov_pagination_cfg",
  );
  await database.query("update harvest.reg_prov_pagination_cfg set cfg = '{}'");
  const { status, body } = await post("/plans", { source: "shop" });
  expect({ status, body }).toMatchObject({ status: 400, body: { code: "DEFINITION_INVALID" } });
  const { problems } = body["details"] as { problems: object[] };
  expect(problems).toContainEqual(
    expect.objectContaining({ table: "reg_prov_pagination_cfg", field: "pagination.type" }),
  );
  expect(
    await database.query("select record_remarks -> 'problems' as problems from harvest.ing_schedule_instance"),
  ).toEqual([{ problems }]);
  const events = await database.query(
    "select consumer, payload ->> 'source' as source from kernel.outbox where topic = 'plan.refused'",
  );
  expect(events).toEqual([{ consumer: "webhooks", source: "shop" }]);
  expect((await get("/plans")).body["items"]).toEqual([]);
  await database.query("update harvest.reg_prov_pagination_cfg set cfg = $1", [JSON.stringify(cfg)]);
});

describe("GET /plans", () => {
  test("answers pages, the newest first, with filters", async () => {
    const made = [await plan(), await plan(), await plan()].map(({ planId }) => planId).toReversed();
    const first = await get<{ items: Json[]; next: string }>("/plans?limit=2");
    expect(first.body.items.map(({ planId }) => planId)).toEqual(made.slice(0, 2));
    const second = await get<{ items: Json[]; next: null }>(`/plans?limit=2&after=${first.body.next}`);
    expect(second.body.items.map(({ planId }) => planId)).toEqual(made.slice(2));
    expect(second.body.next).toBeNull();

    await post(`/plans/${made[0]}:cancel`);
    const count = async (query: string) => (await get<{ items: Json[] }>(`/plans?${query}`)).body.items.length;
    expect(await count("status=CANCELLED")).toBe(1);
    expect(await count("source=shop&endpoint=orders&operation=HARVEST&status=READY")).toBe(2);
    expect(await count("source=other")).toBe(0);
  });
});

describe("GET /plans/{planId}", () => {
  test("reconciles the counts of its slices and names its gaps", async () => {
    const { planId } = await plan();
    await database.query(
      `update harvest.ing_plan_slice set expected = 10, received = 8, inserted = 5, updated = 2, unchanged = 1, quarantined = 1
       where slice_no < 3`,
    );
    await database.query(
      "update harvest.ing_plan_slice set status_code = 'INCOMPLETE', reason = 'The counts differ.', missing = 1, ended_at = now() where slice_no = 1",
    );
    await database.query(
      "update harvest.ing_plan_slice set status_code = 'SPLIT', expected = 99, inserted = 1, ended_at = now() where slice_no = 3",
    );
    await database.query(
      "update harvest.ing_task set wait_reason = 'The quota of the day is spent.', scheduled_at = '2026-09-01T00:00:00Z'",
    );
    const { body } = await get<Json & { gapWindows: Json[] }>(`/plans/${planId}`);
    expect(body["slices"]).toEqual({ INCOMPLETE: 1, READY: 1, SPLIT: 1 });
    expect(body["reconciliation"]).toEqual({
      expected: 20,
      received: 16,
      repeated: 1, // Of the slice that was split.
      inserted: 11,
      updated: 4,
      unchanged: 2,
      deleted: 0,
      quarantined: 2,
      missing: 1,
      gaps: 1,
      acceptedGaps: 0,
    });
    expect(body.gapWindows).toMatchObject([
      {
        window: { from: "2026-01-01T00:00:00.000Z", to: "2026-01-02T00:00:00.000Z" },
        status: "INCOMPLETE",
        reason: "The counts differ.",
        missing: 0,
      },
    ]);
    expect(body["waits"]).toEqual([
      { reason: "The quota of the day is spent.", tasks: 3, until: "2026-09-01T00:00:00.000Z" },
    ]);
  });

  test("says that its tasks wait for their turn", async () => {
    const { planId } = await plan();
    const [task] = await database.query<{ task_id: string; partition_key: string }>(
      `update harvest.ing_task set status_code = 'EXECUTING', scheduled_at = null, session_id = 1, fence = 1
       where task_id = (select min(task_id) from harvest.ing_task where plan_id = $1) returning partition_key`,
      [planId],
    );
    const running = await database.query(
      "select from harvest.ing_task where partition_key = $1 and status_code = 'EXECUTING'",
      [task?.partition_key],
    );
    const allow = (concurrency: number) =>
      database.query("update harvest.ing_partition set concurrency = $2 where partition_key = $1", [
        task?.partition_key,
        concurrency,
      ]);
    const waits = async () => (await get(`/plans/${planId}`)).body["waits"];
    await allow(running.length + 1);
    expect(await waits()).toEqual([{ reason: "They wait for a worker.", tasks: 2, until: null }]);
    await allow(running.length);
    const reason = `They wait for their turn: ${running.length} tasks of ${task?.partition_key} run, as many as may at once.`;
    expect(await waits()).toEqual([{ reason, tasks: 2, until: null }]);
  });

  test("says that the queue is full", async () => {
    const { planId } = await plan();
    await database.query(
      "update harvest.ing_plan set status_code = 'PARTIAL', unsliced_from = '2026-01-03T00:00:00Z' where plan_id = $1",
      [planId],
    );
    const { body } = await get<Json & { waits: Json[] }>(`/plans/${planId}`);
    expect(body.waits[0]?.["reason"]).toContain("2026-01-03T00:00:00.000Z");
    expect(body["unslicedFrom"]).toBe("2026-01-03T00:00:00.000Z");
  });

  test("says why nothing lands", async () => {
    const obstacle = async (fields: Json) => {
      const { body } = await get<{ landing: Json }>(`/plans/${(await plan(fields)).planId}`);
      return body.landing["obstacle"];
    };
    expect(await obstacle({})).toBe("The server has no lake: set MILLRACE_LAKE_DIR or MILLRACE_DATA_DIR.");
    expect(await obstacle({ params: { state: "open" } })).toBe("Its parameters select a part of the records.");
  });

  test("shows what has landed", async () => {
    const { planId } = await plan();
    await database.query(
      `insert into harvest.landing (endpoint_id, op_time, table_name, window_from, window_to, plan_id, status_code, landed, rows)
       select endpoint_id, '20260101', 'T', '2026-01-01', '2026-01-02', plan_id, 'LANDED', 1, 42 from harvest.ing_plan`,
    );
    const { body } = await get<Json & { landings: Json[] }>(`/plans/${planId}`);
    expect(body.landings).toMatchObject([{ table: "T", opTime: "20260101", status: "LANDED", rows: 42, error: null }]);
    await database.query("delete from harvest.landing");
  });

  test("shows what has not landed before what has, so that it is among the first hundred", async () => {
    const { planId } = await plan();
    await database.query(
      `insert into harvest.landing (endpoint_id, op_time, table_name, window_from, window_to, plan_id, status_code, due_at)
       select endpoint_id, n::text, 'T', '2026-01-01', '2026-01-02', plan_id,
              case n when 250 then 'PENDING' when 200 then 'FAILED' else 'LANDED' end, case n when 250 then now() end
       from harvest.ing_plan, generate_series(100, 250) n where plan_id = $1`,
      [planId],
    );
    const { body } = await get<Json & { landings: Json[] }>(`/plans/${planId}`);
    expect(body.landings.slice(0, 3).map(({ opTime }) => opTime)).toEqual(["200", "250", "100"]);
    expect(body.landings).toHaveLength(100);
    expect(body["landing"]).toMatchObject({ table: "shop_orders", windows: { PENDING: 1, FAILED: 1, LANDED: 149 } });
    await database.query("delete from harvest.landing");
  });

  test.each([
    ["GET", `/plans/${NOBODY}`],
    ["GET", "/plans/x"],
    ["GET", `/plans/${NOBODY}/slices`],
    ["GET", `/plans/${NOBODY}/tasks`],
    ["GET", "/plans/x/tasks"],
    ["POST", `/plans/${NOBODY}:cancel`],
    ["POST", "/plans/x:cancel"],
    ["GET", "/tasks/999999/runs"],
    ["GET", "/tasks/x/runs"],
    ["GET", "/tasks/99999999999999999999/runs"],
    ["GET", "/runs/999999/batches"],
    ["GET", "/runs/-1/batches"],
    ["POST", "/schedules/999999:pause"],
    ["POST", "/schedules/x:resume"],
  ])("%s %s is not found", async (method, path) => {
    const answer = method === "GET" ? await get(path) : await post(path);
    expect(answer).toMatchObject({ status: 404, body: { code: expect.stringContaining("NOT_FOUND") as string } });
  });

  test.each([
    "/plans?after=x",
    "/plans?status=DONE",
    "/plans?limit=0",
    "/plans?limit=1001",
    "/plans?other=1",
    `/plans/${NOBODY}/slices?status=QUEUED`,
    `/plans/${NOBODY}/slices?after=x`,
    `/plans/${NOBODY}/tasks?after=-1`,
    "/tasks?status=READY",
    "/tasks?after=1.5",
    "/tasks/1/runs?after=x",
    "/runs/1/batches?after=1",
    "/schedules?source=A!",
    "/cursors?operation=SWEEP",
    "/cursors/shop/orders/events?limit=x",
  ])("GET %s is refused", async (path) => {
    expect(await get(path)).toMatchObject({ status: 400, body: { code: "VALIDATION_FAILED" } });
  });
});

describe("what is below a plan", () => {
  test("slices, by number", async () => {
    const { planId } = await plan();
    const first = await get<{ items: Json[]; next: number }>(`/plans/${planId}/slices?limit=2`);
    expect(first.body.items.map(({ number }) => number)).toEqual([1, 2]);
    const second = await get<{ items: Json[] }>(`/plans/${planId}/slices?limit=2&after=${first.body.next}`);
    expect(second.body.items.map(({ number }) => number)).toEqual([3]);
    expect((await get(`/plans/${planId}/slices?status=COMPLETE`)).body["items"]).toEqual([]);
  });

  test("tasks, the newest first", async () => {
    const { planId } = await plan();
    const other = await plan();
    const of = async (path: string) => (await get<{ items: (Json & { taskId: number })[] }>(path)).body.items;
    const mine = await of(`/plans/${planId}/tasks`);
    expect(mine).toHaveLength(3);
    expect(mine.map(({ taskId }) => taskId)).toEqual(mine.map(({ taskId }) => taskId).toSorted((a, b) => b - a));
    expect(mine[0]).toMatchObject({
      planId,
      status: "QUEUED",
      partition: "shop/orders/HARVEST",
      attempts: 0,
      error: null,
    });
    expect(await of(`/plans/${planId}/tasks?after=${mine[1]?.taskId}`)).toEqual(mine.slice(2));
    expect(await of("/tasks?limit=4")).toHaveLength(4);
    expect(await of("/tasks?source=shop&endpoint=orders&operation=HARVEST&status=QUEUED")).toHaveLength(6);
    expect(await of("/tasks?endpoint=detail")).toEqual([]);
    await post(`/plans/${other.planId}:cancel`);
    expect(await of("/tasks?status=CANCELLED")).toHaveLength(3);
  });

  test("runs of a task and batches of a run", async () => {
    const { planId } = await plan();
    const [task] = await database.query<{ task_id: number; slice_id: number; endpoint_id: number }>(
      `select t.task_id::int, t.slice_id::int, s.endpoint_id from harvest.ing_task t join harvest.ing_plan_slice s using (slice_id)
       limit 1`,
    );
    const [run] = await database.query<{ run_id: number }>(
      `insert into harvest.ing_task_run (task_id, attempt_no, provenance_code, operation_code, status_code, ended_at, error)
       values ($1, 1, 'shop', 'HARVEST', 'FAILED', now(), 'its process was lost'), ($1, 2, 'shop', 'HARVEST', 'RUNNING', null, null)
       returning run_id::int`,
      [task?.task_id],
    );
    await database.query(
      `insert into harvest.ing_task_run_batch (plan_month, slice_id, generation, batch_no, run_id, task_id, plan_id, endpoint_id,
         expr_hash, phase, page_no, page_size, request, response_digest, stats, id_hashes)
       select plan_month, $1, generation, batch_no, $2, $3, plan_id, $4, '', 1, batch_no, 100, '{"url": "x"}', '{"status": 200}', '{}', ''
       from harvest.ing_plan, generate_series(1, 2) generation, generate_series(1, 2) batch_no where plan_id = $5`,
      [task?.slice_id, run?.run_id, task?.task_id, task?.endpoint_id, planId],
    );
    const runs = await get<{ items: Json[]; next: null }>(`/tasks/${task?.task_id}/runs`);
    expect(runs.body.items).toMatchObject([
      { attempt: 2, status: "RUNNING", endedAt: null },
      { attempt: 1, status: "FAILED", error: "its process was lost" },
    ]);
    const older = await get<{ items: Json[] }>(`/tasks/${task?.task_id}/runs?after=2`);
    expect(older.body.items).toHaveLength(1);
    const first = await get<{ items: Json[]; next: string }>(`/runs/${run?.run_id}/batches?limit=3`);
    expect(first.body.items.map(({ generation, number }) => [generation, number])).toEqual([
      [1, 1],
      [1, 2],
      [2, 1],
    ]);
    const second = await get<{ items: Json[] }>(`/runs/${run?.run_id}/batches?limit=3&after=${first.body.next}`);
    expect(second.body.items).toMatchObject([
      { generation: 2, number: 2, request: { url: "x" }, response: { status: 200 } },
    ]);
  });
});

describe("POST /plans/{planId}:cancel", () => {
  test("answers the plan, and 409 the second time", async () => {
    const { planId } = await plan();
    const first = await post(`/plans/${planId}:cancel`);
    expect(first).toMatchObject({
      status: 200,
      body: { status: "CANCELLED", slices: { CANCELLED: 3 }, tasks: { CANCELLED: 3 }, waits: [] },
    });
    expect(await post(`/plans/${planId}:cancel`)).toMatchObject({ status: 409, body: { code: "PLAN_ENDED" } });
    const [entry] = await database.query("select action, target from kernel.audit_log order by id desc limit 1");
    expect(entry).toEqual({ action: "plan.cancel", target: planId });
  });
});

describe("schedules", () => {
  test("are listed, paused and resumed", async () => {
    const list = async () =>
      (await get<{ items: (Json & { scheduleId: number })[] }>("/schedules?source=shop")).body.items[0];
    const before = await list();
    expect(before).toMatchObject({ name: "nightly", endpoint: "orders", cron: "0 3 * * *", paused: false, last: null });
    expect(await post(`/schedules/${before?.scheduleId}:pause`)).toMatchObject({
      status: 200,
      body: { paused: true, nextAt: null },
    });
    expect(await list()).toMatchObject({ paused: true });
    const { body } = await post(`/schedules/${before?.scheduleId}:resume`);
    expect(body).toMatchObject({ paused: false, nextAt: before?.["nextAt"] });
  });

  test("have the status of the plan that they made last", async () => {
    const { planId } = await plan();
    const list = async () => (await get<{ items: Json[] }>("/schedules?source=shop")).body.items[0];
    await database.query(
      `insert into harvest.ing_schedule_instance (schedule_instance_id, scheduler_code, scheduler_job_id, scheduler_log_id,
         provenance_code, endpoint_name, operation_code, trigger_type_code, trigger_params, record_remarks, created_by)
       values (gen_random_uuid(), 'cron', $1, '2026-01-01', 'shop', 'orders', 'HARVEST', 'SCHEDULE', '{}', $2, 'nightly')`,
      [String((await list())?.["scheduleId"]), JSON.stringify({ planId })],
    );
    expect(await list()).toMatchObject({ last: { planId, status: "READY" } });
    await post(`/plans/${planId}:cancel`);
    expect(await list()).toMatchObject({ last: { planId, status: "CANCELLED" } });
  });
});

describe("cursors", () => {
  test("are measured against what could be closed, and keep their advances", async () => {
    const { planId } = await plan();
    const today = new Date().toISOString().slice(0, 10);
    const from = new Date(Date.parse(today) - 3 * 86_400_000);
    await database.query(
      `insert into harvest.ing_cursor (provenance_code, operation_code, cursor_key, namespace_scope_code, namespace_key,
         cursor_type_code, cursor_value, normalized_instant, plan_id, slice_id, generation, expr_hash)
       values ('shop', 'HARVEST', 'updated', 'EXPR', 'orders', 'TIME', $1, $2, $3, 1, 1, '')`,
      [from.toISOString(), from, planId],
    );
    await database.query(
      `insert into harvest.ing_cursor_event (plan_month, slice_id, generation, provenance_code, operation_code, cursor_key,
         namespace_scope_code, namespace_key, cursor_type_code, direction_code, prev_value, new_value, schedule_instance_id, plan_id,
         task_id, run_id, expr_hash)
       select '2026-01-01', n, 1, 'shop', 'HARVEST', 'updated', 'EXPR', 'orders', 'TIME', 'FORWARD', (n - 1)::text, n::text,
         gen_random_uuid(), $1, 1, 1, '' from generate_series(1, 3) n`,
      [planId],
    );
    const { body } = await get<{ items: Json[] }>("/cursors?source=shop&operation=HARVEST");
    expect(body.items).toMatchObject([{ namespace: "orders", key: "updated", value: from.toISOString(), planId }]);
    // Three days, or two shortly after midnight while the last day is not closed.
    expect([2 * 86_400, 3 * 86_400]).toContain(body.items[0]?.["lagSeconds"]);
    const events = await get<{ items: Json[] }>("/cursors/shop/orders/events?limit=2");
    expect(events.body.items).toMatchObject([
      { from: "2", to: "3" },
      { from: "1", to: "2" },
    ]);
    await database.query("delete from harvest.ing_cursor_event");
  });
});

describe("scopes", () => {
  test.each([
    ["harvest:read", "POST", "/plans"],
    ["harvest:write", "GET", "/plans"],
    ["harvest:write", "POST", `/plans/${NOBODY}:cancel`],
    ["harvest:write", "POST", "/schedules/1:pause"],
    ["harvest:control", "GET", "/cursors"],
  ])("%s is not enough for %s %s", async (scope, method, path) => {
    const { body } = await millrace.api.post("/api/v1/keys", { name: "some", scopes: [scope] });
    const response = await fetch(millrace.url + BASE + path, {
      method,
      headers: { authorization: `Bearer ${String(body["key"])}`, "content-type": "application/json" },
      ...(method === "POST" ? { body: path === "/plans" ? '{"source":"shop"}' : "{}" } : {}),
    });
    expect(response.status).toBe(403);
  });
});
