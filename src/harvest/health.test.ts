/** What the doctor, the metrics and the log say about windows that are missing and watermarks that lag. */
import { describe, expect, onTestFinished, test } from "vitest";
import { useDatabase } from "../../test/database.ts";
import { openRecordingDb } from "../../test/plans.ts";
import { startServer } from "../../test/server.ts";
import { until } from "../../test/until.ts";
import { statement } from "../kernel/data/statement.ts";
import { examine } from "../kernel/doctor.ts";
import { needChecks } from "../kernel/overview/doctor.ts";
import { endOf, plan as planOver } from "./harvest.fixture.ts";
import { harvestCheck, measureHealth } from "./health.ts";
import { createOverview } from "./overview.ts";
import { actor, usePlanner } from "./plan/planner.fixture.ts";
import { applyScripted, correct, definitionOf, itemsOf, startScripted } from "./run/scripted.fixture.ts";
import { cancelSlice } from "./store/plans/plan-ends.ts";
import { giveUpSlicing } from "./store/plans/plans.ts";
import { missingWindows } from "./store/sources/health.ts";

const database = useDatabase();
const planning = usePlanner(database);

const SLICE = statement<{ id: string }>(
  "test.slice_of_plan",
  "select slice_id::text as id from harvest.ing_plan_slice where plan_id = $1",
);
const day = (number: number) => `2026-08-${String(number).padStart(2, "0")}`;
const look = () => harvestCheck.look(database.db);

/** Plans the days from `first` to `last`, both included. */
async function plan(first: number, last: number, params?: Record<string, string>): Promise<string> {
  const window = { from: day(first), to: day(last + 1) };
  const request = { source: "src", operation: "HARVEST", window, ...(params ? { params } : {}) } as const;
  return (await planning.planner.create(request, actor)).planId;
}

/** Ends the open slices of the plan, or the one of a day, and the plan with the last of them. */
async function end(planId: string, state: string, of?: number): Promise<void> {
  await database.query(
    `update harvest.ing_plan_slice set status_code = $2, ended_at = now(),
       reason = case when $2 in ('FAILED', 'INCOMPLETE') then 'too many' end
     where plan_id = $1 and status_code = 'READY' and ($3::timestamptz is null or window_from = $3)`,
    [planId, state, of === undefined ? null : `${day(of)}T00:00:00Z`],
  );
  await database.db.tx((tx) => planning.settle(tx, [planId]));
}

async function watermark(at: number, planId: string): Promise<void> {
  await database.query(
    `insert into harvest.ing_cursor (provenance_code, operation_code, cursor_key, namespace_scope_code, namespace_key,
       cursor_type_code, cursor_value, normalized_instant, plan_id, slice_id, generation, expr_hash)
     values ('src', 'HARVEST', 'updated', 'EXPR', 'works', 'TIME', $1::text, $1::timestamptz, $2, 1, 1, '')
     on conflict (provenance_code, operation_code, cursor_key, namespace_scope_code, namespace_key)
     do update set normalized_instant = excluded.normalized_instant`,
    [`${day(at)}T00:00:00Z`, planId],
  );
}

/** What the doctor says of plans that have failed. */
async function failures() {
  const [found] = await examine(database.db, needChecks([createOverview({ clock: planning.clock })]));
  return found;
}

