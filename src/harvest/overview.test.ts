/** What harvest shows on the overview: whether a source is slow or throttled, what waits, what is missing, how far cursors were behind. */
import { describe, expect, test } from "vitest";
import { useDatabase } from "../../test/database.ts";
import { openRecordingDb } from "../../test/plans.ts";
import { ENTRIES_MAX } from "../kernel/overview/part.ts";
import { rangeOf } from "../kernel/overview/range.ts";
import { systemClock } from "../kernel/time/clock.ts";
import { DAY_MS } from "../kernel/time/units.ts";
import { endOf, plan } from "./harvest.fixture.ts";
import { createOverview, healthOf, lagOver, needsOf } from "./overview.ts";
import { correct, itemsOf, useScripted } from "./run/scripted.fixture.ts";
import type { WindowSpec } from "./spec/snapshot.ts";
import type { MissingWindow, ScheduleHealth } from "./store/sources/health.ts";
import { endedPlans, type SourceRow } from "./store/sources/overview.ts";

const WINDOW = { granularityMs: 1_000, timezone: "UTC", align: "min", safetyLagMs: 0 } as WindowSpec;
const item = { provenance_code: "src", endpoint_name: "items", operation_code: "HARVEST" };
const missing: MissingWindow = {
  ...item,
  namespace_key: "items",
  window_from: new Date(0),
  window_to: new Date(1),
  plan_id: "01936f3a-5b7c-7d21-8f4e-1c2d3e4f5a6b",
  status_code: "FAILED",
  reason: "no",
  ended_at: new Date(1_000),
};
const schedule: ScheduleHealth = {
  ...item,
  schedule_name: "nightly",
  refused: null,
  namespace_key: null,
  planned_at: null,
  window: null,
  watermark: null,
};

const database = useDatabase();
const harvests = useScripted(database);
const overview = createOverview({ clock: systemClock });
const now = () => overview.now(database.db, { tenantId: null });
const sourceOf = async (name: string) => (await now()).sources?.find(({ source }) => source === name);

