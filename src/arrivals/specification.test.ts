/** Every example and table row of the specification of `srcTableComplete`, with its own names, against a whole Millrace. */
import { describe, expect, test } from "vitest";
import type { Json } from "../../test/client.ts";
import { useDatabase } from "../../test/database.ts";
import { startMillrace } from "../../test/millrace.ts";
import { on, TODAY, useKpis } from "./arrivals.fixture.ts";

const database = useDatabase();
const kpis = useKpis(database);
const ORDERS = "DW_FACT_ORDER_D";
const CUSTOMERS = "DW_DIM_CUSTOMER_D";
/** Less than the time that an announcement waits. */
const AT_ONCE = { timeout: 20_000 };
/** As many rows as in the example, distinguished by a dimension. */
const THOUSAND = "select 'KD1001' as kpi_id, i as value, i as customer from range(1000) as r(i)";

const etlLog = (table = ORDERS) =>
  database.query<{ id: string; arrival_time: Date; first_time: Date; arrivals: number }>(
    "select * from arrivals.metrics_etl_log where table_name = $1 and op_time = $2",
    [table, TODAY],
  );

describe("1.2 and 1.3: the request and its answer", () => {
  test("the example: one model runs, one waits, one is skipped", async () => {
    await kpis.publish("MODEL-01", { sql: THOUSAND, dependencies: on(ORDERS) });
    await kpis.publish("MODEL-02", { dependencies: on(ORDERS, CUSTOMERS), kpis: ["KD1002"] });
    await kpis.define("MODEL-03", { dependencies: on(ORDERS), kpis: ["KD1003"] });
    const answer = await kpis.api.post("/api/open/kpi/srcTableComplete", { srcTableName: ORDERS, opTime: TODAY });
    expect(answer.status).toBe(200);
    expect(answer.body).toEqual({
      status: "SUCCESS",
      triggeredModels: [
        {
          modelId: "MODEL-01",
          opTime: "20251219",
          status: "SUCCESS",
          computeCount: 1000,
          storageCount: 1000,
          generation: 1,
        },
      ],
      waitingModels: ["MODEL-02"],
      skippedModels: ["MODEL-03"],
    });
  });

  test.each([{ srcTableName: ORDERS }, { opTime: TODAY }, {}])("both parameters are required: %j", async (body) => {
    expect(await kpis.api.post("/api/open/kpi/srcTableComplete", body)).toMatchObject({
      status: 400,
      body: { error: expect.stringContaining("lacks the field"), code: "VALIDATION_FAILED" },
    });
    expect(await database.query("select from arrivals.metrics_etl_log")).toEqual([]);
  });
});

describe("2: the tables have the specification's columns", () => {
  test.each([
    ["metrics_model_dependency", ["id", "model_id", "dependency_table_name"]],
    ["metrics_etl_log", ["id", "table_name", "op_time", "arrival_time"]],
    [
      "metrics_task_log",
      ["id", "model_id", "op_time", "status", "start_time", "end_time", "message", "compute_count", "storage_count"],
    ],
  ])("%s", async (table, columns) => {
    const found = await database.query<{ name: string }>(
      "select column_name as name from information_schema.columns where table_schema = 'arrivals' and table_name = $1",
      [table],
    );
    expect(found.map(({ name }) => name)).toEqual(expect.arrayContaining(columns));
  });

  test("a table and an opTime have one row in metrics_etl_log", async () => {
    const insert = "insert into arrivals.metrics_etl_log (table_name, op_time) values ($1, $2)";
    await database.query(insert, [ORDERS, TODAY]);
    await expect(database.query(insert, [ORDERS, TODAY])).rejects.toThrow("duplicate key");
  });
});

