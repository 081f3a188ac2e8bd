/** Timers: quiet periods end and deadlines pass. The tests set times back instead of waiting. */
import { afterEach, describe, expect, test } from "vitest";
import { useDatabase } from "../../../test/database.ts";
import { until } from "../../../test/until.ts";
import { movedOpTime } from "../../kernel/time/op-time.ts";
import { on, TODAY, useKpis } from "../arrivals.fixture.ts";
import { deadlineOf, nextDeadline } from "../models/deadline.ts";

const database = useDatabase();
const kpis = useKpis(database);

const instance = async () =>
  (await database.query<{ state: string; due_at: Date | null }>("select * from arrivals.model_instance"))[0];
const timers = () =>
  database.query<{ op_time: string; due_at: Date }>(
    "select op_time, due_at from arrivals.model_deadline order by 1, 2",
  );

describe("a quiet period", () => {
  const quiet = { dependencies: [{ table: "T", quietSeconds: 3_600 }] };

  test("ends with a run", async () => {
    await kpis.publish("M", { dependencies: [{ table: "T", quietSeconds: 1 }] });
    expect(await kpis.arrive("T")).toMatchObject({ triggeredModels: [], waitingModels: ["M"] });
    const task = await kpis.reaches("M", "SUCCESS");
    expect(task).toMatchObject({ trigger: "arrival", causedBy: { table: "T", opTime: TODAY } });
    const [{ arrival_time } = { arrival_time: new Date() }] = await database.query<{ arrival_time: Date }>(
      "select arrival_time from arrivals.metrics_etl_log",
    );
    expect(Date.parse(String(task["startTime"])) - arrival_time.getTime()).toBeGreaterThanOrEqual(1_000);
  });

  test("starts again when the table arrives again, and both lead to one run", async () => {
    await kpis.publish("M", quiet);
    await kpis.arrive("T");
    const before = await instance();
    await kpis.arrive("T");
    const after = await instance();
    expect(after?.due_at?.getTime()).toBeGreaterThan(before?.due_at?.getTime() ?? Number.NaN);
    await database.query("update arrivals.metrics_etl_log set arrival_time = arrival_time - interval '1 hour'");
    await database.query("update arrivals.model_instance set due_at = due_at - interval '1 hour'");
    await kpis.wakeTimers();
    await kpis.reaches("M", "SUCCESS");
    expect(await kpis.tasks("M")).toHaveLength(1);
  });

  test("continues when its timer is due too early", async () => {
    await kpis.publish("M", quiet);
    await kpis.arrive("T");
    const due = (await instance())?.due_at;
    await database.query("update arrivals.model_instance set due_at = now()");
    await kpis.wakeTimers();
    await until(async () => (await instance())?.due_at?.getTime() === due?.getTime(), "the timer to be set right");
    expect(await kpis.tasks("M")).toEqual([]);
  });

  test("applies to a rerun too", async () => {
    await kpis.publish("M");
    await kpis.arrive("T");
    await kpis.define("M", quiet);
    expect((await kpis.arrive("T")).waitingModels).toEqual(["M"]);
    expect(await instance()).toMatchObject({ state: "quiet", generation: 1 });
  });
});

/** Twelve hours from now, so that no deadline passes by itself while the tests run. */
const DEADLINE = `PT${(new Date().getUTCHours() + 12) % 24}H`;
const SPEC = { grain: "day", timeZone: "UTC", deadline: DEADLINE } as const;
const next = nextDeadline(SPEC, Date.now()).opTime;
const daysBefore = (days: number) => movedOpTime(next, "day", -days) as string;
const LAST = daysBefore(1);

/** Sets the timers back by `days` days. */
async function setBack(days: number): Promise<void> {
  const opTime = daysBefore(days);
  const due = new Date(deadlineOf(SPEC, opTime) as number);
  await database.query("update arrivals.model_deadline set op_time = $1, due_at = $2", [opTime, due]);
  await kpis.wakeTimers();
}
/** `TABLE opTime` of the emitted deadline events. */
const lateTables = async () =>
  (await kpis.events("deadline.passed")).map(({ table, opTime }) => `${String(table)} ${String(opTime)}`).sort();
