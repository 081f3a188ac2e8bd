/** Every explanation of why a model has run or has not. */
import { describe, expect, test } from "vitest";
import { useDatabase } from "../../../test/database.ts";
import { until } from "../../../test/until.ts";
import { on, TODAY, useKpis } from "../arrivals.fixture.ts";

const database = useDatabase();
const kpis = useKpis(database, { arrivals: { slots: 1 } });

const held = (from: string, kpiId = "KD1001") => ({
  engine: "warehouse",
  sql: `select '${kpiId}' as kpi_id, 1 as value ${from}`,
  kpis: [kpiId],
});
const RUN = "POST /api/v1/kpi/models/M:run";
const AFTER_FAILURE = [
  "If its SQL is at fault: correct it (PUT /api/v1/kpi/models/M), then run it again.",
  "POST /api/v1/kpi/models/M:retry.",
];

describe("the verdict", () => {
  test("of a model that is not published", async () => {
    await kpis.define("M");
    await kpis.arrive("T");
    expect(await kpis.why("M")).toMatchObject({
      state: "idle",
      verdict: "The model is not published, so arrivals do not run it.",
      wouldRun: ["Publish it: later arrivals run it."],
      tables: [{ table: "T", missing: false, consumedBy: null }],
    });
  });

  test("of one that waits for a table, or for several", async () => {
    await kpis.publish("M", { dependencies: on("A", "B", "C") });
    expect(await kpis.why("M")).toMatchObject({
      state: "idle",
      verdict: `Waiting for 3 tables: A ${TODAY}, B ${TODAY}, C ${TODAY}.`,
    });
    await kpis.arrive("A");
    await kpis.arrive("C");
    expect(await kpis.why("M")).toEqual({
      modelId: "M",
      opTime: TODAY,
      state: "waiting",
      verdict: `Waiting for a table: B ${TODAY}.`,
      wouldRun: [`The arrival of B ${TODAY}.`, `${RUN} with \`force: true\`.`],
      retry: null,
      tables: [
        expect.objectContaining({
          table: "A",
          opTime: TODAY,
          optional: false,
          missing: false,
          arrivedAt: expect.any(String),
        }),
        {
          table: "B",
          opTime: TODAY,
          optional: false,
          missing: true,
          deadline: null,
          arrivedAt: null,
          sequence: null,
          announcedBy: null,
          retractedAt: null,
          retractedBy: null,
          usualAt: null,
          consumedBy: null,
        },
        expect.objectContaining({ table: "C", missing: false, sequence: expect.stringMatching(/^\d+$/) }),
      ],
      runs: [],
      computed: [],
    });
  });

  test("of one that waits for many: the first ones, and how many more", async () => {
    await kpis.publish("M", { grain: "day", dependencies: [{ table: "A", grain: "hour" }] });
    const { verdict, tables } = await kpis.why("M");
    const first = ["00", "01", "02", "03", "04"].map((hour) => `A ${TODAY}${hour}`).join(", ");
    expect(verdict).toBe(`Waiting for 24 tables: ${first} and 19 more.`);
    expect(tables).toHaveLength(24);
  });

  test("of one in its quiet period", async () => {
    await kpis.publish("M", { dependencies: [{ table: "T", quietSeconds: 3_600 }] });
    await kpis.arrive("T");
    const { state, verdict, wouldRun, tables } = await kpis.why("M");
    const due = new Date(Date.parse(String(tables[0]?.arrivedAt)) + 3_600_000).toISOString();
    expect([state, verdict]).toEqual([
      "quiet",
      `All tables have arrived; it waits until ${due} in case one arrives again.`,
    ]);
    expect(wouldRun).toEqual(["The end of the quiet period.", `${RUN}.`]);
  });

  test("of one that is ready while all workers are busy", async () => {
    const gate = await kpis.gate();
    await kpis.publish("BUSY", { ...held(gate.from, "KD2"), dependencies: on("B") });
    await kpis.publish("M");
    await kpis.arriveAsync("B");
    await kpis.reaches("BUSY", "RUNNING");
    await kpis.arriveAsync("T");
    expect(await kpis.why("M")).toMatchObject({
      state: "ready",
      verdict: "Queued: waiting for a free worker.",
      wouldRun: [],
    });
  });

  test("of one that runs, before and after another arrival", async () => {
    const gate = await kpis.gate();
    await kpis.publish("M", held(gate.from));
    await kpis.arriveAsync("T");
    const { id } = await kpis.reaches("M", "RUNNING");
    expect(await kpis.why("M")).toMatchObject({
      state: "running",
      verdict: "It is running, as generation 1.",
      tables: [{ consumedBy: { taskId: id, generation: 1 } }],
    });
    await kpis.arriveAsync("T");
    expect(await kpis.why("M")).toMatchObject({
      verdict: "It is running, as generation 1. Something arrived meanwhile, so it will run again.",
      tables: [{ consumedBy: null }],
    });
  });

  test("of one that runs and will not run again, whatever arrives", async () => {
    const gate = await kpis.gate();
    await kpis.publish("M", { ...held(gate.from), rerun: "ignore" });
    await kpis.arriveAsync("T");
    await kpis.reaches("M", "RUNNING");
    await kpis.arriveAsync("T");
    expect((await kpis.why("M")).verdict).toBe("It is running, as generation 1. Something arrived meanwhile.");
  });

  test.each([
    ["auto", ["Any of its tables arriving again.", `${RUN}.`]],
    ["ask", [`${RUN}.`]],
    ["ignore", [`${RUN}.`]],
  ])("of one that has used everything, with rerun: %s", async (rerun, wouldRun) => {
    await kpis.publish("M", { rerun });
    await kpis.arrive("T");
    const { id } = await kpis.reaches("M", "SUCCESS");
    expect(await kpis.why("M")).toMatchObject({
      state: "idle",
      verdict: "It has used everything that has arrived, in generation 1.",
      wouldRun,
      tables: [{ consumedBy: { taskId: id, generation: 1 } }],
      runs: [{ id, status: "SUCCESS", computeCount: 1 }],
    });
  });

  test("of one that has used everything, and failed when it was run again by hand", async () => {
    await kpis.publish("M");
    await kpis.arrive("T");
    await kpis.define("M", { sql: "select * from nowhere" });
    await kpis.post("/models/M:run", { opTime: TODAY });
    const { verdict, wouldRun, tables } = await kpis.why("M");
    expect(verdict).toMatch(
      /^Its last run, generation 2, failed; generation 1 has used everything that has arrived, and its values stay\. The error: .*nowhere/,
    );
    expect(wouldRun).toEqual([...AFTER_FAILURE, "Any of its tables arriving again."]);
    expect(tables).toMatchObject([{ consumedBy: { generation: 2 } }]);
  });

  test("of one with rerun: ask or rerun: ignore", async () => {
    await kpis.publish("M", { rerun: "ask" });
    await kpis.arrive("T");
    await kpis.arrive("T");
    expect(await kpis.why("M")).toMatchObject({
      state: "asking",
      verdict: "A table has arrived again. The rerun needs approval (rerun: ask).",
      wouldRun: [`${RUN}.`],
    });
    await kpis.define("M", { rerun: "ignore" });
    expect(await kpis.why("M")).toMatchObject({
      verdict: "A table has arrived again, but the model ignores that (rerun: ignore).",
      wouldRun: [`${RUN}.`],
    });
  });

  test("of one that failed", async () => {
    await kpis.publish("M", { sql: "select * from nowhere" });
    await kpis.arrive("T");
    const { message, id } = await kpis.reaches("M", "FAILED");
    expect(await kpis.why("M")).toMatchObject({
      state: "idle",
      verdict: `Its last run, generation 1, failed: ${message}`,
      wouldRun: [...AFTER_FAILURE, "Any of its tables arriving again."],
      tables: [{ consumedBy: { taskId: id } }],
    });
  });

  test.each([0, 3_600])("of one whose tables arrived before it was published, %i s quiet", async (quietSeconds) => {
    await kpis.arrive("T");
    await kpis.publish("M", { dependencies: [{ table: "T", quietSeconds }] });
    expect(await kpis.why("M")).toMatchObject({
      state: "idle",
      verdict: "All tables have arrived, but before the model was published or last changed.",
      wouldRun: ["Any of its tables arriving again.", `${RUN}, or :backfill for a range.`],
    });
  });
});