describe("3: the rules", () => {
  test("3.2: the first arrival inserts a row, the next updates its arrival_time", async () => {
    await kpis.arrive(ORDERS);
    const [first] = await etlLog();
    await kpis.arrive(ORDERS);
    const rows = await etlLog();
    expect(rows).toMatchObject([{ id: first?.id, first_time: first?.first_time, arrivals: 2 }]);
    expect(rows[0]?.arrival_time.getTime()).toBeGreaterThan(first?.arrival_time.getTime() ?? Number.NaN);
  });

  test("3.3: a model that depends on several tables runs once the last of them has arrived, in any order", async () => {
    await kpis.publish("MODEL-01", { dependencies: on(ORDERS, CUSTOMERS, "DW_DIM_SHOP_D") });
    const waiting = { status: "SUCCESS", triggeredModels: [], waitingModels: ["MODEL-01"], skippedModels: [] };
    expect(await kpis.arrive("DW_DIM_SHOP_D")).toEqual(waiting);
    expect(await kpis.arrive(ORDERS)).toEqual(waiting);
    expect(await kpis.arrive("DW_DIM_SHOP_D")).toEqual(waiting);
    expect((await kpis.arrive(CUSTOMERS)).triggeredModels).toMatchObject([{ modelId: "MODEL-01", status: "SUCCESS" }]);
    expect(await kpis.tasks("MODEL-01")).toHaveLength(1);
  });

  test("3.3: tables of another opTime do not count", async () => {
    await kpis.publish("MODEL-01", { dependencies: on(ORDERS, CUSTOMERS) });
    await kpis.arrive(ORDERS, "20251218");
    expect((await kpis.arrive(CUSTOMERS, "20251219")).waitingModels).toEqual(["MODEL-01"]);
  });

  test("3.4: a model that never ran runs; a table that arrives again after a success runs it again", async () => {
    await kpis.publish("MODEL-01", { dependencies: on(ORDERS, CUSTOMERS) });
    await kpis.arrive(ORDERS);
    const first = await kpis.arrive(CUSTOMERS);
    const again = await kpis.arrive(ORDERS);
    expect([first, again].map(({ triggeredModels: [run] }) => [run?.status, run?.generation])).toEqual([
      ["SUCCESS", 1],
      ["SUCCESS", 2],
    ]);
    expect((await kpis.events("kpi.updated")).map(({ rerun, causedBy }) => [rerun, causedBy])).toEqual([
      [false, { table: CUSTOMERS, opTime: TODAY }],
      [true, { table: ORDERS, opTime: TODAY }],
    ]);
  });

  test("3.5: the log says RUNNING during a run, and SUCCESS or FAILED after it", async () => {
    const gate = await kpis.gate();
    await kpis.publish("MODEL-01", { engine: "warehouse", sql: `select 'KD1001' as kpi_id, 1 as value ${gate.from}` });
    await kpis.arriveAsync("T");
    expect(await kpis.reaches("MODEL-01", "RUNNING")).toMatchObject({ endTime: null, computeCount: null });
    await gate.open();
    expect(await kpis.reaches("MODEL-01", "SUCCESS")).toMatchObject({
      computeCount: 1,
      storageCount: 1,
      message: null,
    });
  });
});

describe("4.1: the events after a success", () => {
  test("the model's indicators and those computed from them, directly or not", async () => {
    const sql = "select unnest(['KD1001', 'KD1002']) as kpi_id, 2 as value";
    await kpis.publish("MODEL-01", { sql, dependencies: on(ORDERS), kpis: ["KD1001", "KD1002"] });
    await kpis.compute("KC2001", "KD1001 + KD1002");
    await kpis.compute("KC3001", "KC2001 * 10");
    await kpis.compute("KC9001", "KD9001 * 10");
    await kpis.arrive(ORDERS);
    expect(await kpis.events("kpi.updated")).toEqual([
      {
        modelId: "MODEL-01",
        opTime: TODAY,
        affectedKpiIds: ["KD1001", "KD1002", "KC2001", "KC3001"],
        generation: 1,
        rerun: false,
        causedBy: { table: ORDERS, opTime: TODAY },
        at: expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/),
      },
    ]);
  });

  test("only the failure after a failure", async () => {
    await kpis.publish("MODEL-01", { sql: "select * from nowhere" });
    await kpis.arrive("T");
    expect(await kpis.events("kpi.updated")).toEqual([]);
    expect(await kpis.events("model.failed")).toMatchObject([
      { modelId: "MODEL-01", opTime: TODAY, generation: 1, message: expect.stringContaining("nowhere") },
    ]);
  });
});

