/** Runs that a person requests: for one opTime, and for a range. */
import { describe, expect, test } from "vitest";
import { useDatabase } from "../../../test/database.ts";
import { until } from "../../../test/until.ts";
import { on, TODAY, useKpis } from "../arrivals.fixture.ts";

const database = useDatabase();
const kpis = useKpis(database);

const run = (body: object, modelId = "M") => kpis.post(`/models/${modelId}:run`, body);
const backfill = (body: object, modelId = "M") => kpis.post(`/models/${modelId}:backfill`, body);
/** Less than the time that a request waits for its run. */
const AT_ONCE = { timeout: 20_000 };
const audited = (action: string) =>
  database.query("select details from kernel.audit_log where action = $1 order by id", [action]);

describe("run", () => {
  test("runs a model even if nothing new has arrived, and answers how it ended", async () => {
    await kpis.publish("M");
    await kpis.arrive("T");
    expect(await run({ opTime: TODAY })).toMatchObject({ status: 200 });
    const { body } = await run({ opTime: TODAY });
    expect(body).toEqual({
      modelId: "M",
      opTime: TODAY,
      status: "SUCCESS",
      generation: 3,
      computeCount: 1,
      storageCount: 1,
    });
    expect(await kpis.tasks("M")).toMatchObject([
      { trigger: "run", causedBy: null },
      { trigger: "run", causedBy: null },
      { trigger: "arrival" },
    ]);
    expect(await kpis.events("kpi.updated")).toMatchObject([
      { rerun: false },
      { rerun: true, causedBy: null, generation: 2 },
      { rerun: true, causedBy: null, generation: 3 },
    ]);
    expect(await audited("model.run")).toContainEqual({ details: { opTime: TODAY, force: false } });
  });

  test("runs a model whose tables arrived before it was published", async () => {
    await kpis.arrive("T");
    await kpis.publish("M");
    expect((await run({ opTime: TODAY })).body).toMatchObject({ status: "SUCCESS", generation: 1 });
  });

  test("answers a failure as FAILED", async () => {
    await kpis.publish("M", { sql: "select * from nowhere" });
    await kpis.arrive("T");
    expect(await run({ opTime: TODAY })).toMatchObject({
      status: 200,
      body: { status: "FAILED", message: expect.stringContaining("nowhere"), generation: 2 },
    });
  });

  test("does not wait with Prefer: respond-async", AT_ONCE, async () => {
    const gate = await kpis.gate();
    await kpis.publish("M", { engine: "warehouse", sql: `select 'KD1001' as kpi_id, 1 as value ${gate.from}` });
    await kpis.arriveAsync("T");
    await gate.open();
    await kpis.reaches("M", "SUCCESS");
    const again = await kpis.gate();
    await kpis.define("M", { engine: "warehouse", sql: `select 'KD1001' as kpi_id, 1 as value ${again.from}` });
    const answer = await kpis.api.send("/api/v1/kpi/models/M:run", {
      method: "POST",
      headers: { "content-type": "application/json", prefer: "respond-async" },
      body: JSON.stringify({ opTime: TODAY }),
    });
    expect(answer.body).toEqual({ modelId: "M", opTime: TODAY, status: "RUNNING", generation: 2 });
  });

  test("ends a quiet period and the state asking", async () => {
    await kpis.publish("M", { rerun: "ask", dependencies: [{ table: "T", quietSeconds: 3_600 }] });
    expect((await kpis.arrive("T")).waitingModels).toEqual(["M"]);
    expect((await run({ opTime: TODAY })).body).toMatchObject({ status: "SUCCESS" });
    expect((await kpis.arrive("T")).skippedModels).toEqual(["M"]);
    expect((await run({ opTime: TODAY })).body).toMatchObject({ status: "SUCCESS" });
    expect((await kpis.why("M")).state).toBe("idle");
  });

  test("is refused while tables are missing, unless it is forced", async () => {
    await kpis.publish("M", { dependencies: [{ table: "A" }, { table: "B" }, { table: "C", optional: true }] });
    await kpis.arrive("A");
    expect(await run({ opTime: TODAY })).toMatchObject({
      status: 409,
      body: {
        error: `Model \`M\` cannot run for ${TODAY} while tables are missing: B ${TODAY}. With \`force\` it runs without them.`,
        code: "TABLES_MISSING",
        details: { modelId: "M", opTime: TODAY, missing: `B ${TODAY}` },
      },
    });
    expect((await run({ opTime: TODAY, force: true })).body).toMatchObject({ status: "SUCCESS" });
    const [task] = await kpis.tasks("M");
    expect(Object.keys(task?.consumed ?? {})).toEqual([`A ${TODAY}`]);
    expect((await kpis.arrive("B")).triggeredModels).toMatchObject([{ status: "SUCCESS", generation: 2 }]);
  });

  test("that is forced stays ready when a table arrives before a worker is free", async () => {
    const gate = await kpis.gate();
    const held = { engine: "warehouse", sql: `select 1 ${gate.from}`, dependencies: on("BUSY"), kpis: [] };
    // As many as there are slots.
    for (let slot = 1; slot <= 8; slot += 1) await kpis.publish(`BUSY${slot}`, held);
    await kpis.publish("M", { dependencies: on("A", "B", "C") });
    await kpis.arriveAsync("BUSY");
    for (let slot = 1; slot <= 8; slot += 1) await kpis.reaches(`BUSY${slot}`, "RUNNING");
    const forced = run({ opTime: TODAY, force: true });
    await until(async () => (await kpis.why("M")).state === "ready", "the forced run to wait for a worker");
    await kpis.arriveAsync("A");
    expect((await kpis.why("M")).state).toBe("ready");
    await gate.open();
    expect((await forced).body).toMatchObject({ status: "SUCCESS", generation: 1 });
  });

  test("does not wait for optional tables, whatever their deadline", async () => {
    const dependencies = [{ table: "A" }, { table: "B", optional: true, deadline: "P300D" }];
    await kpis.publish("M", { grain: "day", dependencies });
    const today = new Date().toISOString().slice(0, 10).replaceAll("-", "");
    expect((await kpis.arrive("A", today)).waitingModels).toEqual(["M"]);
    expect((await run({ opTime: today })).body).toMatchObject({ status: "SUCCESS" });
  });

  test("is refused while the model runs", async () => {
    const gate = await kpis.gate();
    await kpis.publish("M", { engine: "warehouse", sql: `select 'KD1001' as kpi_id, 1 as value ${gate.from}` });
    await kpis.arriveAsync("T");
    await kpis.reaches("M", "RUNNING");
    expect(await run({ opTime: TODAY })).toMatchObject({
      status: 409,
      body: { error: `Model \`M\` is running for ${TODAY}. Wait until that run has ended.`, code: "MODEL_RUNNING" },
    });
    await gate.open();
    await kpis.reaches("M", "SUCCESS");
    expect(await kpis.tasks("M")).toHaveLength(1);
  });

  test("is refused for an unpublished or unknown model, and for an opTime of another grain", async () => {
    await kpis.define("M", { grain: "day" });
    expect(await run({ opTime: TODAY })).toMatchObject({ status: 409, body: { code: "MODEL_NOT_PUBLISHED" } });
    expect(await run({ opTime: TODAY }, "nobody")).toMatchObject({ status: 404, body: { code: "MODEL_NOT_FOUND" } });
    await kpis.post("/models/M:publish");
    expect(await run({ opTime: "20250230", force: true })).toMatchObject({
      status: 400,
      body: { error: "The opTimes of model `M` are days, which `20250230` is not (did you mean `20250228`?)." },
    });
    expect(await database.query("select from arrivals.model_instance")).toEqual([]);
  });
});