describe("the doctor", () => {
  test("counts plans that have failed and were not repeated, with the command that lists them", async () => {
    await planning.addSource("src");
    expect(await failures()).toMatchObject({ verdict: "ok" });
    const planId = await plan(1, 2);
    await end(planId, "FAILED", 1);
    expect(await failures()).toMatchObject({ verdict: "ok" }); // It goes on.
    await end(planId, "COMPLETE");
    const other = await plan(5, 5);
    await end(other, "FAILED");
    expect(await failures()).toMatchObject({
      check: "failures",
      verdict: "warning",
      found: expect.stringMatching(
        /: plan src\/works \(2\)\. The newest is src\/works: 1 of 1 slices are not complete\. The first: too many$/,
      ) as string,
      advice: expect.stringContaining("`millrace harvest status --status failed` lists each failed plan.") as string,
    });
    await end(await plan(1, 1), "COMPLETE");
    expect(await failures()).toMatchObject({ found: expect.stringContaining(": plan src/works (1).") as string });
    await database.query("update harvest.ing_plan set ended_at = now() - interval '8 days' where plan_id = $1", [
      other,
    ]);
    expect(await failures()).toMatchObject({ verdict: "ok" });
  });

  test("counts a plan one slice of which was cancelled, or whose rest could not be sliced", async () => {
    await planning.addSource("src");
    const cancelled = await plan(1, 1);
    await database.db.tx(async (tx) => {
      const [slice] = await tx.rows(SLICE, [cancelled]);
      await cancelSlice(tx, { planId: cancelled, sliceId: slice?.id ?? "" }, "cancelled by ann");
      await planning.settle(tx, [cancelled]);
    });
    expect(await failures()).toMatchObject({ found: expect.stringMatching(/: cancelled by ann$/) as string });
    await end(await plan(1, 1), "COMPLETE");
    expect(await failures()).toMatchObject({ verdict: "ok" });

    const unsliced = await plan(2, 2);
    await database.query(
      "update harvest.ing_plan set status_code = 'PARTIAL', unsliced_from = window_from where plan_id = $1",
      [unsliced],
    );
    await database.db.tx((tx) => giveUpSlicing(tx, unsliced, "no such field"));
    await end(unsliced, "COMPLETE");
    expect(await failures()).toMatchObject({
      found: expect.stringMatching(/could not be sliced: no such field$/) as string,
    });
    const { needs } = await createOverview({ clock: planning.clock }).now(database.db, { tenantId: null });
    expect(needs).toMatchObject([{ about: { kind: "plan", id: unsliced }, state: "failed" }]);
    await end(await plan(1, 1), "COMPLETE");
    expect(await failures()).toMatchObject({ verdict: "warning" }); // Of another window.
    await end(await plan(2, 2), "COMPLETE");
    expect(await failures()).toMatchObject({ verdict: "ok" });
  });

  test("names a window that is missing, and the command that harvests it", async () => {
    await planning.addSource("src");
    expect(await look()).toEqual({ verdict: "ok", found: "No window of a source is missing." });
    const planId = await plan(1, 3);
    await end(planId, "INCOMPLETE", 2);
    // Also while the plan goes on.
    expect(await look()).toMatchObject({ verdict: "warning" });
    await end(planId, "COMPLETE");
    expect(await look()).toEqual({
      verdict: "warning",
      found: "Missing: 1 window. src/works from 2026-08-02T00:00:00Z to 2026-08-03T00:00:00Z is INCOMPLETE: too many.",
      advice:
        "The watermark does not pass a missing window. Remove the reason, then harvest it again. Run `millrace harvest run src --endpoint works --from 2026-08-02T00:00:00Z --to 2026-08-03T00:00:00Z`.",
      isListed: true,
    });
  });

  test("counts a window once, however often it failed, and leaves the values of parameters open", async () => {
    await planning.addSource("src");
    for (let n = 0; n < 3; n += 1) await end(await plan(1, 5, { q: "asthma" }), "FAILED");
    expect(await look()).toMatchObject({
      found: expect.stringMatching(/^Missing: 5 windows\. src\/works:\w+ from 2026-08-01.*; and 2 more\.$/) as string,
      advice: expect.stringContaining("--to 2026-08-02T00:00:00Z --param ...`, `") as string,
    });
  });

  test("forgets a window when it is completed, also in parts, or when the watermark has passed it", async () => {
    await planning.addSource("src");
    await end(await plan(1, 3), "FAILED");
    await end(await plan(1, 1), "COMPLETE");
    expect(await missingWindows(database.db)).toHaveLength(2);
    const halves = await plan(2, 2);
    await database.query(
      `insert into harvest.ing_plan_slice (plan_id, slice_no, provenance_code, endpoint_id, operation_code, namespace_scope_code,
         namespace_key, window_from, window_to, slice_spec, slice_signature_hash, expr_hash, expr_snapshot, status_code, ended_at)
       select plan_id, 2, provenance_code, endpoint_id, operation_code, namespace_scope_code, namespace_key,
         window_from + interval '12 hours', window_to, '{}', 'second half', '', '{}', 'COMPLETE', now()
       from harvest.ing_plan_slice where plan_id = $1`,
      [halves],
    );
    await database.query(
      "update harvest.ing_plan_slice set window_to = window_from + interval '12 hours' where plan_id = $1 and slice_no = 1",
      [halves],
    );
    expect(await missingWindows(database.db)).toHaveLength(2);
    await end(halves, "COMPLETE");
    expect(await missingWindows(database.db)).toMatchObject([{ window_from: new Date(day(3)) }]);
    await watermark(4, halves);
    expect(await look()).toMatchObject({ verdict: "ok" });
  });

  test("sees a plan without a window fail, until a later one is complete", async () => {
    await planning.addSource("src", { window: null });
    const whole = async () => (await planning.planner.create({ source: "src", operation: "HARVEST" }, actor)).planId;
    await end(await whole(), "FAILED");
    expect(await look()).toMatchObject({
      found: "Missing: 1 window. src/works is FAILED: too many.",
      advice: expect.stringContaining("Run `millrace harvest run src --endpoint works`.") as string,
    });
    await end(await whole(), "COMPLETE");
    expect(await look()).toMatchObject({ verdict: "ok" });
  });

  test("says which schedules make no plan, and which plans left the watermark behind", async () => {
    await planning.addSource("src");
    const planId = await plan(18, 19);
    await database.query(
      `with schedule as (
         insert into harvest.ing_schedule (provenance_code, schedule_name, endpoint_name, operation_code, cron, time_zone)
         values ('src', 'nightly', 'works', 'HARVEST', '0 3 * * *', 'UTC'), ('src', 'weekly', 'works', 'HARVEST', '0 3 * * 0', 'UTC')
         returning schedule_id, schedule_name
       )
       insert into harvest.ing_schedule_instance (schedule_instance_id, scheduler_code, scheduler_job_id, scheduler_log_id,
         provenance_code, endpoint_name, operation_code, trigger_type_code, trigger_params, record_remarks, created_by)
       select gen_random_uuid(), 'cron', schedule_id::text, '2026-08-20', 'src', 'works', 'HARVEST', 'SCHEDULE', '{}',
         case schedule_name when 'nightly' then jsonb_build_object('planId', $1::text)
           else '{"refused": "The definition cannot be used"}' end, '' from schedule`,
      [planId],
    );
    const refused = "Schedules that make no plan: weekly of src: The definition cannot be used.";
    expect(await look()).toMatchObject({ verdict: "warning", found: refused });
    await planning.planner.cancel(planId, actor);
    await watermark(18, planId);
    expect(await look()).toMatchObject({
      found: `Behind their schedules: src/works (nightly) is harvested until 2026-08-18T00:00:00Z. ${refused}`,
      advice:
        "Run `millrace harvest run src --endpoint works`. Fix the definition, and apply it with `millrace harvest apply FILE`.",
    });
    // All days until the 20th could be closed when it was planned.
    await watermark(20, planId);
    expect(await look()).toMatchObject({ found: refused });
  });
});

