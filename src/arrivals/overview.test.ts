/** What arrivals shows on the overview: models that failed, are late, ask or wait, and every run that has ended. */
import { expect, test } from "vitest";
import { useDatabase } from "../../test/database.ts";
import { openRecordingDb } from "../../test/plans.ts";
import { ENTRIES_MAX } from "../kernel/overview/part.ts";
import { rangeOf } from "../kernel/overview/range.ts";
import { systemClock } from "../kernel/time/clock.ts";
import { on, TODAY, useKpis } from "./arrivals.fixture.ts";
import { createOverview } from "./overview.ts";
import { endedModels, instancesIn } from "./store/overview.ts";

const database = useDatabase();
const kpis = useKpis(database);
const overview = createOverview({ clock: systemClock });
const now = () => overview.now(database.db, { tenantId: null });
const lastHour = () => rangeOf({ hours: 1 }, Date.now() + 1_000);
const BROKEN = { engine: "warehouse", sql: "select 'KD1001' as kpi_id, 1 / 0 as value" };

test("a model that has failed needs somebody until a later run of the opTime succeeds", async () => {
  await kpis.publish("M", BROKEN);
  for (const day of ["20260401", "20260402"]) await kpis.arrive("T", day);
  expect((await now()).needs).toMatchObject([
    {
      about: { kind: "model", id: "M", opTime: "20260402" },
      state: "failed",
      title: "M",
      reason: expect.stringContaining("division by zero"),
      count: 2,
    },
  ]);
  await kpis.define("M", { engine: "warehouse", sql: "select 'KD1001' as kpi_id, 1 as value" });
  for (const day of ["20260401", "20260402"]) await kpis.arrive("T", day);
  expect((await now()).needs).toEqual([]);
});

test("a model that is tried again needs nobody yet, and waits for its next attempt", async () => {
  const sql = "select 'KD1002' as kpi_id, 1 as value"; // Not among its KPIs.
  await kpis.publish("M", { sql, retry: { maxAttempts: 2, backoffMs: 3_600_000 } });
  await kpis.arriveAsync("T");
  await kpis.reaches("M", "FAILED");
  const { needs, waiting } = await now();
  expect(needs).toEqual([]);
  const about = { kind: "model", id: "M", opTime: TODAY };
  expect(waiting).toMatchObject([{ cause: "retry", kind: "model", about, count: 1, nextAt: expect.any(Date) }]);
  expect((await kpis.get(`/readiness/cells?by=model&from=${TODAY}&to=${TODAY}`)).body).toMatchObject({
    rows: [{ name: "M", cells: "t" }],
  });
});

test("the newest failures need somebody, whatever the ids of their models", async () => {
  await database.query(
    `insert into arrivals.metrics_task_log (model_id, op_time, status, start_time, end_time, generation, trigger, consumed, worker)
     select 'F' || n, 'O', 'FAILED', t, t, 1, 'arrival', '{}', 'w'
     from generate_series(100, 100 + $1::int) n, lateral (select now() - interval '1 day' + n * interval '1 minute' as t) o`,
    [ENTRIES_MAX],
  );
  const titles = (await now()).needs.map(({ title }) => title);
  expect(titles).toEqual(Array.from({ length: ENTRIES_MAX }, (_, n) => `F${100 + ENTRIES_MAX - n}`));
});

test("models wait for the tables that have not arrived, each table once, however many opTimes of it", async () => {
  await kpis.publish("M", { dependencies: on("A", "B") });
  await kpis.publish("N", { dependencies: on("A", "B"), kpis: ["KD2"], sql: "select 'KD2' as kpi_id, 1 as value" });
  await kpis.arrive("A", "20260401");
  await kpis.arrive("A", "20260402");
  expect((await now()).waiting).toMatchObject([
    { cause: "table", kind: "model", subject: "B", about: { kind: "table", id: "B", opTime: "20260402" }, count: 4 },
  ]);
});

test("a table that is late for a model needs somebody", async () => {
  const day = new Date(Date.now() - 2 * 86_400_000).toISOString().slice(0, 10).replaceAll("-", "");
  await kpis.publish("M", {
    grain: "day",
    dependencies: [{ table: "A" }, { table: "B", deadline: "PT1S" }],
  });
  await kpis.arrive("A", day);
  expect((await now()).needs).toMatchObject([
    { about: { kind: "model", id: "M", opTime: day }, state: "late", title: "B", count: 1 },
  ]);
});

test("a model that asks whether to run again needs somebody", async () => {
  await kpis.publish("M", { rerun: "ask" });
  await kpis.arrive("T", "20260401");
  await kpis.arrive("T", "20260401");
  expect((await now()).needs).toMatchObject([
    { about: { kind: "model", id: "M", opTime: "20260401" }, state: "asking", count: 1 },
  ]);
});

test("a quiet period is a cause, with its end", async () => {
  await kpis.publish("M", { dependencies: [{ table: "T", quietSeconds: 3_600 }] });
  await kpis.arrive("T", "20260401");
  expect((await now()).waiting).toMatchObject([
    {
      cause: "quiet",
      kind: "model",
      about: { kind: "model", id: "M", opTime: "20260401" },
      count: 1,
      nextAt: expect.any(Date) as Date,
    },
  ]);
});

test("runs are counted by model, and read by their index however long history is", async () => {
  await kpis.publish("M", BROKEN);
  await kpis.arrive("T", "20260401");
  await database.query(
    `insert into arrivals.metrics_task_log (model_id, op_time, status, start_time, end_time, generation, trigger, consumed, worker)
     select 'old' || n % 50, 'O' || n, 'SUCCESS', t, t, 1, 'arrival', '{}', 'w'
     from generate_series(1, 30000) n, lateral (select now() - interval '40 days' - n * interval '1 minute' as t) o`,
  );
  await database.query(
    `insert into arrivals.model_instance (model_id, op_time, state, updated_at)
     select 'M', 'O' || n, case when n % 100 = 0 then 'waiting' else 'idle' end, now() - interval '40 days' from generate_series(1, 30000) n`,
  );
  await database.query("vacuum analyze arrivals.metrics_task_log, arrivals.model_instance");
  const { db, explainLast } = openRecordingDb(database.connection, "arrivals.overview");
  const reading = { ...db, read: db.rows };
  const { lanes } = await endedModels(reading, lastHour());
  expect(lanes).toMatchObject([{ id: "M", cells: [{ ended: 1, failed: 1, failedId: "20260401" }] }]);
  await instancesIn(reading, "waiting", 20);
  const ended = await explainLast("arrivals.overview.ended");
  const waiting = await explainLast("arrivals.overview.instances");
  await db.close();
  expect(ended.indexes).toContain("metrics_task_log_ended");
  expect(waiting.indexes).toEqual(["model_instance_waiting"]);
  expect(ended.pages).toBeLessThan(100);
  expect(waiting.pages).toBeLessThan(100);
});
