/** What models do when tables arrive: again, concurrently, during a run, with other grains, and produced by other models. */
import { describe, expect, test } from "vitest";
import { useDatabase } from "../../test/database.ts";
import { startMillrace } from "../../test/millrace.ts";
import { until } from "../../test/until.ts";
import { type Gate, on, TODAY, useKpis } from "./arrivals.fixture.ts";

const database = useDatabase();
const kpis = useKpis(database);

const held = ({ from }: Gate) => ({ engine: "warehouse", sql: `select 'KD1001' as kpi_id, 1 as value ${from}` });
const instance = async (modelId: string, opTime = TODAY) =>
  (
    await database.query("select * from arrivals.model_instance where model_id = $1 and op_time = $2", [
      modelId,
      opTime,
    ])
  )[0];
const isIdle = (modelId: string) =>
  until(async () => ((await instance(modelId)) as { state: string }).state === "idle", `${modelId} to be idle`);

describe("tables that arrive at the same moment", () => {
  test("run a model once, whichever arrives last", async () => {
    const tables = Array.from({ length: 16 }, (_, index) => `T${index}`);
    await kpis.publish("M", { dependencies: on(...tables) });
    for (const opTime of ["20250101", "20250102", "20250103", "20250104", "20250105"]) {
      const answers = await Promise.all(tables.map((table) => kpis.arrive(table, opTime)));
      expect(answers.flatMap(({ triggeredModels }) => triggeredModels)).not.toEqual([]);
      expect(await kpis.tasks("M", opTime)).toMatchObject([{ status: "SUCCESS", generation: 1 }]);
    }
  });

  test("run it once when they are announced to two processes", async () => {
    await kpis.publish("M", { dependencies: on("A", "B") });
    const other = await startMillrace(database);
    try {
      for (const opTime of ["20250101", "20250102", "20250103", "20250104", "20250105"]) {
        const [here, there] = await Promise.all([
          kpis.arrive("A", opTime),
          other.api.post("/api/open/kpi/srcTableComplete", { srcTableName: "B", opTime }),
        ]);
        expect([...here.triggeredModels, ...(there.body["triggeredModels"] as unknown[])]).toHaveLength(1);
        expect(await kpis.tasks("M", opTime)).toMatchObject([{ status: "SUCCESS" }]);
      }
    } finally {
      await other.app.stop();
    }
  });
});

describe("a table that arrives again while the model runs", () => {
  test("causes one more run, however often it arrives", async () => {
    const gate = await kpis.gate();
    await kpis.publish("M", held(gate));
    await kpis.arriveAsync("T");
    const first = await kpis.reaches("M", "RUNNING");
    for (let time = 0; time < 3; time += 1) {
      expect((await kpis.arrive("T")).triggeredModels).toMatchObject([{ status: "SKIPPED", followUp: true }]);
    }
    await gate.open();
    const second = await kpis.reaches("M", "SUCCESS", 2);
    await isIdle("M");
    expect(await kpis.tasks("M")).toHaveLength(2);
    const { body } = await kpis.get<{ items: { sequence: string }[] }>("/arrivals?table=T");
    expect(second.consumed).toEqual({ [`T ${TODAY}`]: body.items[0]?.sequence });
    expect(second.consumed).not.toEqual(first.consumed);
    expect(second).toMatchObject({ trigger: "arrival", causedBy: { table: "T", opTime: TODAY } });
  });

  test("causes one more run even if the present run fails", async () => {
    const gate = await kpis.gate();
    await kpis.publish("M", { engine: "warehouse", sql: `select 'OTHER' as kpi_id, 1 as value ${gate.from}` });
    await kpis.arriveAsync("T");
    await kpis.reaches("M", "RUNNING");
    await kpis.arrive("T");
    await gate.open();
    await kpis.reaches("M", "FAILED", 2);
    await isIdle("M");
    expect(await kpis.tasks("M")).toHaveLength(2);
  });

  test("does not change the answer of requests that wait for the present run", async () => {
    const gate = await kpis.gate();
    await kpis.publish("M", held(gate));
    const first = kpis.arrive("T");
    await kpis.reaches("M", "RUNNING");
    const next = await kpis.gate();
    await kpis.define("M", held(next));
    await kpis.arrive("T");
    await gate.open();
    await kpis.reaches("M", "RUNNING", 2);
    expect((await first).triggeredModels).toMatchObject([{ status: "SUCCESS", generation: 1, computeCount: 1 }]);
  });

  test("causes no run of a model that was unpublished meanwhile", async () => {
    const gate = await kpis.gate();
    await kpis.publish("M", held(gate));
    await kpis.arriveAsync("T");
    await kpis.reaches("M", "RUNNING");
    await kpis.arrive("T");
    await kpis.post("/models/M:unpublish");
    await gate.open();
    await kpis.reaches("M", "SUCCESS");
    await isIdle("M");
    expect(await kpis.tasks("M")).toHaveLength(1);
  });
});

