/** Models whose results do not pass their checks, over the API. */
import { describe, expect, test } from "vitest";
import { useDatabase } from "../../../test/database.ts";
import { modelBody, useKpis } from "../arrivals.fixture.ts";

const database = useDatabase();
const kpis = useKpis(database);
const NOTHING = "select 'KD1001' as kpi_id, 1 as value where false";
const updates = () => kpis.events("kpi.updated");

describe("a model that returns no rows", () => {
  test("is FAILED with the reason, keeps its values, and tells no subscriber", async () => {
    await kpis.publish("M");
    await kpis.arrive("T");
    await kpis.define("M", { sql: NOTHING });
    expect((await kpis.arrive("T")).triggeredModels).toMatchObject([
      { status: "FAILED", message: "It returned no rows. If that is right, set `allowEmpty: true`." },
    ]);
    expect(await kpis.values()).toEqual(["KD1001=1"]);
    expect(await updates()).toHaveLength(1);
    expect(await kpis.why("M")).toMatchObject({ verdict: expect.stringContaining("It returned no rows.") });
  });

  test("succeeds with `allowEmpty`, and so does one without KPIs", async () => {
    await kpis.publish("M", { sql: NOTHING, allowEmpty: true });
    await kpis.publish("NO-KPIS", { sql: "select 1 as x where false", kpis: [] });
    expect((await kpis.arrive("T")).triggeredModels).toMatchObject([
      { modelId: "M", status: "SUCCESS", computeCount: 0 },
      { modelId: "NO-KPIS", status: "SUCCESS" },
    ]);
  });
});

test("a model that misses a KPI that it declares is FAILED", async () => {
  await kpis.publish("M", { kpis: ["KD1001", "KD1002"] });
  expect((await kpis.arrive("T")).triggeredModels).toMatchObject([
    { status: "FAILED", message: "It returned no value for KD1002, which it declares." },
  ]);
  expect(await kpis.values()).toEqual([]);
  expect(await updates()).toEqual([]);
});

describe("`expect`", () => {
  const that = ["kpis.KD1001.sum > 100.0"];

  test("fails the run with every check that failed", async () => {
    await kpis.publish("M", { expect: { rows: { min: 2 }, that } });
    const message = "It returned 1 row; at least 2 are expected. `kpis.KD1001.sum > 100.0` is false.";
    expect((await kpis.arrive("T")).triggeredModels).toMatchObject([{ status: "FAILED", message }]);
    expect(await kpis.values()).toEqual([]);
  });

  test("with `onFail: warn` stores the values and shows the warnings in the answer, the run and `why`", async () => {
    await kpis.publish("M", { expect: { that, onFail: "warn" } });
    const warnings = ["`kpis.KD1001.sum > 100.0` is false."];
    expect((await kpis.arrive("T")).triggeredModels).toMatchObject([{ status: "SUCCESS", warnings }]);
    expect(await kpis.values()).toEqual(["KD1001=1"]);
    expect(await updates()).toHaveLength(1);
    expect(await kpis.tasks("M")).toMatchObject([{ status: "SUCCESS", message: null, warnings }]);
    expect((await kpis.why("M")).verdict).toMatch(/That run has warnings: `kpis\.KD1001\.sum > 100\.0` is false\.$/);
  });

  test("is answered as it was sent, and refused where it is wrong", async () => {
    const given = { rows: { min: 1, max: 5 }, kpis: "all", that, onFail: "warn" };
    expect(await kpis.define("M", { expect: given, allowEmpty: true })).toMatchObject({
      expect: given,
      allowEmpty: true,
    });
    expect(await kpis.define("M")).toMatchObject({ expect: null, allowEmpty: false });
    for (const [wrong, path] of [
      [{ that: ["count >"] }, /`expect\.that\[0\]`/],
      [{ rows: { min: 2, max: 1 } }, /`expect\.rows`/],
      [{ rows: { least: 2 } }, /least/],
      [{ kpis: "some" }, /expect/],
    ] as const) {
      const { status, body } = await kpis.put("/models/M", modelBody({ expect: wrong }));
      expect({ status, error: body["error"] }).toEqual({ status: 400, error: expect.stringMatching(path) });
    }
  });
});

describe("a value beyond the doubles", () => {
  const EXACT = "9007199254740993";

  test.each([["duckdb"], ["warehouse"]])("is kept exactly on its way from %s", async (engine) => {
    const sql = `select 'KD1001' as kpi_id, ${EXACT} as value union all select 'KD1002', 12.5`;
    await kpis.publish("M", { engine, sql, kpis: ["KD1001", "KD1002"] });
    await kpis.compute("KC1", "KD1001 - 9007199254740990.0");
    expect((await kpis.arrive("T")).triggeredModels).toMatchObject([{ status: "SUCCESS" }]);
    const { body } = await kpis.get<{ items: object[] }>("/data?size=10");
    expect(body.items).toMatchObject([
      { kpiId: "KC1", value: 2 }, // Formulas compute in doubles.
      { kpiId: "KD1001", value: null, valueText: EXACT },
      { kpiId: "KD1002", value: 12.5, valueText: "12.5" },
    ]);
  });

  test("is rounded as a JSON number if it is a fraction, and exact as text", async () => {
    await kpis.publish("M", { engine: "warehouse", sql: "select 'KD1001' as kpi_id, 1::numeric / 3 as value" });
    await kpis.arrive("T");
    const { body } = await kpis.get<{ items: object[] }>("/data");
    expect(body.items).toMatchObject([{ value: 1 / 3, valueText: "0.33333333333333333333" }]);
  });

  test.each([["'NaN'::double"], ["'Infinity'::double"], ["1e308::double * 10"]])("%s fails the run", async (sql) => {
    await kpis.publish("M", { sql: `select 'KD1001' as kpi_id, ${sql} as value` });
    const [failed] = (await kpis.arrive("T")).triggeredModels;
    expect(failed).toMatchObject({ status: "FAILED", message: expect.stringMatching(/Row 1 has .*must be a number/) });
  });
});