/** Waits until every due timer was handled. */
const caughtUp = () =>
  until(async () => (await timers()).every(({ op_time }) => op_time === next), "the timers to catch up");

describe("the deadline of a table", () => {
  const late = (table: string) => ({ table, deadline: DEADLINE });

  test("is set to the next one when the model is published, and removed when it is unpublished", async () => {
    await kpis.define("M", { grain: "day", dependencies: [late("A"), { table: "B" }] });
    expect(await timers()).toEqual([]);
    await kpis.post("/models/M:publish");
    expect(await timers()).toEqual([{ op_time: next, due_at: new Date(deadlineOf(SPEC, next) as number) }]);
    await kpis.post("/models/M:unpublish");
    expect(await timers()).toEqual([]);
  });

  test("is set again when a published model is changed, in its time zone", async () => {
    await kpis.publish("M", { grain: "day", dependencies: [late("A")] });
    await kpis.define("M", { grain: "hour", timeZone: "Asia/Kolkata", dependencies: [late("A"), late("B")] });
    const spec = { grain: "hour", timeZone: "Asia/Kolkata", deadline: DEADLINE } as const;
    for (const { op_time, due_at } of await timers()) {
      expect(deadlineOf(spec, op_time)).toBe(due_at.getTime());
      expect(due_at.getTime()).toBeGreaterThan(Date.now());
    }
    expect(await timers()).toHaveLength(2);
  });

  test("that passes without it emits one event and sets the next; the model keeps waiting", async () => {
    await kpis.publish("M", { grain: "day", dependencies: [late("A"), { table: "B" }] });
    await kpis.arrive("B", LAST);
    await setBack(1);
    await caughtUp();
    await kpis.wakeTimers();
    expect(await kpis.events("deadline.passed")).toEqual([
      {
        modelId: "M",
        opTime: LAST,
        table: "A",
        deadline: new Date(deadlineOf(SPEC, LAST) as number).toISOString(),
        at: expect.any(String),
      },
    ]);
    expect(await instance()).toMatchObject({ state: "waiting" });
    expect((await kpis.arrive("A", LAST)).triggeredModels).toMatchObject([{ opTime: LAST, status: "SUCCESS" }]);
  });

  test("that passes after it has arrived emits nothing", async () => {
    await kpis.publish("M", { grain: "day", dependencies: [late("A")] });
    await kpis.arrive("A", LAST);
    await setBack(1);
    await caughtUp();
    expect(await kpis.events("deadline.passed")).toEqual([]);
  });

  test("emits an event for each day that passed while no timer ran, and for each table", async () => {
    await kpis.publish("M", { grain: "day", dependencies: [late("A"), late("B")] });
    await kpis.arrive("A", daysBefore(2));
    await setBack(3);
    await caughtUp();
    expect(await lateTables()).toEqual(
      [`A ${daysBefore(3)}`, `A ${LAST}`, `B ${daysBefore(3)}`, `B ${daysBefore(2)}`, `B ${LAST}`].sort(),
    );
  });

  test("emits events for more tables than fit in one batch", async () => {
    const tables = Array.from({ length: 450 }, (_, index) => `T${index}`);
    await kpis.publish("M", { grain: "day", dependencies: tables.map(late) });
    await setBack(1);
    await caughtUp();
    expect(await lateTables()).toEqual(tables.map((table) => `${table} ${LAST}`).sort());
  });

  test("passes for a day of which one hour is missing", async () => {
    await kpis.publish("M", { grain: "day", dependencies: [{ ...late("A"), grain: "hour" }] });
    for (let hour = 1; hour < 24; hour += 1) await kpis.arrive("A", `${LAST}${String(hour).padStart(2, "0")}`);
    await setBack(1);
    await caughtUp();
    expect(await kpis.events("deadline.passed")).toMatchObject([{ table: "A", opTime: LAST }]);
  });
});