describe("6: the states of a model", () => {
  test("0, new: arrivals do not run it; 1, published: they do", async () => {
    expect(await kpis.define("MODEL-01")).toMatchObject({ state: 0 });
    expect(await kpis.arrive("T")).toMatchObject({ triggeredModels: [], skippedModels: ["MODEL-01"] });
    expect(await kpis.post("/models/MODEL-01:publish")).toMatchObject({ status: 200, body: { state: 1 } });
    expect((await kpis.arrive("T")).triggeredModels).toMatchObject([{ status: "SUCCESS" }]);
    expect(await kpis.post("/models/MODEL-01:unpublish")).toMatchObject({ status: 200, body: { state: 0 } });
    expect(await kpis.arrive("T")).toMatchObject({ triggeredModels: [], skippedModels: ["MODEL-01"] });
    expect(await kpis.tasks("MODEL-01")).toHaveLength(1);
  });
});

describe("7: the table of errors, row by row", () => {
  test("no model depends on the table", async () => {
    expect(await kpis.arrive(ORDERS)).toEqual({
      status: "IGNORED",
      message: "无模型依赖此表",
      triggeredModels: [],
      waitingModels: [],
      skippedModels: [],
    });
    expect(await etlLog()).toHaveLength(1);
  });

  test("dependencies are not all met: the model is among waitingModels", async () => {
    await kpis.publish("MODEL-02", { dependencies: on(ORDERS, CUSTOMERS) });
    expect(await kpis.arrive(ORDERS)).toMatchObject({ status: "SUCCESS", waitingModels: ["MODEL-02"] });
  });

  test("the model is not published: it is among skippedModels", async () => {
    await kpis.define("MODEL-03", { dependencies: on(ORDERS) });
    expect(await kpis.arrive(ORDERS)).toMatchObject({ status: "SUCCESS", skippedModels: ["MODEL-03"] });
  });

  test("it is being executed: SKIPPED, and it runs once more afterwards", async () => {
    const gate = await kpis.gate();
    await kpis.publish("MODEL-01", { engine: "warehouse", sql: `select 'KD1001' as kpi_id, 1 as value ${gate.from}` });
    await kpis.arriveAsync("T");
    await kpis.reaches("MODEL-01", "RUNNING");
    expect((await kpis.arrive("T")).triggeredModels).toEqual([
      { modelId: "MODEL-01", opTime: TODAY, status: "SKIPPED", message: "任务正在执行中", followUp: true },
    ]);
    await gate.open();
    await kpis.reaches("MODEL-01", "SUCCESS", 2);
  });

  test("the execution fails: FAILED with its message, and the arrival is recorded", async () => {
    await kpis.publish("MODEL-01", { sql: "select 'KD1001' as kpi_id, error('the warehouse is on fire') as value" });
    const answer = await kpis.arrive("T");
    expect(answer).toMatchObject({ status: "SUCCESS", waitingModels: [], skippedModels: [] });
    expect(answer.triggeredModels).toEqual([
      {
        modelId: "MODEL-01",
        opTime: TODAY,
        status: "FAILED",
        message: expect.stringContaining("the warehouse is on fire"),
        generation: 1,
      },
    ]);
    expect(await kpis.reaches("MODEL-01", "FAILED")).toMatchObject({ computeCount: null, endTime: expect.any(String) });
  });

  test("a failed run is repeated when a table arrives again", async () => {
    await database.query("create table if not exists public.stock (kpi_id text, value float8)");
    await database.query("insert into public.stock values ('KD1001', 5)");
    await kpis.publish("MODEL-01", { engine: "warehouse", sql: "select kpi_id, value / 0 as value from stock" });
    expect((await kpis.arrive("T")).triggeredModels).toMatchObject([
      { status: "FAILED", message: expect.stringContaining("division by zero") },
    ]);
    await kpis.define("MODEL-01", { engine: "warehouse", sql: "select kpi_id, value from stock" });
    expect((await kpis.arrive("T")).triggeredModels).toMatchObject([{ status: "SUCCESS", generation: 2 }]);
    expect(await kpis.values()).toEqual(["KD1001=5"]);
  });
});