describe("a table that arrives again after a success", () => {
  test("runs the model again by default, for the same opTime only", async () => {
    await kpis.publish("M");
    await kpis.arrive("T", "20251218");
    await kpis.arrive("T", "20251219");
    await kpis.arrive("T", "20251218");
    expect(await kpis.tasks("M", "20251218")).toHaveLength(2);
    expect(await kpis.tasks("M", "20251219")).toHaveLength(1);
  });

  test("waits for a person with rerun: ask", async () => {
    await kpis.publish("M", { rerun: "ask" });
    expect((await kpis.arrive("T")).triggeredModels).toMatchObject([{ status: "SUCCESS" }]);
    expect(await kpis.arrive("T")).toMatchObject({ triggeredModels: [], skippedModels: ["M"] });
    expect(await instance("M")).toMatchObject({ state: "asking" });
    expect(await kpis.tasks("M")).toHaveLength(1);
    expect(await kpis.post("/models/M:run", { opTime: TODAY })).toMatchObject({ body: { status: "SUCCESS" } });
    expect(await instance("M")).toMatchObject({ state: "idle" });
    expect(await kpis.tasks("M")).toMatchObject([{ generation: 2, trigger: "run" }, { generation: 1 }]);
  });

  test("causes no run with rerun: ignore", async () => {
    await kpis.publish("M", { rerun: "ignore" });
    await kpis.arrive("T");
    expect(await kpis.arrive("T")).toMatchObject({ triggeredModels: [], skippedModels: ["M"] });
    expect(await instance("M")).toMatchObject({ state: "idle" });
    expect(await kpis.tasks("M")).toHaveLength(1);
  });

  test.each(["ask", "ignore"])("announces no follow-up when it arrives during a run, with rerun: %s", async (rerun) => {
    const gate = await kpis.gate();
    await kpis.publish("M", { ...held(gate), rerun });
    await kpis.arriveAsync("T");
    await kpis.reaches("M", "RUNNING");
    const { triggeredModels } = await kpis.arrive("T");
    await gate.open();
    await kpis.reaches("M", "SUCCESS");
    expect(triggeredModels).toMatchObject([{ status: "SKIPPED", followUp: false }]);
    expect(await kpis.tasks("M")).toHaveLength(1);
  });

  test.each(["ask", "ignore"])("runs the model if there was no success yet, with rerun: %s", async (rerun) => {
    await kpis.publish("M", { rerun, sql: "select * from nowhere" });
    await kpis.arrive("T");
    expect((await kpis.arrive("T")).triggeredModels).toMatchObject([{ status: "FAILED", generation: 2 }]);
  });
});

