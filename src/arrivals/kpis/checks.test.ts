/** The checks of a model's result. */
import { describe, expect, test } from "vitest";
import { type Checked, type Expect, failedChecks, problemOfExpect } from "./checks.ts";

const MODEL: Checked = { kpis: ["KD1", "KD2"], expect: null, allow_empty: false };
const value = (kpi_id: string, number: number | string, dimensions = {}) => ({
  kpi_id,
  dimension_key: JSON.stringify(dimensions),
  dimensions,
  value: String(number),
});
const BOTH = [value("KD1", 1, { region: "EU" }), value("KD1", 3, { region: "US" }), value("KD2", -2)];
const check = (fields: Partial<Checked>, values = BOTH, computed = values.length) =>
  failedChecks({ ...MODEL, ...fields }, { values, computed });
const expecting = (expected: Expect) => check({ expect: expected });

describe("by default", () => {
  test("a value for each KPI passes", () => {
    expect(check({})).toEqual([]);
  });

  test("no rows, or none with a value, fail with one sentence", () => {
    expect(check({}, [])).toEqual(["It returned no rows. If that is right, set `allowEmpty: true`."]);
    expect(check({}, [], 3)).toEqual([
      "None of the 3 rows that it returned has a value. If that is right, set `allowEmpty: true`.",
    ]);
  });

  test("a KPI without a value fails, and is named", () => {
    expect(check({}, [value("KD2", 1)])).toEqual(["It returned no value for KD1, which it declares."]);
  });

  test("a model that declares no KPI is not checked", () => {
    expect(check({ kpis: [] }, [])).toEqual([]);
  });
});

describe("with `allowEmpty`", () => {
  test("no rows and missing KPIs pass", () => {
    expect(check({ allow_empty: true }, [])).toEqual([]);
    expect(check({ allow_empty: true }, [value("KD2", 1)])).toEqual([]);
  });

  test("and `kpis: all`, rows may be missing but no KPI, so no rows at all fail", () => {
    const all = { allow_empty: true, expect: { kpis: "all" } } as const;
    expect(check(all, [])).toEqual(["It returned no value for KD1, KD2, which it declares."]);
    expect(check(all, [value("KD2", 1)])).toEqual(["It returned no value for KD1, which it declares."]);
  });
});

describe("`expect`", () => {
  test("counts the rows that were returned", () => {
    expect(expecting({ rows: { min: 3, max: 3 } })).toEqual([]);
    expect(expecting({ rows: { min: 4 } })).toEqual(["It returned 3 rows; at least 4 are expected."]);
    expect(expecting({ rows: { max: 2 } })).toEqual(["It returned 3 rows; at most 2 are expected."]);
  });

  test.each([
    ["count == 3"],
    ["count >= 3.0 && count < 10"],
    ['kpis["KD1"].sum == 4.0 && kpis.KD1.count == 2'],
    ["kpis.KD2.max < 0"],
    ["kpis.KD1.min == 1 && kpis.KD1.max == 3"],
    ['rows.exists(r, r.dimensions.size() > 0 && r.dimensions.region == "EU")'],
    ['rows.filter(r, r.kpi_id == "KD1").all(r, r.value > 0.0)'],
  ])("passes where %s", (source) => {
    expect(expecting({ that: [source] })).toEqual([]);
  });

  test("names each condition that is false, fails, or is none", () => {
    expect(expecting({ that: ["kpis.KD2.min >= 0.0", "count", "kpis.KD9.sum > 0.0", "count == 3"] })).toEqual([
      "`kpis.KD2.min >= 0.0` is false.",
      "`count` is not a condition.",
      expect.stringMatching(/^`kpis\.KD9\.sum > 0\.0` failed: .*KD9/),
    ]);
  });

  test.each<[Expect, RegExp | undefined]>([
    [{}, undefined],
    [{ rows: { min: 1, max: 1 }, that: ["count > 0.0"] }, undefined],
    [{ rows: { min: 2, max: 1 } }, /^The field `expect\.rows`: its `min` is greater than its `max`$/],
    [{ that: ["true", "row > 1"] }, /^The field `expect\.that\[1\]`: .*`row`/],
    [{ that: ["count >"] }, /^The field `expect\.that\[0\]`: `count >` is not valid/],
  ])("%j is checked when the model is defined", (given, problem) => {
    if (problem === undefined) expect(problemOfExpect(given)).toBeUndefined();
    else expect(problemOfExpect(given)).toMatch(problem);
  });
});
