/** The definitions of models: what is stored, what is refused and why, and what publishing and deleting do. */
import { describe, expect, test } from "vitest";
import type { Json } from "../../../test/client.ts";
import { useDatabase } from "../../../test/database.ts";
import { until } from "../../../test/until.ts";
import { modelBody, on, TODAY, useKpis } from "../arrivals.fixture.ts";

const database = useDatabase();
const kpis = useKpis(database);

const model = (modelId: string) => kpis.get(`/models/${modelId}`);
const remove = (modelId: string) => kpis.api.delete(`/api/v1/kpi/models/${modelId}`);
const ids = async (query = "") => {
  const { body } = await kpis.get<{ items: { modelId: string }[] }>(`/models${query}`);
  return body.items.map(({ modelId }) => modelId);
};
const states = async () =>
  (
    await database.query<{ op_time: string; state: string }>(
      "select op_time, state from arrivals.model_instance order by 1",
    )
  ).map(({ op_time, state }) => `${op_time} ${state}`);

describe("defining a model", () => {
  test("answers 201 and the model, not published, with its defaults", async () => {
    const { status, body } = await kpis.put("/models/MODEL-01", modelBody({ kpis: ["KD2", "KD1"] }));
    expect(status).toBe(201);
    expect(body).toEqual({
      modelId: "MODEL-01",
      name: "a model",
      description: null,
      state: 0,
      engine: "duckdb",
      sql: "select 'KD1001' as kpi_id, 1 as value",
      chain: null,
      dependencies: [{ table: "T", optional: false, quietSeconds: 0, deadline: null, grain: null, offset: 0 }],
      kpis: ["KD1", "KD2"],
      grain: null,
      timeZone: "UTC",
      produces: null,
      rerun: "auto",
      timeoutSeconds: 3600,
      retry: null,
      expect: null,
      allowEmpty: false,
      version: 1,
      createdAt: expect.any(String),
      updatedAt: expect.any(String),
    });
    expect(await model("MODEL-01")).toMatchObject({ status: 200, body });
  });

  test("stores all fields, and answers them so that they can be sent again", async () => {
    const fields = {
      name: "订单 😀",
      description: "line one\nline two",
      engine: "warehouse",
      sql: "select 1",
      dependencies: [
        { table: "B", optional: true, quietSeconds: 60, deadline: "PT6H", grain: "hour", offset: -1 },
        { table: "A", optional: false, quietSeconds: 0, offset: 0 },
        { table: "A", optional: false, quietSeconds: 0, offset: -1 },
      ],
      kpis: ["KD1"],
      grain: "day",
      timeZone: "Asia/Shanghai",
      produces: "C",
      rerun: "ask",
      timeoutSeconds: 60,
      retry: { maxAttempts: 5, backoffMs: 600_000 },
    };
    const { body } = await kpis.put("/models/M", fields);
    expect(body).toMatchObject(fields);
    expect(body["retry"]).toEqual(fields.retry); // No default joins it: a long first wait raises that of `maxBackoffMs`.
  });

  test.each([{ maxAttempt: 3 }, { backoffMs: 1 }, { maxAttempts: 0 }])(
    "refuses a retry that is not one: %j",
    async (retry) => {
      const { status, body } = await kpis.put("/models/M", modelBody({ retry }));
      expect([status, body["error"]]).toEqual([400, expect.stringContaining("`retry")]);
    },
  );

  test("again answers 200, increments the version, and replaces everything but the state", async () => {
    const full = {
      description: "x",
      grain: "day",
      produces: "P",
      rerun: "ask",
      timeoutSeconds: 9,
      kpis: ["KD1", "KD2"],
    };
    await kpis.publish("M", { ...full, dependencies: [{ table: "A", deadline: "PT1H" }, { table: "B" }] });
    const { body: before } = await model("M");
    const { status, body } = await kpis.put("/models/M", modelBody({ kpis: ["KD2", "KD3"] }));
    expect([status, body["version"], body["state"], body["createdAt"]]).toEqual([200, 2, 1, before["createdAt"]]);
    expect(body).toMatchObject({ description: null, grain: null, produces: null, rerun: "auto", timeoutSeconds: 3600 });
    expect(body).toMatchObject({ dependencies: [{ table: "T", deadline: null }], kpis: ["KD2", "KD3"] });
    expect(await database.query("select from arrivals.model_deadline")).toEqual([]);
  });

  test("creates its indicators, which may be described before or after", async () => {
    await kpis.put("/indicators/KD1", { type: "EXTENDED", name: "orders" });
    await kpis.define("M", { kpis: ["KD1", "KD2"] });
    expect((await kpis.get("/indicators/KD1")).body).toMatchObject({ name: "orders", modelId: "M" });
    expect((await kpis.get("/indicators/KD2")).body).toMatchObject({ type: "EXTENDED", name: "KD2", modelId: "M" });
    await kpis.define("M", { kpis: ["KD2"] });
    expect((await kpis.get("/indicators/KD1")).body).toMatchObject({ name: "orders", modelId: null });
  });

  test("with dryRun answers the result and changes nothing", async () => {
    const later = { grain: "day", dependencies: [{ table: "A", deadline: "PT1H" }], kpis: ["KD2"] };
    expect(await kpis.put("/models/DRY?dryRun=true", modelBody(later))).toMatchObject({
      status: 200,
      body: { ...later, version: 1, state: 0, dependencies: [{ table: "A" }] },
    });
    expect((await model("DRY")).status).toBe(404);
    expect((await kpis.get("/indicators/KD2")).status).toBe(404);

    await kpis.publish("DRY", { kpis: ["KD1"] });
    const { body: before } = await model("DRY");
    expect(await kpis.put("/models/DRY?dryRun=true", modelBody({ ...later, name: "other" }))).toMatchObject({
      status: 200,
      body: { name: "other", version: 2, state: 1, kpis: ["KD2"] },
    });
    expect((await model("DRY")).body).toEqual(before);
    expect(await database.query("select from arrivals.model_deadline")).toEqual([]);
    const audited = await database.query("select action from kernel.audit_log where target = 'DRY' order by id");
    expect(audited).toEqual([{ action: "model.create" }, { action: "model.publish" }]);
    expect(await kpis.put("/models/OTHER?dryRun=true", modelBody({ kpis: ["KD1"] }))).toMatchObject({
      status: 409,
      body: { code: "KPI_FED_ALREADY" },
    });
    expect((await kpis.put("/models/DRY?dryRun=true", modelBody({ engine: "dukdb" }))).status).toBe(400);
  });

  test("leaves a row in the audit log, each time", async () => {
    await kpis.publish("AUDITED");
    const changed = { name: "other", sql: "select 2 as KD1", dependencies: [{ table: "ORDERS", quietSeconds: 5 }] };
    await kpis.define("AUDITED", changed);
    await kpis.post("/models/AUDITED:unpublish");
    await remove("AUDITED");
    const rows = await database.query<{ action: string; actor: string; details: Json }>(
      "select * from kernel.audit_log where target = 'AUDITED' order by id",
    );
    expect(rows.map(({ action }) => action)).toEqual([
      "model.create",
      "model.publish",
      "model.update",
      "model.unpublish",
      "model.delete",
    ]);
    const { sql, name } = modelBody();
    expect(rows[2]).toMatchObject({ actor: "MILLRACE_ADMIN_KEY", details: { name: "other" } });
    expect(rows[2]?.details["changes"]).toEqual([
      { field: "name", from: name, to: "other" },
      { field: "sql", from: sql, to: "select 2 as KD1" },
      expect.objectContaining({ field: "dependencies.ORDERS", to: expect.objectContaining({ quietSeconds: 5 }) }),
      expect.objectContaining({ field: "dependencies.T", from: expect.any(Object) }),
    ]);
    expect(rows[0]?.details).not.toHaveProperty("changes");
  });
});