describe("grains", () => {
  test("a day runs once all of its 24 hours have arrived", async () => {
    await kpis.publish("M", { grain: "day", dependencies: [{ table: "T", grain: "hour" }] });
    const hours = Array.from({ length: 24 }, (_, hour) => `${TODAY}${String(hour).padStart(2, "0")}`);
    for (const hour of hours.slice(1)) expect((await kpis.arrive("T", hour)).waitingModels).toEqual(["M"]);
    expect((await kpis.arrive("T", `${TODAY}00`)).triggeredModels).toMatchObject([
      { modelId: "M", opTime: TODAY, status: "SUCCESS" },
    ]);
    const [task] = await kpis.tasks("M");
    expect(Object.keys(task?.consumed ?? {})).toEqual(hours.map((hour) => `T ${hour}`));
    expect(task?.causedBy).toEqual({ table: "T", opTime: `${TODAY}00` });
  });

  test("an hour that arrives again runs its day again", async () => {
    await kpis.publish("M", { grain: "month", dependencies: [{ table: "T", grain: "day" }] });
    for (let day = 1; day <= 28; day += 1) await kpis.arrive("T", `202502${String(day).padStart(2, "0")}`);
    expect((await kpis.arrive("T", "20250213")).triggeredModels).toMatchObject([{ opTime: "202502", generation: 2 }]);
  });

  test("offset -1 needs the day before", async () => {
    await kpis.publish("M", { grain: "day", dependencies: [{ table: "T" }, { table: "T", offset: -1 }] });
    expect(await kpis.arrive("T", "20250228")).toMatchObject({ triggeredModels: [], waitingModels: ["M"] });
    expect(await kpis.arrive("T", "20250301")).toMatchObject({
      triggeredModels: [{ modelId: "M", opTime: "20250301", status: "SUCCESS" }],
      waitingModels: ["M"],
    });
    expect(await kpis.arrive("T", "20250228")).toMatchObject({
      triggeredModels: [{ modelId: "M", opTime: "20250301", generation: 2 }],
      waitingModels: ["M"],
    });
  });

  test("an opTime of another grain is recorded and affects no opTime of the model", async () => {
    await kpis.publish("M", { grain: "day" });
    expect(await kpis.arrive("T", "2025-12-19")).toEqual({
      status: "SUCCESS",
      message: "The arrival is recorded, but no model that depends on this table has an opTime of this form.",
      hint: "`T` arrives for days (yyyyMMdd), which `2025-12-19` is not (did you mean `20251219`?).",
      triggeredModels: [],
      waitingModels: [],
      skippedModels: [],
    });
    expect(await kpis.arrive("T", "20250230")).toMatchObject({ status: "SUCCESS", triggeredModels: [] });
    expect(await database.query("select from arrivals.model_instance")).toEqual([]);
  });
});

describe("a model that produces a table", () => {
  test("announces it when it succeeds, which runs the models that depend on it", async () => {
    await kpis.publish("RAW", { dependencies: on("T"), produces: "CLEAN" });
    await kpis.publish("SUM", {
      dependencies: on("CLEAN"),
      kpis: ["KD2"],
      produces: "TOTAL",
      sql: "select 'KD2' as kpi_id, 1 as value",
    });
    await kpis.publish("END", {
      dependencies: on("TOTAL", "T"),
      kpis: ["KD3"],
      sql: "select 'KD3' as kpi_id, 1 as value",
    });
    await kpis.arrive("T");
    await kpis.reaches("END", "SUCCESS");
    expect(await kpis.tasks("SUM")).toMatchObject([
      { causedBy: { table: "CLEAN", opTime: TODAY }, trigger: "arrival" },
    ]);
    await kpis.arrive("T");
    await kpis.reaches("SUM", "SUCCESS", 2);
    const { body } = await kpis.get("/arrivals?table=CLEAN");
    expect(body["items"]).toMatchObject([{ table: "CLEAN", opTime: TODAY, arrivals: 2 }]);
  });

  test("announces nothing when it fails", async () => {
    await kpis.publish("RAW", { sql: "select * from nowhere", produces: "CLEAN" });
    await kpis.publish("SUM", { dependencies: on("CLEAN"), kpis: ["KD2"] });
    await kpis.arrive("T");
    expect((await kpis.get("/arrivals?table=CLEAN")).body["total"]).toBe(0);
    expect(await instance("SUM")).toBeUndefined();
  });

  test("may use its own table of the day before", async () => {
    await kpis.publish("M", {
      grain: "day",
      dependencies: [{ table: "T" }, { table: "SUM", offset: -1 }],
      produces: "SUM",
    });
    await kpis.arrive("SUM", "20251217");
    await kpis.arrive("T", "20251218");
    expect(await kpis.arrive("T", "20251219")).toMatchObject({ triggeredModels: [{ status: "SUCCESS" }] });
    expect((await kpis.why("M", "20251220")).verdict).toBe("Waiting for a table: T 20251220.");
  });
});

