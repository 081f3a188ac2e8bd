/** Arrivals that are taken back, and how long arrivals and runs are kept. */
import { describe, expect, test } from "vitest";
import { ACTOR, arrival, held, useArrivalProcesses } from "../../test/arrivals-process.ts";
import { useDatabase } from "../../test/database.ts";
import { signal, until } from "../../test/until.ts";
import type { Tx } from "../kernel/data/db.ts";
import { systemClock } from "../kernel/time/clock.ts";
import { affectedOpTimes } from "./models/mapping.ts";
import { explain } from "./models/why.ts";
import { findViolations } from "./store/invariants.ts";
import { deletesArrivals, deletesRuns } from "./store/retention.ts";

const database = useDatabase();
const { acts, define, ended, open, state, values } = useArrivalProcesses(database);
const FOR_REAL = { dryRun: false };
const why = (modelId: string) => explain(database.db, systemClock, modelId, "1");

describe("an arrival that is retracted", () => {
  test("is missing again, for models that wait and for those that it had made ready", async () => {
    const process = await open({ roles: [] });
    await define(process, "two", ["a", "b"]);
    await define(process, "one", ["a"]);
    await process.announce(arrival("a", "1"));
    expect([await state("two", "1"), await state("one", "1")]).toEqual(["waiting", "ready"]);
    const preview = await process.retract({ table: "a", opTime: "1" }, ACTOR, { dryRun: true });
    expect(await state("one", "1")).toBe("ready");
    expect(await process.retract({ table: "a", opTime: "1" }, ACTOR, FOR_REAL)).toEqual(preview);
    expect([await state("two", "1"), await state("one", "1")]).toEqual(["waiting", "waiting"]);
    expect(await why("one")).toMatchObject({
      verdict: `Waiting for a table: a 1. a 1 was retracted by key ${ACTOR.caller.name}.`,
      tables: [{ table: "a", missing: true, retractedBy: `key ${ACTOR.caller.name}` }],
    });
    await expect(process.retract({ table: "a", opTime: "1" }, ACTOR, FOR_REAL)).rejects.toThrow(
      "was retracted already",
    );
    await expect(process.retract({ table: "x", opTime: "1" }, ACTOR, FOR_REAL)).rejects.toThrow("has not arrived");
    await process.announce(arrival("b", "2"));
    await define(process, "later", ["b"]);
    await process.retract({ table: "b", opTime: "2" }, ACTOR, FOR_REAL);
    expect(await state("later", "2")).toBeUndefined(); // No trace of a model that was not concerned.
    // It arrives anew, also under the key of the first request.
    await process.announce(arrival("a", "1", "load-1"));
    await process.retract({ table: "a", opTime: "1" }, ACTOR, FOR_REAL);
    await process.announce(arrival("a", "1", "load-1"));
    expect(await state("one", "1")).toBe("ready");
    expect((await why("one")).verdict).not.toContain("retracted");
  });

  test("leaves a model as it was before, with what it has used, where nothing new is left", async () => {
    const process = await open();
    const dependencies = [{ table: "a" }, { table: "b", optional: true }];
    await define(process, "m", ["a"], { dependencies, rerun: "ask" });
    await process.announce(arrival("a", "1"));
    await ended("SUCCESS");
    await process.announce(arrival("b", "1"));
    expect(await state("m", "1")).toBe("asking");
    await process.retract({ table: "b", opTime: "1" }, ACTOR, FOR_REAL);
    expect(await state("m", "1")).toBe("idle");
    await process.announce(arrival("b", "1"));
    expect(await state("m", "1")).toBe("asking"); // It has succeeded before.
  });

  test("does not stop a run that a person asked for, nor one under way, and values that used it stay", async () => {
    const process = await open();
    await define(process, "m", ["a"]);
    await process.announce(arrival("a", "1"));
    await ended("SUCCESS");
    const stored = await values();
    const run = held();
    acts.set("m", run.act);
    await process.requests.run("m", { opTime: "1", force: false }, ACTOR);
    await run.begun();
    expect(await process.retract({ table: "a", opTime: "1" }, ACTOR, FOR_REAL)).toEqual({
      judgedAgain: [],
      usedBy: [{ modelId: "m", opTime: "1" }],
    });
    expect(await state("m", "1")).toBe("running");
    expect(await values()).toEqual(stored);
    run.release();
    await ended("SUCCESS", 2);
    expect((await why("m")).verdict).toContain("Its last success has used it, and its values stay.");
  });
});

