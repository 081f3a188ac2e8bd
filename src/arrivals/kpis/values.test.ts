/** Rows of a model's query, as engines return them, and the values that they become. */
import { describe, expect, test } from "vitest";
import { fingerprint } from "../../kernel/json/canonical.ts";
import { collectValues, ModelFailure } from "./values.ts";

type Row = Record<string, unknown>;

function collect(rows: Row[], kpis = ["KD1001", "KD1002"]) {
  const collector = collectValues(kpis);
  collector.add(rows);
  const values = collector.values().map(({ kpi_id, value, dimensions }) => [kpi_id, value, dimensions]);
  return { computed: collector.computed(), values };
}
const one = (row: Row) => collect([{ kpi_id: "KD1001", value: 1, ...row }]).values[0];
const failure = (rows: Row[], kpis?: string[]) => {
  try {
    collect(rows, kpis);
  } catch (error) {
    if (error instanceof ModelFailure) return error.message;
    throw error;
  }
  throw new Error("it did not fail");
};

describe("a row", () => {
  test("is a value; its further columns are dimensions", () => {
    expect(one({ value: 12.5, region: "EU", year: 2025, online: true, shop: null })).toEqual([
      "KD1001",
      "12.5",
      { region: "EU", year: 2025, online: true, shop: null },
    ]);
  });

  test.each([
    { KPI_ID: "KD1001", VALUE: 3 },
    { Kpi_Id: "KD1001", Value: 3 },
  ])("may spell kpi_id and value in any case: %j", (row) => {
    expect(collect([row]).values).toEqual([["KD1001", "3", {}]]);
  });

  test("keeps the case of its dimensions", () => {
    expect(one({ Region: "EU" })?.[2]).toEqual({ Region: "EU" });
  });

  test.each([
    ["9007199254740993", "9007199254740993"],
    ["-12.50", "-12.5"],
    ["1e3", "1000"],
    [" 7 ", "7"],
    [0, "0"],
    [0.1, "0.1"],
    [1e21, "1000000000000000000000"],
  ])("may have its value as text, and keeps it exactly: %j", (value, stored) => {
    expect(one({ value })?.[1]).toBe(stored);
  });

  test.each([
    [{ a: [1, "x"] }, '{"a":[1,"x"]}'],
    ["", ""],
    ["a\0b", "a\uFFFDb"],
    ["half \ud83d", "half \uFFFD"],
    ["😀数据\n\u0007", "😀数据\n\u0007"],
    ["x".repeat(2_000), "x".repeat(1_000)],
    [undefined, null],
  ])("stores any type of dimension: %j", (cell, stored) => {
    expect(one({ odd: cell })?.[2]).toEqual({ odd: stored });
  });

  test("may have a dimension of any name", () => {
    const row = JSON.parse('{"kpi_id": "KD1001", "value": 1, "__proto__": "EU", "constructor": "x", "区域": 1}') as Row;
    const [value] = collect([row]).values;
    expect(JSON.stringify(value?.[2])).toBe('{"__proto__":"EU","constructor":"x","区域":1}');
  });
});