test("gauges have the missing windows and the lag behind what could be harvested", async () => {
  await planning.addSource("src");
  const planId = await plan(18, 19);
  await end(planId, "FAILED");
  await watermark(18, planId);
  measureHealth({ db: database.db, clock: planning.clock, metrics: planning.metrics, log: planning.log });
  const shown = (name: string, value: number) =>
    until(
      async () =>
        (await planning.rendered()).includes(`${name}{source="src",endpoint="works",op="HARVEST"} ${value}\n`),
      `${name} ${value}`,
    );
  await shown("patra_ingest_missing_windows", 2);
  await shown("patra_ingest_cursor_lag_seconds", 2 * 86_400);
  await end(await plan(18, 19), "COMPLETE");
  await watermark(20, planId);
  planning.at("2026-08-20T12:01:00Z");
  await shown("patra_ingest_missing_windows", 0);
  await shown("patra_ingest_cursor_lag_seconds", 0);
});

test("plans that end are counted, and those that fail are logged", async () => {
  await planning.addSource("src");
  await end(await plan(1, 1), "COMPLETE");
  const failed = await plan(2, 2);
  await end(failed, "FAILED");
  await planning.planner.cancel(await plan(3, 3), actor);
  const text = await planning.rendered();
  for (const status of ["COMPLETE", "FAILED", "CANCELLED"]) {
    expect(text).toContain(
      `patra_ingest_plans_ended_total{source="src",endpoint="works",op="HARVEST",status="${status}"} 1\n`,
    );
  }
  const reason = "1 of 1 slices are not complete. The first: too many";
  const fields = { planId: failed, source: "src", endpoint: "works", operation: "HARVEST", reason };
  expect(planning.log.lines).toEqual([{ level: "warn", fields, message: "a plan has failed" }]);
});