describe("a source", () => {
  test("that lets few requests through is throttled, and its gate is named", async () => {
    const source = await harvests.source(correct(itemsOf(30)), {
      rateLimit: { refillRatePerSec: 1, burstCapacity: 1 },
    });
    expect(await harvests.harvest(source)).toMatchObject({ status: "COMPLETE" });
    expect(await sourceOf(source)).toMatchObject({
      state: "throttled",
      gate: source,
      requests: expect.toSatisfy((n: number) => n >= 3) as number,
      waitShare: expect.toSatisfy((share: number) => share > 0.3 && share <= 1) as number,
      lastSuccessAt: expect.any(Date) as Date,
    });
  });

  test("that asked for patience is throttled while its tasks wait, and the gate is the cause", async () => {
    const source = await harvests.source(() => ({ status: 429, headers: { "retry-after": "3600" }, body: {} }));
    await harvests.waits(await harvests.plan(source));
    const { sources, waiting } = await now();
    expect(sources?.find((one) => one.source === source)).toMatchObject({
      state: "throttled",
      gate: source,
      heldBack: 1,
      accessRefused: false,
    });
    expect(waiting).toContainEqual(
      expect.objectContaining({
        cause: "gate",
        kind: "task",
        subject: source,
        about: { kind: "source", id: source },
        count: 1,
      }),
    );
    // A pause is the cause while it holds, whatever else the task waits for.
    await harvests.api.post(`/api/v1/harvest/sources/${source}:pause`, {});
    const ofSource = (await now()).waiting?.filter(({ about }) => about?.id === source);
    expect(ofSource).toMatchObject([{ cause: "paused", kind: "task", count: 1 }]);
  });

  test("whose window is missing needs somebody, with the reason", async () => {
    const source = await harvests.source(() => ({ status: 400, body: { error: "no" } }));
    expect(await harvests.harvest(source)).toMatchObject({ status: "FAILED" });
    expect(await sourceOf(source)).toMatchObject({ state: "failing", requests: 1, failedRequests: 1 });
    expect((await now()).needs).toContainEqual(
      expect.objectContaining({
        about: { kind: "cursor", id: `${source}/items` },
        state: "failed",
        title: `${source}/items`,
        reason: expect.stringMatching(/^2026-08-01 to 2026-08-02: /) as string,
      }),
    );
    const { lanes } = await endedPlans(database.db, rangeOf({ hours: 1 }, Date.now() + 1_000));
    expect(lanes.find(({ id }) => id === source)?.cells).toMatchObject([{ ended: 1, failed: 1 }]);
  });

  test("whose window is of long ago says when it failed", async () => {
    const source = await harvests.source(() => ({ status: 400, body: { error: "no" } }));
    const { planId } = await harvests.harvest(source);
    const ended = await database.query<{ ended_at: Date }>(
      "select max(ended_at) as ended_at from harvest.ing_plan_slice where plan_id = $1",
      [planId],
    );
    expect((await now()).needs.find(({ title }) => title === `${source}/items`)?.at).toEqual(ended[0]?.ended_at);
  });

  test("whose schedule makes no plans needs somebody beside any number of missing windows", async () => {
    const windows = Array.from({ length: ENTRIES_MAX + 1 }, (_, n) => ({
      ...missing,
      namespace_key: `n${n}`,
      ended_at: new Date(1_000 + n),
    }));
    const refused = { ...schedule, schedule_name: "daily", refused: "The definition has no window." };
    const needs = needsOf(windows, [refused]);
    expect(needs).toHaveLength(ENTRIES_MAX + 1);
    expect(needs[0]?.title).toBe(`src/n${ENTRIES_MAX}`);
    expect(needs.at(-1)).toMatchObject({ title: "src, schedule daily", at: null });
  });

  test("whose plan has ended behind its schedule is late, unless a missing window is the reason", async () => {
    const day = (n: number) => new Date(`2026-08-0${n}T00:00:00Z`);
    const behind = { ...schedule, namespace_key: "items", window: WINDOW, planned_at: day(3), watermark: day(1) };
    const late = { state: "late", title: "src/items", count: 1, at: day(3) };
    const reason = "It is harvested until 2026-08-01T00:00:00Z, which is behind its schedule nightly.";
    expect(needsOf([], [behind])).toMatchObject([{ ...late, reason }]);
    expect(needsOf([], [{ ...behind, watermark: null }])).toMatchObject([late]);
    expect(needsOf([], [{ ...behind, watermark: day(3) }])).toEqual([]);
    expect(needsOf([{ ...missing, namespace_key: "items" }], [behind])).toMatchObject([{ state: "failed" }]);
  });

  const row: SourceRow = {
    source: "s",
    name: "s",
    requests: 100,
    failed: 0,
    refusals: 0,
    wait_ms: 0,
    answer_ms: 10_000,
    busy_ms: 12_000,
    usual_requests: 100,
    usual_answer_ms: 10_000,
    held_back: 0,
    held_by: null,
    is_refused: false,
    slowest_gate: "g",
    last_success_at: null,
  };
  test.each<[state: string, change: Partial<SourceRow>]>([
    ["ok", {}],
    ["idle", { requests: 0, answer_ms: 0, busy_ms: 0 }],
    ["ok", { wait_ms: 6_000, busy_ms: 100_000 }], // Its own work takes most of the time.
    ["failing", { failed: 50, wait_ms: 90_000 }],
    ["failing", { failed: 1, wait_ms: 6_000, held_back: 1, is_refused: true }], // It answered all before.
    ["throttled", { wait_ms: 6_000 }],
    ["throttled", { requests: 0, answer_ms: 0, held_back: 1, held_by: "h" }],
    ["ok", { wait_ms: 4_900, answer_ms: 2_000 }], // Mostly for permits, but hardly at all.
    ["ok", { answer_ms: 40_000 }], // Four times as slow as usual, but fast.
    ["slow", { answer_ms: 100_000 }],
    ["ok", { answer_ms: 100_000, usual_answer_ms: 90_000 }],
    ["throttled", { answer_ms: 100_000, wait_ms: 100_000 }],
  ])("is %s with %j", (state, change) => {
    expect(healthOf({ ...row, ...change }, [null, 3, 60])).toMatchObject({ state, lagSeconds: 60 });
  });
});