describe("the tables", () => {
  test("show which run used which arrival", async () => {
    await kpis.publish("M", { dependencies: on("A", "B") });
    await kpis.arrive("A");
    await kpis.arrive("B");
    await kpis.arrive("B");
    const { tables, runs } = await kpis.why("M");
    const [second] = runs;
    expect(runs.map(({ generation }) => generation)).toEqual([2, 1]);
    expect(tables).toMatchObject([
      { table: "A", consumedBy: { taskId: second?.id, generation: 2 } },
      { table: "B", consumedBy: { taskId: second?.id, generation: 2 } },
    ]);
    expect(second?.consumed).toEqual(Object.fromEntries(tables.map((one) => [`${one.table} ${TODAY}`, one.sequence])));
  });

  test("show the deadline of an optional one, after which the model runs without it", async () => {
    const optional = { table: "B", optional: true, deadline: "PT1H" };
    await kpis.publish("M", { grain: "day", dependencies: [{ table: "A" }, optional] });
    const day = "20991231";
    const freed = "The deadline at 2100-01-01T01:00:00.000Z: what is missing is optional.";
    expect((await kpis.why("M", day)).wouldRun).not.toContain(freed);
    await kpis.arrive("A", day);
    expect(await kpis.why("M", day)).toMatchObject({
      state: "waiting",
      wouldRun: expect.arrayContaining([freed]),
      tables: [
        { table: "A", deadline: null },
        { table: "B", deadline: "2100-01-01T01:00:00.000Z" },
      ],
    });
  });

  test("show a missing optional one, for which the model does not wait", async () => {
    await kpis.publish("M", { dependencies: [{ table: "A" }, { table: "B", optional: true }] });
    await kpis.arrive("A");
    expect((await kpis.why("M")).tables).toMatchObject([
      { table: "A", missing: false },
      { table: "B", optional: true, missing: true },
    ]);
  });
});

