import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { compileFormula, evaluateFormula, type Formula, type KpiValue } from "./formula.ts";

const VALUES = { KD1001: 4, KD1002: 3, zero: 0, "KD-1003": 5 };

describe("numbers are doubles", () => {
  test.each<[string, number]>([
    ["KD1001 * 2", 8],
    ["2 * KD1001", 8],
    ["KD1002 / 2", 1.5],
    ["KD1001 / KD1002 * 100", (4 / 3) * 100],
    ["KD1001 + KD1002 - 1", 6],
    ["1 / 2 * KD1001", 2],
    ["KD1001 * (1 / 2)", 2],
    ["7 % KD1002", 1],
    ["-KD1001", -4],
    ["-(KD1001 - 5)", 1],
    ["KD1001 - -1", 5],
    ["KD1001-1", 3],
    ["(KD1001 + KD1002) * 0.5", 3.5],
    ["KD1001 * 1.5e2", 600],
    ["0x10 * KD1001 + 5u", 69],
    ["KD1001 * 9223372036854775807", 4 * 2 ** 63],
    ["KD1001 > 0 ? 1 : 0.5", 1],
    ["KD1001 > 0 ? KD1002 / 2 : 0", 1.5],
    ["KD1001 < 0 ? KD1002 : -1", -1],
    ["KD1001 == 4 && KD1002 != 4.0 && !(KD1001 <= KD1002) ? 1 : 0", 1],
    ["zero == 0 ? 0 : KD1001 / zero", 0],
    ["KD1001 in [1, 4] ? 1 : 0", 1],
    ["[KD1001, KD1002].map(part, part * 2)[1]", 6],
    ["cel.bind(half, KD1001 / 2, half * half)", 4],
    ["int(KD1001) / 8", 0.5],
    ["KD1001 // the whole\n * 2", 8],
  ])("%s", (expression, expected) => {
    expect(valueOf(expression)).toBe(expected);
  });

  test("and compute as JavaScript does, whatever the numbers", () => {
    const number = fc.oneof(fc.integer(), fc.double({ noNaN: true, noDefaultInfinity: true, min: -1e100, max: 1e100 }));
    const literal = fc.oneof(fc.nat(), fc.double({ noNaN: true, min: 1e-100, max: 1e100 }));
    fc.assert(
      fc.property(number, number, literal, (a, b, c) => {
        const text = Number.isInteger(c) && c < 2 ** 53 ? `${c}` : c.toExponential();
        const values = { a, b };
        expect(valueOf(`a + b * ${text}`, values)).toBe(a + b * c);
        expect(valueOf(`${text} - a - b`, values)).toBe(c - a - b);
        expect(valueOf(`a < b || a == ${text} ? ${text} : -a`, values)).toBe(a < b || a === c ? c : -a);
        if (c !== 0) expect(valueOf(`(a - b) / ${text}`, values)).toBe((a - b) / c);
      }),
    );
  });
});

describe("parts", () => {
  test.each([
    ["KD1001 / KD1002 * KD1001", ["KD1001", "KD1002"]],
    ['kpi["KD-1003"] + KD1001', ["KD1001", "KD-1003"]],
    ["kpi.KD1001 + KD1001", ["KD1001"]],
    ["[1, 2].exists(KD1001, KD1001 == KD1002) ? 1 : 2", ["KD1002"]],
    ["double(KD1001) + size([KD1002])", ["KD1001", "KD1002"]],
    ["constructor + toString", ["constructor", "toString"]],
  ])("of %s", (expression, references) => {
    expect(compiled(expression).references).toEqual(references);
  });

  test("may have ids that are not CEL identifiers", () => {
    expect(valueOf('kpi["KD-1003"] * KD1001')).toBe(20);
    expect(valueOf('kpi["收入"] * kpi["a \\"b\\""]', { 收入: 2, 'a "b"': 3 })).toBe(6);
    expect(valueOf('kpi["kpi"] + kpi["int"]', { kpi: 1, int: 2 })).toBe(3);
  });
});