test("the cursor of a backfill is not how far its source is behind", async () => {
  const source = await harvests.source(correct(itemsOf(1)), { window: { earliest: "2006-01-01" } });
  expect(await harvests.harvest(source)).toMatchObject({ status: "COMPLETE" });
  const window = { from: "2026-07-31", to: "2026-08-01" };
  const { planId } = await plan(harvests.api, { source, operation: "BACKFILL", window });
  expect(await endOf(harvests.api, planId)).toMatchObject({ status: "COMPLETE" });
  // The backfill has twenty years left.
  const lag = expect.toSatisfy((seconds: number) => seconds < (10 * 365 * DAY_MS) / 1_000) as number;
  expect(await sourceOf(source)).toMatchObject({ lagSeconds: lag });
  const { lags = [] } = (await overview.activity?.(database.db, rangeOf({ hours: 1 }, Date.now() + 1_000))) ?? {};
  expect(lags.filter(({ about }) => about?.id === source)).toMatchObject([
    { seconds: expect.arrayContaining([lag]) as number[] },
  ]);
});

test("the lag of a cursor grows until it advances", () => {
  const range = rangeOf({ from: "2026-08-02T00:00:00Z", to: "2026-08-02T04:00:00Z", hours: 1 }, 0);
  const hours = { ...range, bucketMs: 3_600_000, buckets: 4 };
  const at = (time: string) => new Date(`2026-08-0${time}:00:00Z`);
  const advances = [
    { created_at: new Date("2026-08-02T02:30:00Z"), prev_instant: at("1T23"), new_instant: at("2T02") },
  ];
  expect(lagOver({ window: WINDOW, normalized_instant: at("2T02") }, advances, hours)).toEqual([
    7_200, 10_800, 3_600, 7_200,
  ]);
  expect(lagOver({ window: WINDOW, normalized_instant: at("2T00") }, [], hours)).toEqual([
    3_600, 7_200, 10_800, 14_400,
  ]);
});

test("the statements read the newest of each source, however long history is", async () => {
  const source = await harvests.source(correct(itemsOf(10)));
  const { planId } = await harvests.harvest(source);
  await database.query(
    `insert into harvest.ing_plan (plan_id, schedule_instance_id, provenance_code, endpoint_id, endpoint_name, operation_code, plan_strategy,
       spec_fingerprint, expr_proto_hash, namespace_scope_code, namespace_key, priority, planned_at, plan_month, status_code, created_at, ended_at)
     select gen_random_uuid(), p.schedule_instance_id, p.provenance_code, p.endpoint_id, p.endpoint_name, p.operation_code, 'TIME', p.spec_fingerprint,
       '', p.namespace_scope_code, p.namespace_key, 100, now(), p.plan_month, 'COMPLETE', t, t
     from harvest.ing_plan p, generate_series(1, 20000) n, lateral (select now() - interval '40 days' - n * interval '1 minute' as t) o
     where p.plan_id = $1`,
    [planId],
  );
  await database.query(
    `with task as (
       insert into harvest.ing_task (schedule_instance_id, plan_id, slice_id, provenance_code, operation_code, partition_key, params, expr_hash,
         idempotent_key, status_code, priority, finished_at)
       select t.schedule_instance_id, t.plan_id, t.slice_id, t.provenance_code, t.operation_code, t.partition_key, '{}', '', 'old' || n, 'SUCCEEDED', 100, now()
       from harvest.ing_task t, generate_series(1, 20000) n where t.plan_id = $1
       returning task_id, provenance_code, operation_code
     )
     insert into harvest.ing_task_run (task_id, attempt_no, provenance_code, operation_code, status_code, ended_at)
     select task_id, 1, provenance_code, operation_code, 'SUCCEEDED', now() - interval '40 days' from task`,
    [planId],
  );
  await database.query("vacuum analyze harvest.ing_plan, harvest.ing_task, harvest.ing_task_run");
  const { db, explainLast } = openRecordingDb(database.connection, "harvest.overview");
  const reading = { ...db, read: db.rows };
  await overview.now(reading, { tenantId: null });
  await overview.activity?.(reading, rangeOf({ hours: 1 }, Date.now() + 1_000));
  const names = ["ended", "waiting", "sources", "advances"].map((name) => `harvest.overview.${name}`);
  const pages = Object.fromEntries(
    await Promise.all(names.map(async (name) => [name, (await explainLast(name)).pages] as const)),
  );
  const { indexes } = await explainLast("harvest.overview.ended");
  await db.close();
  expect(indexes).toContain("plan_ended");
  // Each source costs a few hundred pages; a scan of history reads thousands.
  expect(pages["harvest.overview.sources"]).toBeLessThan(1_500);
  for (const name of names.filter((one) => !one.endsWith("sources"))) expect(pages[name], name).toBeLessThan(200);
});