describe("the computed indicators that depend on it", () => {
  test("are listed with the reason why a value is missing, for each set of dimensions", async () => {
    await kpis.compute("RATE", "KD1 / KD2");
    const row = (kpiId: string, value: number, region: string) =>
      `select '${kpiId}' as kpi_id, ${value} as value, '${region}' as region`;
    const rows = [row("KD1", 1, "EU"), row("KD1", 2, "US"), row("KD2", 4, "US")];
    await kpis.publish("M", { sql: rows.join(" union all "), kpis: ["KD1", "KD2"] });
    await kpis.arrive("T");
    expect((await kpis.why("M")).computed).toEqual([
      { kpiId: "RATE", missing: ['{"region":"EU"}: KD2 has no value for these dimensions.'] },
    ]);
  });
});

describe("a request", () => {
  test("for an unknown model is 404", async () => {
    expect(await kpis.get(`/models/nobody/why?opTime=${TODAY}`)).toMatchObject({
      status: 404,
      body: { error: "There is no model `nobody`.", code: "MODEL_NOT_FOUND" },
    });
  });

  test("for an opTime of another grain is 400", async () => {
    await kpis.define("M", { grain: "day" });
    expect(await kpis.get("/models/M/why?opTime=2025121900")).toMatchObject({
      status: 400,
      body: { error: "The opTimes of model `M` are days, which `2025121900` is not (did you mean `20251219`?)." },
    });
  });

  test("shows the newest runs", async () => {
    await kpis.publish("M");
    for (let run = 1; run <= 22; run += 1) await kpis.arrive("T");
    await until(async () => (await kpis.tasks("M")).length === 22, "22 runs");
    const { runs } = await kpis.why("M");
    expect([runs.length, runs[0]?.generation, runs.at(-1)?.generation]).toEqual([20, 22, 3]);
    expect(runs[0]).toMatchObject({ trigger: "arrival", causedBy: { table: "T", opTime: TODAY }, chainRunId: null });
  });
});