test("an arrival that is retracted while another one makes a model ready is missing for it", async () => {
  const process = await open({ roles: [] });
  await process.announce(arrival("a", "1"));
  await define(process, "late", ["a", "b"]); // Published after `a` had arrived, so it has no instance yet.
  const [decided, release] = [signal(), signal()];
  const announcing = database.db.tx(async (tx) => {
    await process.announceIn(tx, [arrival("b", "1")]);
    decided.resolve();
    await release.promise;
  });
  await decided.promise;
  let isDone = false;
  const retracting = process.retract({ table: "a", opTime: "1" }, ACTOR, FOR_REAL).finally(() => {
    isDone = true;
  });
  await until(async () => isDone || (await waitingForLocks()) > 0, "the retraction to wait for the arrival");
  release.resolve();
  await Promise.all([announcing, retracting]);
  expect(await state("late", "1")).toBe("waiting");
});

async function waitingForLocks(): Promise<number> {
  const found = await database.query(
    "select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'",
  );
  return found.length;
}

describe("what is kept", () => {
  const age = (table: string, column: string, days: number, where: string) =>
    database.query(`update arrivals.${table} set ${column} = now() - make_interval(days => ${days}) where ${where}`);

  test("old arrivals go, in batches, unless a model still waits that needs them", async () => {
    const process = await open({ roles: [] });
    await define(process, "m", ["a", "b"]);
    for (const opTime of ["1", "2", "3", "4", "5"]) await process.announce(arrival("x", opTime));
    await process.announce(arrival("a", "3")); // m waits for b.
    await age("metrics_etl_log", "arrival_time", 400, "op_time <> '5'");
    await age("model_instance", "updated_at", 400, "true");
    const batch = deletesArrivals(365, affectedOpTimes);
    const deleted: number[] = [];
    for (let nth = 0; nth < 4; nth += 1) {
      deleted.push(await database.db.tx(async (tx) => (await batch(tx, 2)).deleted));
    }
    expect(deleted.reduce((sum, n) => sum + n, 0)).toBe(4);
    expect(await database.query("select table_name, op_time from arrivals.metrics_etl_log order by 2, 1")).toEqual([
      { table_name: "a", op_time: "3" },
      { table_name: "x", op_time: "5" },
    ]);
  });

  test("old arrivals stay while a model of another period waits for them", async () => {
    const process = await open({ roles: [] });
    await define(process, "m", [], { grain: "month", dependencies: [{ table: "d", grain: "day" }] });
    for (const day of ["20240101", "20240102"]) await process.announce(arrival("d", day));
    await process.announce(arrival("x", "20240101"));
    await age("metrics_etl_log", "arrival_time", 400, "true");
    await age("model_instance", "updated_at", 400, "true");
    expect(await database.db.tx((tx) => deletesArrivals(365, affectedOpTimes)(tx, 100))).toMatchObject({
      deleted: 1,
    });
    expect(await state("m", "202401")).toBe("waiting");
    expect(await database.query("select op_time from arrivals.metrics_etl_log order by 1")).toEqual([
      { op_time: "20240101" },
      { op_time: "20240102" },
    ]);
  });

  test("statements stay small with many dependent models, and any of these models keeps what it waits for", async () => {
    await open({ roles: [] });
    // They need the table of 1,100 days around their own: more than the mappings that are read at once.
    const [MODELS, DAYS, OFFSETS] = [1_200, 30, 1_100];
    await database.query(
      `with models as (
         insert into arrivals.metrics_model (model_id, name, state, engine, sql, grain, time_zone, rerun, timeout_seconds)
         select 'm' || n, 'm', 1, 'duckdb', 'select 1', 'day', 'UTC', 'auto', 60 from generate_series(1, $1::int) n
       ), needs as (
         insert into arrivals.metrics_model_dependency (model_id, dependency_table_name, shift)
         select 'm' || n, 'a', n % $2::int - 550 from generate_series(1, $1::int) n
       )
       insert into arrivals.metrics_etl_log (table_name, op_time, arrival_time)
       select 'a', '202401' || lpad(n::text, 2, '0'), now() - interval '400 days' from generate_series(1, $3::int) n`,
      [MODELS, OFFSETS, DAYS],
    );
    const waiting = [
      ["m549", "20240109", "20240108"], // offset -1
      ["m1050", "20220823", "20240105"], // offset 500
      ["m1199", "20250327", "20240101"], // offset -451, not the only model with it
    ] as const;
    for (const [model, opTime] of waiting) {
      await database.query(
        "insert into arrivals.model_instance (model_id, op_time, state, updated_at) values ($1, $2, 'waiting', now() - interval '400 days')",
        [model, opTime],
      );
    }
    let largest = 0;
    const measured = (tx: Tx): Tx => ({
      ...tx,
      async rows(statement, sent = []) {
        const rows = await tx.rows(statement, sent);
        largest = Math.max(largest, JSON.stringify([rows, sent]).length);
        return rows;
      },
    });
    const batch = deletesArrivals(365, affectedOpTimes);
    expect(await database.db.tx((tx) => batch(measured(tx), 100))).toMatchObject({ looked: DAYS, deleted: DAYS - 3 });
    expect(await database.query("select op_time from arrivals.metrics_etl_log order by 1")).toEqual(
      waiting.map(([, , op_time]) => ({ op_time })).toSorted((one, other) => (one.op_time < other.op_time ? -1 : 1)),
    );
    expect(largest).toBeLessThan(100_000); // The 36,000 pairs of a model and an opTime have 700,000 characters.
  });

  test("old arrivals stay for as long as the doctor looks at the run that has used them", async () => {
    const process = await open();
    await define(process, "m", ["a"]);
    await process.announce(arrival("a", "1"));
    await ended("SUCCESS");
    await age("metrics_etl_log", "arrival_time", 400, "true");
    const batch = deletesArrivals(365, affectedOpTimes);
    const deleted = () => database.db.tx(async (tx) => (await batch(tx, 100)).deleted);
    expect(await deleted()).toBe(0); // As after a backfill of an old opTime.
    await age("model_instance", "updated_at", 3, "true");
    await age("metrics_task_log", "end_time", 3, "true");
    await age("metrics_task_log", "start_time", 4, "true");
    expect(await deleted()).toBe(1);
    // Another table of the same opTime is needed now: the instance changes, and what its success has used is gone.
    await define(process, "m", ["a", "b"]);
    await process.announce(arrival("b", "1"));
    expect(await state("m", "1")).toBe("waiting");
    expect(await findViolations(database.db)).toEqual([]);
  });

  test("old runs go, but not the newest success of an opTime, and all of a deleted model", async () => {
    const process = await open();
    await define(process, "m", ["a"]);
    await define(process, "gone", ["b"]);
    for (let nth = 1; nth <= 3; nth += 1) {
      await process.announce(arrival("a", "1"));
      await ended("SUCCESS", nth);
    }
    await process.announce(arrival("b", "1"));
    await ended("SUCCESS", 4);
    await process.models.remove("gone", ACTOR);
    await age("metrics_task_log", "end_time", 400, "true");
    await age("metrics_task_log", "start_time", 401, "true");
    const batch = deletesRuns(365);
    expect(await database.db.tx((tx) => batch(tx, 100))).toMatchObject({ deleted: 3 });
    expect(await database.query("select model_id, generation from arrivals.metrics_task_log")).toEqual([
      { model_id: "m", generation: 3 },
    ]);
  });
});