describe("beyond the specification: waiting, and repeated requests", () => {
  const slow = (from: string): Json => ({
    engine: "warehouse",
    sql: `select 'KD1001' as kpi_id, 1 as value ${from}`,
  });

  test("Prefer: respond-async answers RUNNING at once", AT_ONCE, async () => {
    const gate = await kpis.gate();
    await kpis.publish("MODEL-01", slow(gate.from));
    const answer = await kpis.arrive("T", TODAY, { prefer: "handling=lenient, Respond-Async" });
    expect(answer.triggeredModels).toEqual([{ modelId: "MODEL-01", opTime: TODAY, status: "RUNNING", generation: 1 }]);
  });

  test("without it the answer comes when the run has ended", async () => {
    const gate = await kpis.gate();
    await kpis.publish("MODEL-01", slow(gate.from));
    let answered = false;
    const answer = kpis.arrive("T").finally(() => {
      answered = true;
    });
    await kpis.reaches("MODEL-01", "RUNNING");
    expect(answered).toBe(false);
    await gate.open();
    expect((await answer).triggeredModels).toMatchObject([{ status: "SUCCESS", computeCount: 1 }]);
  });

  test("a run that takes longer than the wait limit is answered with RUNNING, and continues", async () => {
    const gate = await kpis.gate();
    await kpis.publish("MODEL-01", slow(gate.from));
    const shortWait = await startMillrace(database, { arrivals: { waitSeconds: 1 } });
    try {
      const request = { srcTableName: "T", opTime: TODAY };
      const { body } = await shortWait.api.post("/api/open/kpi/srcTableComplete", request);
      const run = { modelId: "MODEL-01", opTime: TODAY };
      expect(body["triggeredModels"]).toEqual([{ ...run, status: "RUNNING", generation: 1 }]);
    } finally {
      await shortWait.app.stop();
    }
    await gate.open();
    await kpis.reaches("MODEL-01", "SUCCESS");
  });

  test("a repeat with the same Idempotency-Key is the same arrival, and answers how its run ended", async () => {
    await kpis.publish("MODEL-01");
    const key = { "idempotency-key": "load-4711" };
    const first = await kpis.arrive("T", TODAY, key);
    expect(first.triggeredModels).toMatchObject([{ status: "SUCCESS", generation: 1, computeCount: 1 }]);
    const logged = await etlLog("T");
    expect(await kpis.arrive("T", TODAY, key)).toEqual(first);
    expect(await etlLog("T")).toEqual(logged);
    expect(await kpis.tasks("MODEL-01")).toHaveLength(1);
    expect((await kpis.arrive("T", TODAY, { "idempotency-key": "load-4712" })).triggeredModels).toMatchObject([
      { status: "SUCCESS", generation: 2 },
    ]);
  });

  test("a repeat during the run waits for that run and starts no other", async () => {
    const gate = await kpis.gate();
    await kpis.publish("MODEL-01", slow(gate.from));
    const key = { "idempotency-key": "load-4711" };
    await kpis.arrive("T", TODAY, { ...key, prefer: "respond-async" });
    await kpis.reaches("MODEL-01", "RUNNING");
    const repeats = [kpis.arrive("T", TODAY, key), kpis.arrive("T", TODAY, key)];
    await gate.open();
    for (const { triggeredModels } of await Promise.all(repeats)) {
      expect(triggeredModels).toMatchObject([{ status: "SUCCESS", generation: 1 }]);
    }
    expect(await kpis.tasks("MODEL-01")).toHaveLength(1);
  });
});