describe("backfill", () => {
  const items = [
    { opTime: "20251217", runs: true, missing: [] },
    { opTime: "20251218", runs: false, missing: ["B 20251218"] },
    { opTime: "20251219", runs: true, missing: [] },
    { opTime: "20251220", runs: false, missing: ["A 20251220", "B 20251220"] },
  ];
  const range = { from: "20251217", to: "20251220" };
  const arrive = async () => {
    for (const opTime of ["20251217", "20251218", "20251219"]) await kpis.arrive("A", opTime);
    for (const opTime of ["20251217", "20251219"]) await kpis.arrive("B", opTime);
  };

  test("with dryRun lists what would run, and runs nothing", async () => {
    await arrive();
    await kpis.publish("M", { grain: "day", dependencies: on("A", "B") });
    expect(await backfill({ ...range, dryRun: true })).toMatchObject({
      status: 200,
      body: { dryRun: true, runs: 2, items },
    });
    expect(await database.query("select from arrivals.model_instance")).toEqual([]);
    expect(await audited("model.backfill")).toEqual([]);
  });

  test("runs every opTime of the range whose tables have arrived, even if it has run before", async () => {
    await arrive();
    await kpis.publish("M", { grain: "day", dependencies: on("A", "B") });
    await kpis.arrive("B", "20251219");
    expect(await backfill(range)).toMatchObject({ status: 200, body: { dryRun: false, runs: 2, items } });
    await until(async () => (await kpis.tasks("M", "20251217"))[0]?.status === "SUCCESS", "the first day");
    await until(async () => (await kpis.tasks("M", "20251219"))[0]?.generation === 2, "the second run of the last day");
    expect((await kpis.tasks("M", "20251219"))[0]).toMatchObject({ trigger: "backfill", causedBy: null });
    expect(await kpis.tasks("M", "20251218")).toEqual([]);
    expect(await audited("model.backfill")).toEqual([{ details: { ...range, opTimes: 2 } }]);
  });

  test("without a grain goes over the opTimes that have arrived, in text order", async () => {
    await arrive();
    await kpis.arrive("OTHER", "20251217-late");
    await kpis.publish("M", { dependencies: on("A", "B") });
    const { body } = await backfill({ ...range, dryRun: true });
    expect((body["items"] as { opTime: string }[]).map(({ opTime }) => opTime)).toEqual([
      "20251217",
      "20251217-late",
      "20251218",
      "20251219",
    ]);
    expect(body["runs"]).toBe(2);
    expect((await backfill({ from: "z", to: "a" })).body).toEqual({ dryRun: false, runs: 0, items: [] });
  });

  test("of a day out of 24 hours names the first that are missing", async () => {
    await kpis.publish("M", { grain: "day", dependencies: [{ table: "A", grain: "hour" }] });
    const { body } = await backfill({ from: TODAY, to: TODAY });
    expect(body["items"]).toEqual([
      { opTime: TODAY, runs: false, missing: ["00", "01", "02", "03", "04"].map((hour) => `A ${TODAY}${hour}`) },
    ]);
  });

  test("does not affect a run in flight", async () => {
    const gate = await kpis.gate();
    await kpis.publish("M", { engine: "warehouse", sql: `select 'KD1001' as kpi_id, 1 as value ${gate.from}` });
    await kpis.arriveAsync("T");
    await kpis.reaches("M", "RUNNING");
    expect(await backfill({ from: TODAY, to: TODAY })).toMatchObject({ status: 200 });
    await gate.open();
    await kpis.reaches("M", "SUCCESS");
    expect(await kpis.tasks("M")).toHaveLength(1);
  });

  test("is refused where `:run` is refused, and for an invalid range", async () => {
    await kpis.define("M", { grain: "day" });
    expect(await backfill(range)).toMatchObject({ status: 409, body: { code: "MODEL_NOT_PUBLISHED" } });
    expect(await backfill(range, "nobody")).toMatchObject({ status: 404, body: { code: "MODEL_NOT_FOUND" } });
    await kpis.post("/models/M:publish");
    for (const [from, to, sentence] of [
      ["20251220", "20251219", "The range's `to` (20251219) is before its `from` (20251220)."],
      ["2025", "20251219", "The range's `from` must be a valid day like yyyyMMdd, not `2025`."],
      [
        "19700101",
        "20251219",
        "The range 19700101 to 20251219 has 20442 days, more than the 10000 of one range: split it.",
      ],
    ]) {
      expect(await backfill({ from, to })).toMatchObject({ status: 400, body: { error: sentence } });
    }
  });
});