describe("rows together", () => {
  test("are counted, stored or not", () => {
    const rows = [
      { kpi_id: "KD1001", value: 1 },
      { kpi_id: "KD1001", value: 2 },
      { kpi_id: "KD1002", value: null },
    ];
    expect(collect(rows)).toEqual({ computed: 3, values: [["KD1001", "2", {}]] });
  });

  test("with the same indicator and dimensions: the last counts, whatever the order of their columns", () => {
    const rows = [
      { kpi_id: "KD1001", value: 1, a: 1, b: 2 },
      { b: 2, a: 1, value: 9, kpi_id: "KD1001" },
      { kpi_id: "KD1001", value: 3, a: 1, b: null },
      { kpi_id: "KD1002", value: 4, a: 1, b: 2 },
    ];
    expect(collect(rows).values).toEqual([
      ["KD1001", "9", { a: 1, b: 2 }],
      ["KD1001", "3", { a: 1, b: null }],
      ["KD1002", "4", { a: 1, b: 2 }],
    ]);
  });

  test("have no value if the last has none", () => {
    const rows = [
      { kpi_id: "KD1001", value: 1, region: "EU" },
      { kpi_id: "KD1001", value: 2, region: "US" },
      { kpi_id: "KD1001", value: null, region: "EU" },
    ];
    expect(collect(rows).values).toEqual([["KD1001", "2", { region: "US" }]]);
  });

  test("distinguish text from number in their dimensions", () => {
    const rows = [1, "1", true, "true", null, "null"].map((d) => ({ kpi_id: "KD1001", value: 1, d }));
    expect(collect(rows).values).toHaveLength(6);
  });

  test("are numbered across batches", () => {
    const collector = collectValues(["KD1001"]);
    collector.add([{ kpi_id: "KD1001", value: 1 }]);
    collector.add([]);
    expect(() => collector.add([{ kpi_id: "KD1001", value: "x" }])).toThrow('Row 2 has `"x"` as its value');
  });

  test("have the key by which they are stored", () => {
    const collector = collectValues(["KD1001"]);
    collector.add([{ kpi_id: "KD1001", value: 1, b: 1, a: 2 }]);
    expect(collector.values()[0]?.dimension_key).toBe(fingerprint({ a: 2, b: 1 }));
  });

  test("may be none", () => {
    expect(collect([])).toEqual({ computed: 0, values: [] });
  });
});

describe("an invalid row fails the run with a sentence:", () => {
  test.each<[Row, string]>([
    [{ id: 1, value: 1 }, "Row 1 has no text in a column `kpi_id`; its columns are id, value."],
    [{ kpi_id: null, value: 1 }, "Row 1 has no text in a column `kpi_id`; its columns are kpi_id, value."],
    [{ kpi_id: 1001, value: 1 }, "Row 1 has no text in a column `kpi_id`; its columns are kpi_id, value."],
    [{ kpi_id: "", value: 1 }, "Row 1 has no text in a column `kpi_id`; its columns are kpi_id, value."],
    [{ kpi_id: "KD1001" }, "Row 1 has no column `value`; it must be a number, or null for none."],
    [{ kpi_id: "KD1001", value: "" }, 'Row 1 has `""` as its value; it must be a number, or null for none.'],
    [{ kpi_id: "KD1001", value: "many" }, 'Row 1 has `"many"` as its value; it must be a number, or null for none.'],
    [{ kpi_id: "KD1001", value: "NaN" }, 'Row 1 has `"NaN"` as its value; it must be a number, or null for none.'],
    [
      { kpi_id: "KD1001", value: "1e999" },
      'Row 1 has `"1e999"` as its value; it has at most 400 digits before and after the point.',
    ],
    [{ kpi_id: "KD1001", value: Number.NaN }, "Row 1 has `NaN` as its value; it must be a number, or null for none."],
    [
      { kpi_id: "KD1001", value: Number.NEGATIVE_INFINITY },
      "Row 1 has `-Infinity` as its value; it must be a number, or null for none.",
    ],
    [{ kpi_id: "KD1001", value: true }, "Row 1 has `true` as its value; it must be a number, or null for none."],
    [
      { kpi_id: "KD1001", value: "x".repeat(100) },
      `Row 1 has \`"${"x".repeat(39)}\` as its value; it must be a number, or null for none.`,
    ],
    [{ kpi_id: "kd1001", value: 1 }, "Row 1 has `kd1001`, which is not among the model's kpis (KD1001, KD1002)."],
  ])("%#: %j", (row, sentence) => {
    expect(failure([row])).toBe(sentence);
  });

  test("which row it was", () => {
    const good = { kpi_id: "KD1001", value: 1 };
    expect(failure([good, good, { kpi_id: "KD9", value: 1 }])).toMatch(/^Row 3 has `KD9`/);
  });

  test("and of many kpis the first few", () => {
    const kpis = Array.from({ length: 8 }, (_, index) => `K${index}`);
    expect(failure([{ kpi_id: "X", value: 1 }], kpis)).toContain("(K0, K1, K2, K3, K4 and 3 more)");
    expect(failure([{ kpi_id: "X", value: 1 }], [])).toBe("Row 1 has `X`, but the model has no kpis.");
  });
});