describe("a model is refused", () => {
  const day = { grain: "day" };
  test.each<[why: string, fields: Json, sentence: string]>([
    ["with neither SQL nor chain", { sql: undefined }, "A model has either `sql` or a `chain`, and not both."],
    ["with both", { chain: "c", sql: "select 1" }, "A model has either `sql` or a `chain`, and not both."],
    ["with a chain and an engine", { chain: "c", engine: "duckdb" }, "A model that runs a `chain` has no `engine`."],
    [
      "with an unknown engine",
      { engine: "duckbd" },
      "The field `engine`: there is no engine `duckbd`. Did you mean `duckdb`? Known: duckdb, warehouse.",
    ],
    [
      "with an unknown time zone",
      { timeZone: "Europe/Berlim" },
      "The field `timeZone`: there is no time zone `Europe/Berlim` (did you mean `Europe/Berlin`?).",
    ],
    [
      "with SQL that DuckDB cannot parse",
      { sql: "select 1;\nselec 2" },
      'The field `sql` cannot be parsed: syntax error at or near "selec" in line 2.',
    ],
    [
      "with a table twice",
      { dependencies: on("A", "B", "A") },
      "The field `dependencies[2]` (A): the same table with the same offset is listed twice.",
    ],
    [
      "with an offset and no grain",
      { dependencies: [{ table: "A", offset: -1 }] },
      "The field `dependencies[0]` (A): A dependency has an `offset` only where the model has a `grain`: give the model one of hour, day, month.",
    ],
    [
      "with a grain coarser than its own",
      { ...day, dependencies: [{ table: "A", grain: "month" }] },
      "The field `dependencies[0]` (A): A dependency's grain cannot be coarser than the model's: no month fits into one day.",
    ],
    [
      "with an offset that is too large",
      { ...day, dependencies: [{ table: "A", offset: 1_001 }] },
      "The field `dependencies[0]` (A): An `offset` is a whole number from -1000 to 1000, not 1001.",
    ],
    [
      "with a deadline and no grain",
      { dependencies: [{ table: "A", deadline: "PT6H" }] },
      "The field `dependencies[0]` (A): a `deadline` needs the model's `grain`, which says when the period ends.",
    ],
    [
      "with an invalid deadline",
      { ...day, dependencies: [{ table: "A", deadline: "6 hours" }] },
      "The field `dependencies[0]` (A): A `deadline` is a duration of days, hours, minutes and seconds like `PT6H` or `P1DT30M`, not `6 hours`.",
    ],
    ["that waits for its own table", { produces: "T" }, "The tables would wait for themselves: T -> T."],
  ])("%s", async (_why, fields, sentence) => {
    expect(await kpis.put("/models/M", modelBody(fields))).toMatchObject({
      status: 400,
      body: { error: sentence, code: "VALIDATION_FAILED" },
    });
    expect((await model("M")).status).toBe(404);
  });

  test("whose table would depend on itself through others, with the cycle shown", async () => {
    await kpis.define("AB", { dependencies: on("A"), produces: "B", kpis: [] });
    await kpis.define("BC", { dependencies: on("B", "X"), produces: "C", kpis: [] });
    const closing = modelBody({ dependencies: on("Y", "C"), produces: "A", kpis: [] });
    const { status, body } = await kpis.put("/models/CA", closing);
    expect([status, body["code"]]).toEqual([400, "VALIDATION_FAILED"]);
    expect(body["error"]).toMatch(/^The tables would wait for themselves: ([ABC]) -> [ABC] -> [ABC] -> \1\.$/);
    expect(body["error"]).toMatch(/A -> B|B -> C|C -> A/);
    expect(await ids()).toEqual(["AB", "BC"]);
  });

  test("if it is one of two concurrent ones that form a cycle", async () => {
    const answers = await Promise.all([
      kpis.put("/models/AB", modelBody({ dependencies: on("A"), produces: "B", kpis: [] })),
      kpis.put("/models/BA", modelBody({ dependencies: on("B"), produces: "A", kpis: [] })),
    ]);
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([201, 400]));
  });

  test("not for a cycle through an earlier period", async () => {
    const back = { grain: "day", dependencies: [{ table: "A", offset: -1 }, { table: "T" }], produces: "A" };
    expect(await kpis.define("M", back)).toMatchObject({ produces: "A" });
  });

  test("that would trigger itself day after day without end", async () => {
    const back = { grain: "day", dependencies: [{ table: "A", offset: -1 }], produces: "A" };
    expect(await kpis.put("/models/M", modelBody(back))).toMatchObject({
      status: 400,
      body: { error: "Once started, the models would trigger each other for period after period without end: A -> A." },
    });
  });

  test("that feeds an indicator of another model, and none of it is stored", async () => {
    await kpis.define("FIRST", { kpis: ["KD1"] });
    await kpis.define("SECOND", { name: "before", kpis: ["KD2"] });
    expect(await kpis.put("/models/SECOND", modelBody({ name: "after", kpis: ["KD3", "KD1"] }))).toMatchObject({
      status: 409,
      body: {
        error: "Indicator `KD1` is fed by model `FIRST`, and only one model feeds an indicator.",
        code: "KPI_FED_ALREADY",
        details: { kpiId: "KD1", modelId: "FIRST" },
      },
    });
    expect((await model("SECOND")).body).toMatchObject({ name: "before", version: 1, kpis: ["KD2"] });
    expect((await kpis.get("/indicators/KD3")).status).toBe(404);
  });

  test("that feeds a COMPUTED indicator", async () => {
    await kpis.compute("KC1", "KD1 * 2");
    expect(await kpis.put("/models/M", modelBody({ kpis: ["KD1", "KC1"] }))).toMatchObject({
      status: 400,
      body: { error: "`KC1` is a COMPUTED indicator; a model feeds EXTENDED ones." },
    });
  });
});