test("the missing windows are found without reading the history", async () => {
  const { db, explainLast } = openRecordingDb(database.connection, "harvest.health");
  onTestFinished(() => db.close());
  await planning.addSource("src");
  const old = await plan(1, 1);
  await end(old, "FAILED");
  await watermark(10, old);
  await end(await plan(11, 11), "FAILED");
  const grow = (from: number, to: number) =>
    database.query(
      `with made as (
         insert into harvest.ing_plan
         select (jsonb_populate_record(p, jsonb_build_object('plan_id', '00000000-0000-7000-8000-' || lpad(n::text, 12, '0'),
                   'status_code', case when n % 2 = 0 then 'FAILED' else 'COMPLETE' end))).*
         from harvest.ing_plan p, generate_series($2::int, $3::int) n where p.plan_id = $1 returning plan_id, status_code
       )
       insert into harvest.ing_plan_slice (plan_id, slice_no, provenance_code, endpoint_id, operation_code, namespace_scope_code,
         namespace_key, window_from, window_to, slice_spec, slice_signature_hash, expr_hash, expr_snapshot, status_code, ended_at, reason)
       select m.plan_id, 1, s.provenance_code, s.endpoint_id, s.operation_code, s.namespace_scope_code, s.namespace_key,
         s.window_from - make_interval(days => row_number() over ()::int), s.window_to - make_interval(days => row_number() over ()::int),
         '{}', 'x', '', '{}', m.status_code, now(), 'why'
       from made m, harvest.ing_plan_slice s where s.plan_id = $1`,
      [old, from, to],
    );
  const pages = async () => {
    await database.query("analyze harvest.ing_plan, harvest.ing_plan_slice");
    await missingWindows({ read: db.rows });
    return (await explainLast("harvest.health.missing_windows")).pages;
  };
  await grow(1, 2_000);
  const before = await pages();
  await grow(2_001, 20_000);
  expect(await pages()).toBeLessThan(before * 1.5);
  expect(await missingWindows(database.db)).toMatchObject([{ window_from: new Date(day(11)) }]);
});

test("a window that is incomplete is in the log, the metrics and the doctor of a server", async () => {
  const source = await startScripted();
  onTestFinished(() => source.close());
  const server = await startServer({
    database,
    env: { MILLRACE_HARVEST_ALLOW_PRIVATE: source.host },
  });
  source.on("capped", correct(itemsOf(12)));
  await applyScripted({ api: server.api, server: source }, definitionOf("capped", { window: { recordsMax: 5 } }));
  const { planId } = await planOver(server.api, { source: "capped", window: { from: day(1), to: day(2) } });
  expect(await endOf(server.api, planId)).toMatchObject({ status: "FAILED" });
  const shown = await server.api.get<{ findings: { check: string; advice?: string }[] }>("/api/v1/doctor");
  expect(JSON.stringify(shown.body)).toContain(
    "millrace harvest run capped --endpoint items --from 2026-08-01T00:00:00Z --to 2026-08-02T00:00:00Z",
  );
  await until(() => server.output().includes("a plan has failed"), "the line of the plan");
  const lines = server
    .output()
    .split("\n")
    .filter((line) => line.includes(planId));
  expect(lines).toHaveLength(2);
  expect(lines[0]).toContain("a window is not complete");
  expect(lines[0]).toContain("the source answers no more than 5 for one query");
});