describe("an optional table", () => {
  test("without a deadline is not waited for, and used if it has arrived", async () => {
    await kpis.publish("M", { dependencies: [{ table: "A" }, { table: "B", optional: true }] });
    await kpis.arrive("B", "1");
    await kpis.arrive("A", "1");
    await kpis.arrive("A", "2");
    const used = async (opTime: string) => Object.keys((await kpis.tasks("M", opTime))[0]?.consumed ?? {}).sort();
    expect(await used("1")).toEqual(["A 1", "B 1"]);
    expect(await used("2")).toEqual(["A 2"]);
  });

  const waiting = { grain: "day", dependencies: [{ table: "A" }, { table: "B", optional: true, deadline: "P2D" }] };
  /** The same table is now late. */
  const passed = { grain: "day", dependencies: [{ table: "A" }, { table: "B", optional: true, deadline: DEADLINE }] };

  test("with a deadline is waited for until then", async () => {
    await kpis.publish("M", waiting);
    expect((await kpis.arrive("A", LAST)).waitingModels).toEqual(["M"]);
    expect((await kpis.why("M", LAST)).verdict).toBe(`Waiting for a table: B ${LAST}.`);
    expect((await kpis.arrive("B", LAST)).triggeredModels).toMatchObject([{ status: "SUCCESS" }]);
  });

  test("is left out once its deadline has passed, without an event", async () => {
    await kpis.publish("M", waiting);
    await kpis.arrive("A", LAST);
    // Not by an edit, which would judge it at once.
    await database.query(
      "update arrivals.metrics_model_dependency set deadline = $1 where dependency_table_name = 'B'",
      [DEADLINE],
    );
    await setBack(1);
    const task = await until(
      async () => (await kpis.tasks("M", LAST)).find(({ status }) => status === "SUCCESS"),
      "the run",
    );
    expect(task).toMatchObject({ trigger: "deadline", causedBy: null });
    expect(Object.keys(task.consumed)).toEqual([`A ${LAST}`]);
    expect(await kpis.events("deadline.passed")).toEqual([]);
  });

  test("does not end the wait for a required table", async () => {
    await kpis.publish("M", passed);
    await setBack(1);
    await caughtUp();
    await until(async () => (await instance())?.state === "waiting", "the model to wait for the other table");
    expect(await kpis.tasks("M", LAST)).toEqual([]);
  });

  test("that arrives after its deadline runs the model again", async () => {
    await kpis.publish("M", passed);
    expect((await kpis.arrive("A", LAST)).triggeredModels).toMatchObject([{ status: "SUCCESS" }]);
    expect((await kpis.arrive("B", LAST)).triggeredModels).toMatchObject([{ status: "SUCCESS", generation: 2 }]);
  });

  describe("whose deadline passes while the database fails", () => {
    afterEach(async () => {
      await database.query("drop trigger failure on arrivals.model_instance");
    });

    test("is left out as soon as the database works again", async () => {
      await kpis.publish("M", waiting);
      await kpis.arrive("A", LAST);
      await kpis.define("M", passed);
      // A sequence is not rolled back with the transaction.
      await database.query("create sequence public.failure");
      await database.query(`create function public.fail_once() returns trigger language plpgsql as $$
        begin
          if nextval('public.failure') = 1 then raise exception 'failure'; end if;
          return new;
        end $$`);
      await database.query(`create trigger failure before update on arrivals.model_instance
        for each row execute function public.fail_once()`);
      await setBack(1);
      await until(async () => {
        const [{ is_called } = { is_called: false }] = await database.query<{ is_called: boolean }>(
          "select is_called from public.failure",
        );
        return is_called;
      }, "the statement to fail");
      await until(async () => (await kpis.tasks("M", LAST))[0]?.status === "SUCCESS", "the run");
    });
  });
});

test("the timers of a model are deleted with it", async () => {
  await kpis.publish("M", { grain: "day", dependencies: [{ table: "A", deadline: DEADLINE }] });
  await kpis.publish("OTHER", {
    grain: "day",
    kpis: [],
    dependencies: [...on("A"), { table: "B", deadline: DEADLINE }],
  });
  await kpis.api.delete("/api/v1/kpi/models/M");
  await setBack(1);
  await caughtUp();
  expect(await kpis.events("deadline.passed")).toMatchObject([{ modelId: "OTHER", table: "B" }]);
});