describe("a published model", () => {
  test("does not run for tables that had arrived before", async () => {
    await kpis.arrive("T");
    await kpis.publish("M");
    expect(await states()).toEqual([]);
    expect((await kpis.arrive("T", "20251220")).triggeredModels).toMatchObject([{ opTime: "20251220" }]);
    expect(await kpis.tasks("M", TODAY)).toEqual([]);
  });

  test("uses earlier arrivals once its last table has arrived", async () => {
    await kpis.arrive("A");
    await kpis.publish("M", { dependencies: on("A", "B") });
    expect((await kpis.arrive("B")).triggeredModels).toMatchObject([{ modelId: "M", status: "SUCCESS" }]);
  });

  test("can be published again without effect", async () => {
    await kpis.publish("M");
    expect(await kpis.post("/models/M:publish")).toMatchObject({ status: 200, body: { state: 1, version: 1 } });
  });

  test("that is unpublished makes its waiting, quiet and asking instances idle", async () => {
    await kpis.publish("M", {
      rerun: "ask",
      dependencies: [{ table: "A", quietSeconds: 3_600 }, { table: "B" }],
    });
    await kpis.arrive("A", "1");
    await kpis.arrive("A", "2");
    await kpis.arrive("B", "2");
    await kpis.arrive("A", "3");
    await kpis.arrive("B", "3");
    await kpis.post("/models/M:run", { opTime: "3" });
    await kpis.arrive("B", "3");
    expect(await states()).toEqual(["1 waiting", "2 quiet", "3 asking"]);
    await kpis.post("/models/M:unpublish");
    expect(await states()).toEqual(["1 idle", "2 idle", "3 idle"]);
    await kpis.post("/models/M:publish");
    expect(await states()).toEqual(["1 idle", "2 idle", "3 idle"]);
  });

  test("that is unpublished while it runs finishes its run", async () => {
    const gate = await kpis.gate();
    await kpis.publish("M", { engine: "warehouse", sql: `select 'KD1001' as kpi_id, 1 as value ${gate.from}` });
    await kpis.arriveAsync("T");
    await kpis.reaches("M", "RUNNING");
    await kpis.post("/models/M:unpublish");
    await gate.open();
    await kpis.reaches("M", "SUCCESS");
    expect(await kpis.values()).toEqual(["KD1001=1"]);
  });
});