describe("a formula is refused", () => {
  test.each([
    ["", "The expression is empty."],
    ["KD1001 +", "`KD1001 +` is not valid at column 9: unexpected token: EOF."],
    ["size(KD1001, 2)", "`size(KD1001, 2)` is not valid at column 1: found no matching overload for 'size(dyn, int)'."],
    ["KD1001 * 2 + if", "`KD1001 * 2 + if` is not valid at column 14: reserved identifier: if."],
    ["2 + 3", "`2 + 3` names no KPI to compute KD9 from."],
    ["KD9 + 1", "`KD9 + 1` computes KD9 from itself."],
    ['kpi["KD9"] + 1', '`kpi["KD9"] + 1` computes KD9 from itself.'],
    ["KD1001 > 2", "`KD1001 > 2` does not give a number."],
    ["[KD1001]", "`[KD1001]` does not give a number."],
    ["kpi * 2", '`kpi * 2` must name each of its KPIs literally, like `kpi["KD-1001"]`.'],
    ["kpi[KD1001]", '`kpi[KD1001]` must name each of its KPIs literally, like `kpi["KD-1001"]`.'],
    [
      "sales.total * 2",
      '`sales.total * 2` takes a part of sales, which is a number; if sales.total is one id, write `kpi["sales.total"]`.',
    ],
    ["kpi.__proto__", "`kpi.__proto__` uses `__proto__` at column 5, which is not allowed as a name."],
  ])("%s", (expression, problem) => {
    expect(compileFormula("KD9", expression)).toEqual({ problems: [problem] });
  });

  test("when it is too long, or would be with its numbers as doubles", () => {
    expect(compileFormula("KD9", `KD1${" + 1".repeat(100_000)}`)).toEqual({
      problems: [expect.stringMatching(/^An expression has at most 4096 characters; `KD1 \+ 1.*` has 400003\.$/)],
    });
    expect(compileFormula("KD9", `KD1${"+1".repeat(1_500)}`)).toEqual({
      problems: [expect.stringMatching(/^`KD1\+1.*` has too many numbers in it: split it into several KPIs\.$/)],
    });
  });

  test("with a sentence that never shows the rewritten text, whatever the expression", () => {
    fc.assert(
      fc.property(fc.oneof(fc.string(), fc.stringMatching(/^[KD1()+*/?:. "[\]-]{1,20}$/)), (expression) => {
        const result = compileFormula("KD9", expression);
        if ("problems" in result) expect(result.problems.join()).not.toContain("dyn(");
      }),
      { numRuns: 1_000 },
    );
  });
});

describe("no value", () => {
  test.each([
    ["KD1001 / zero", "`KD1001 / zero` failed: division by zero."],
    ["100 / (KD1001 / zero)", "`100 / (KD1001 / zero)` failed: division by zero."],
    ["100 / ((KD1001 * 2.0) / (zero * 2.0))", "`100 / ((KD1001 * 2.0) / (zero * 2.0))` failed: division by zero."],
    ["1 / 0 > 1 ? KD1001 : KD1002", "`1 / 0 > 1 ? KD1001 : KD1002` failed: division by zero."],
    ["KD1001 % zero", "`KD1001 % zero` failed: division by zero."],
    ["KD1001 * 1e308", "`KD1001 * 1e308` failed: its result is not a finite number (divided by zero?)."],
    ["KD1001 == 4 ? 'four' : 1", "`KD1001 == 4 ? 'four' : 1` does not give a number."],
  ])("for %s, and why", (expression, reason) => {
    const parts = new Map(Object.entries(VALUES).map(([kpiId, value]) => [kpiId, [{ dimensions: {}, value }]]));
    expect(evaluateFormula(compiled(expression), parts)).toEqual({
      rows: [],
      missing: [{ dimensions: {}, reasons: [reason] }],
    });
  });
});

describe("sets of dimensions", () => {
  const ratio = compiled("KD1001 / KD1002");
  const evaluate = (parts: Record<string, KpiValue[]>, formula = ratio) =>
    evaluateFormula(formula, new Map(Object.entries(parts)));
  const row = (value: number, dimensions: KpiValue["dimensions"] = {}): KpiValue => ({ dimensions, value });

  test("are computed each on its own, whatever the order of their keys", () => {
    expect(
      evaluate({
        KD1001: [row(10, { region: "N", year: 2024 }), row(9, { region: "S", year: 2024 })],
        KD1002: [row(3, { year: 2024, region: "S" }), row(5, { year: 2024, region: "N" })],
      }),
    ).toEqual({ rows: [row(2, { region: "N", year: 2024 }), row(3, { region: "S", year: 2024 })], missing: [] });
  });

  test("differ where a value has another type", () => {
    const { rows, missing } = evaluate({ KD1001: [row(10, { year: 2024 })], KD1002: [row(5, { year: "2024" })] });
    expect(rows).toEqual([]);
    expect(missing).toHaveLength(2);
  });

  test("all share a part without dimensions", () => {
    expect(evaluate({ KD1001: [row(10, { region: "N" }), row(30, { region: "S" })], KD1002: [row(5)] }).rows).toEqual([
      row(2, { region: "N" }),
      row(6, { region: "S" }),
    ]);
  });

  test("are a single empty one where no part has dimensions", () => {
    expect(evaluate({ KD1001: [row(10)], KD1002: [row(5)] })).toEqual({ rows: [row(2)], missing: [] });
  });

  test("match a total beside rows with dimensions only to other totals", () => {
    expect(
      evaluate({
        KD1001: [row(40), row(10, { region: "N" }), row(30, { region: "S" })],
        KD1002: [row(8), row(5, { region: "N" })],
      }),
    ).toEqual({
      rows: [row(5), row(2, { region: "N" })],
      missing: [{ dimensions: { region: "S" }, reasons: ["KD1002 has no value for these dimensions."] }],
    });
  });

  test("have no value where a part has none, and name every such part", () => {
    expect(evaluate({ KD1001: [row(10, { region: "N" })], KD1002: [row(5, { region: "S" })] })).toEqual({
      rows: [],
      missing: [
        { dimensions: { region: "N" }, reasons: ["KD1002 has no value for these dimensions."] },
        { dimensions: { region: "S" }, reasons: ["KD1001 has no value for these dimensions."] },
      ],
    });
    expect(evaluate({ KD1001: [row(10, { region: "N" })] }).missing).toEqual([
      { dimensions: { region: "N" }, reasons: ["KD1002 has no value."] },
    ]);
    expect(evaluate({ KD1002: [] }).missing).toEqual([
      { dimensions: {}, reasons: ["KD1001 has no value.", "KD1002 has no value."] },
    ]);
  });

  test("have no value where a part is not a number, even if the formula would not read it", () => {
    const formula = compiled("KD1001 > 0 ? 1 : KD1002");
    expect(evaluate({ KD1001: [row(1)], KD1002: [row(Number.NaN)] }, formula).missing).toEqual([
      { dimensions: {}, reasons: ["KD1002 is NaN, which nothing can be computed from."] },
    ]);
    expect(evaluate({ KD1001: [row(1)] }, formula).missing).toEqual([
      { dimensions: {}, reasons: ["KD1002 has no value."] },
    ]);
  });

  test("each have a value or a reason, and never both", () => {
    const dimensions = fc.oneof(
      fc.constant({}),
      fc.record({ region: fc.constantFrom("N", "S", null), year: fc.constantFrom(2023, 2024) }, { requiredKeys: [] }),
    );
    const column = fc.uniqueArray(fc.record({ dimensions, value: fc.integer({ min: -2, max: 2 }) }), {
      selector: ({ dimensions: { region, year } }: { dimensions: { region?: string | null; year?: number } }) =>
        `${region} ${year}`,
    });
    fc.assert(
      fc.property(column, column, (KD1001, KD1002) => {
        const { rows, missing } = evaluate({ KD1001, KD1002 });
        const keyOf = ({ dimensions: of }: Pick<KpiValue, "dimensions">) => `${of["region"]} ${of["year"]}`;
        const find = (part: KpiValue[], key: string) => {
          const isDetailed = part.some(({ dimensions: of }) => Object.keys(of).length > 0);
          return part.find((candidate) => !isDetailed || keyOf(candidate) === key)?.value;
        };
        const expected = new Map<string, number | undefined>();
        const detailed = [KD1001, KD1002].filter((part) =>
          part.some(({ dimensions: of }) => Object.keys(of).length > 0),
        );
        const keys = detailed.length > 0 ? detailed.flat().map(keyOf) : [keyOf({ dimensions: {} })];
        for (const key of keys) {
          const [over, under] = [find(KD1001, key), find(KD1002, key)];
          expected.set(key, over === undefined || !under ? undefined : over / under);
        }
        const actual = new Map<string, number | undefined>([
          ...rows.map((one) => [keyOf(one), one.value] as const),
          ...missing.map((one) => [keyOf(one), undefined] as const),
        ]);
        expect(rows.length + missing.length).toBe(expected.size);
        expect(actual).toEqual(expected);
        expect(missing.every(({ reasons }) => reasons.length > 0)).toBe(true);
      }),
    );
  });

  test("take linear time", () => {
    const rows = Array.from({ length: 50_000 }, (_, index) => row(index + 1, { customer: index }));
    const startedAt = performance.now();
    expect(evaluate({ KD1001: rows, KD1002: rows.toReversed() }).rows).toHaveLength(rows.length);
    // Half a second; if every row were compared with every other, some minutes.
    expect(performance.now() - startedAt).toBeLessThan(20_000);
  });
});

function compiled(expression: string): Formula {
  const result = compileFormula("KD9", expression);
  if ("problems" in result) throw new Error(result.problems.join(" "));
  return result;
}

function valueOf(expression: string, values: Record<string, number> = VALUES): number {
  return compiled(expression).evaluate(new Map(Object.entries(values)));
}