describe("the names of tables", () => {
  test("are compared as given", async () => {
    await kpis.publish("M", { dependencies: on("Orders") });
    expect(await kpis.arrive("ORDERS")).toMatchObject({ status: "IGNORED" });
    expect(await kpis.arrive("Orders")).toMatchObject({ status: "SUCCESS" });
  });

  test("may contain any printable character", async () => {
    const table = '数据.订单 "d\'1" %_\\ 😀';
    await kpis.publish("M", { dependencies: on(table) });
    expect((await kpis.arrive(table)).triggeredModels).toMatchObject([{ status: "SUCCESS" }]);
    expect((await kpis.why("M")).tables).toMatchObject([{ table, missing: false }]);
  });

  test("are compared without case where the settings say so", async () => {
    const loose = await startMillrace(database, { arrivals: { tableCase: "ignore" } });
    try {
      const put = await loose.api.put("/api/v1/kpi/models/LOOSE", {
        name: "loose",
        sql: "select 1",
        dependencies: on("orders"),
        kpis: [],
        produces: "totals",
      });
      expect(put.body).toMatchObject({ dependencies: [{ table: "ORDERS" }], produces: "TOTALS" });
      await loose.api.post("/api/v1/kpi/models/LOOSE:publish");
      const arrived = await loose.api.send("/api/open/kpi/srcTableComplete", {
        method: "POST",
        headers: { "content-type": "application/json", prefer: "respond-async" },
        body: JSON.stringify({ srcTableName: "Orders", opTime: TODAY }),
      });
      expect(arrived.body).toMatchObject({ triggeredModels: [{ modelId: "LOOSE", status: "RUNNING" }] });
      const twice = { name: "twice", sql: "select 1", kpis: [], dependencies: on("orders", "ORDERS") };
      expect(await loose.api.put("/api/v1/kpi/models/TWICE", twice)).toMatchObject({
        status: 400,
        body: { error: expect.stringContaining("the same table with the same offset is listed twice") },
      });
      // In upper case this name would be longer than the column.
      const request = { srcTableName: "ß".repeat(255), opTime: TODAY };
      expect(await loose.api.post("/api/open/kpi/srcTableComplete", request)).toMatchObject({ status: 200 });
    } finally {
      await loose.app.stop();
    }
  });
});

describe("opTimes", () => {
  test.each(["x", "2025-12-19T10:00:00", "a_b.c:d-e", "0".repeat(255)])("may be any name: %s", async (opTime) => {
    await kpis.publish("M");
    expect((await kpis.arrive("T", opTime)).triggeredModels).toMatchObject([{ opTime, status: "SUCCESS" }]);
  });

  test("must match the pattern of the settings", async () => {
    const strict = await startMillrace(database, { arrivals: { opTimePattern: "^\\d{8}$" } });
    try {
      const arrive = (opTime: string) =>
        strict.api.post("/api/open/kpi/srcTableComplete", { srcTableName: "T", opTime });
      expect(await arrive("20251219")).toMatchObject({ status: 200 });
      expect(await arrive("2025-12-19")).toMatchObject({ status: 400, body: { code: "VALIDATION_FAILED" } });
    } finally {
      await strict.app.stop();
    }
  });
});

test("the repeat of a request answers the present states of the models, including one published in between", async () => {
  await kpis.publish("WAITS", { dependencies: on("T", "B") });
  const key = { "idempotency-key": "1" };
  const first = await kpis.arrive("T", TODAY, key);
  expect(await kpis.arrive("T", TODAY, key)).toEqual(first);
  await kpis.publish("LATER", { kpis: ["KD2"] });
  expect(await kpis.arrive("T", TODAY, key)).toMatchObject({ status: "SUCCESS", triggeredModels: [] });
  await kpis.api.delete("/api/v1/kpi/models/WAITS");
  expect(await kpis.arrive("T", TODAY, key)).toMatchObject({ status: "SUCCESS", triggeredModels: [] });
  expect(await kpis.tasks("LATER")).toEqual([]);
});

test("an arrival is recorded even if a model that depends on the table is deleted at the same time", async () => {
  await kpis.publish("GONE");
  await kpis.publish("STAYS", { kpis: ["KD2"], sql: "select 'KD2' as kpi_id, 1 as value" });
  const client = await database.db.dedicated("delete");
  try {
    await client.query("begin");
    await client.query("delete from arrivals.metrics_model where model_id = 'GONE'");
    const answer = kpis.arrive("T");
    await kpis.untilBlocked(1, "transactionid", "model_instance");
    await client.query("commit");
    expect((await answer).triggeredModels).toMatchObject([{ modelId: "STAYS", status: "SUCCESS" }]);
  } finally {
    await client.end();
  }
});