describe("a deleted model", () => {
  test("is answered once more and deleted with its values; the log of its runs stays", async () => {
    await kpis.publish("M", { grain: "day", dependencies: [{ table: "T", deadline: "PT1H" }] });
    await kpis.publish("OTHER", { kpis: ["KD2"], sql: "select 'KD2' as kpi_id, 2 as value" });
    await kpis.arrive("T");
    expect(await remove("M")).toMatchObject({ status: 200, body: { modelId: "M", kpis: ["KD1001"] } });
    expect(await remove("M")).toMatchObject({ status: 404, body: { code: "MODEL_NOT_FOUND" } });
    expect(await kpis.values()).toEqual(["KD2=2"]);
    expect(await kpis.tasks("M")).toMatchObject([{ status: "SUCCESS" }]);
    expect((await kpis.get("/indicators/KD1001")).body).toMatchObject({ modelId: null });
    expect(await database.query("select from arrivals.model_deadline")).toEqual([]);
    expect(await kpis.arrive("T")).toMatchObject({ triggeredModels: [{ modelId: "OTHER" }], skippedModels: [] });
  });

  test("is deleted with what was computed from its values", async () => {
    await kpis.publish("M");
    await kpis.publish("OTHER", { kpis: ["KD2"], sql: "select 'KD2' as kpi_id, 2 as value" });
    await kpis.compute("KC1", "KD1001 + KD2");
    await kpis.compute("KC2", "KD2 * 10");
    await kpis.arrive("T");
    await until(async () => (await kpis.values()).length === 4, "all values");
    await remove("M");
    expect(await kpis.values()).toEqual(["KC2=20", "KD2=2"]);
  });

  test("may be defined again, and runs for the opTimes that it had", async () => {
    await kpis.publish("M");
    await kpis.arrive("T");
    await remove("M");
    await kpis.publish("M");
    expect((await kpis.arrive("T")).triggeredModels).toMatchObject([{ status: "SUCCESS", generation: 1 }]);
  });

  test("ends its run in flight as FAILED, so that one of the same name can run", async () => {
    const gate = await kpis.gate();
    await kpis.publish("M", { engine: "warehouse", sql: `select 'KD1001' as kpi_id, 1 as value ${gate.from}` });
    const answer = kpis.arrive("T");
    await kpis.reaches("M", "RUNNING");
    await remove("M");
    expect((await answer).triggeredModels).toMatchObject([{ status: "FAILED", message: "the model was deleted" }]);
    await kpis.publish("M", { sql: "select 'KD1001' as kpi_id, 2 as value" });
    expect((await kpis.arrive("T")).triggeredModels).toMatchObject([{ status: "SUCCESS" }]);
    await gate.open();
    await until(async () => {
      const metrics = await (await fetch(`${kpis.url}/metrics`)).text();
      return metrics.includes('millrace_arrivals_run_seconds_count{outcome="taken away"} 1');
    }, "the first run to end in vain");
    expect(await kpis.values()).toEqual(["KD1001=2"]);
  });
});

describe("the list of models", () => {
  test("is sorted by id, in pages, and searches ids and names literally", async () => {
    for (const [id, name] of Object.entries({ A: "orders 100%", B: "orders", C_1: "Customers", C21: "x" })) {
      await kpis.define(id, { name, kpis: [] });
    }
    await kpis.post("/models/B:publish");
    expect(await ids()).toEqual(["A", "B", "C21", "C_1"]);
    expect(await ids("?q=ORDERS")).toEqual(["A", "B"]);
    expect(await ids("?q=c_")).toEqual(["C_1"]);
    expect(await ids("?q=0%25")).toEqual(["A"]);
    expect(await ids("?q=%5C")).toEqual([]);
    expect(await ids("?state=1")).toEqual(["B"]);
    expect((await kpis.get("/models?size=3&page=2")).body).toMatchObject({
      page: 2,
      size: 3,
      total: 4,
      items: [{ modelId: "C_1" }],
    });
  });
});
