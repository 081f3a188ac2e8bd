/**
 * The checks of a model's result, before anything is stored. Without any, a model that declares KPIs must return a value for
 * each of them: a KPI that silently keeps yesterday's meaning is worse than a failed run.
 */
import { compileExpression, type Expression, ExpressionError } from "../../kernel/expressions/cel.ts";
import { counted, listed } from "../../kernel/text/sentences.ts";
import type { ValueWrite } from "../store/kpis.ts";

export interface Expect {
  /** How many rows it returns. */
  rows?: { min?: number; max?: number };
  /** Every KPI that the model declares has a value. */
  kpis?: "all";
  /** Conditions in CEL over the result. */
  that?: string[];
  /** `warn` stores the values and tells subscribers all the same. */
  onFail?: "fail" | "warn";
}

export interface Checked {
  kpis: readonly string[];
  expect: Expect | null;
  /** No row, and KPIs without a value, are fine. */
  allow_empty: boolean;
}

export interface Result {
  /** The number of rows that it returned. */
  computed: number;
  values: readonly ValueWrite[];
}

const NAMES_SHOWN = 5;
/** `count`: rows returned. `kpis`: by id, `{count, sum, min, max}` of its values. `rows`: the values, with their dimensions. */
const VARIABLES = ["count", "kpis", "rows"];

/** The first problem of the checks of a model, as a sentence that names the field. */
export function problemOfExpect({ rows, that = [] }: Expect): string | undefined {
  const { min, max } = rows ?? {};
  if (min !== undefined && max !== undefined && min > max) {
    return "The field `expect.rows`: its `min` is greater than its `max`";
  }
  for (const [index, source] of that.entries()) {
    try {
      compileExpression(source, VARIABLES);
    } catch (error) {
      if (!(error instanceof ExpressionError)) throw error;
      return `The field \`expect.that[${index}]\`: ${error.message.replace(/\.$/, "")}`;
    }
  }
  return undefined;
}

/** What the result does not fulfil, as sentences. */
export function failedChecks(model: Checked, result: Result): string[] {
  const { rows, kpis, that = [] } = model.expect ?? {};
  return [
    ...emptiness(model, result),
    ...(rows ? rowProblems(rows, result.computed) : []),
    ...(kpis === "all" || !model.allow_empty ? missingKpis(model, result) : []),
    ...that.flatMap((source) => conditionProblems(source, model, result)),
  ];
}

/** A model that declares no KPI has nothing to store: it does its work in a chain, or produces a table. */
function emptiness({ kpis, allow_empty }: Checked, { computed, values }: Result): string[] {
  if (allow_empty || kpis.length === 0 || values.length > 0) return [];
  const hint = "If that is right, set `allowEmpty: true`.";
  if (computed === 0) return [`It returned no rows. ${hint}`];
  return [`None of the ${counted(computed, "row")} that it returned has a value. ${hint}`];
}

function rowProblems({ min, max }: NonNullable<Expect["rows"]>, computed: number): string[] {
  const returned = `It returned ${counted(computed, "row")}`;
  if (min !== undefined && computed < min) return [`${returned}; at least ${min} are expected.`];
  if (max !== undefined && computed > max) return [`${returned}; at most ${max} are expected.`];
  return [];
}

function missingKpis({ kpis, allow_empty }: Checked, { values }: Result): string[] {
  if (values.length === 0 && !allow_empty) return []; // That has its own sentence.
  const present = new Set(values.map(({ kpi_id }) => kpi_id));
  const missing = kpis.filter((kpiId) => !present.has(kpiId));
  if (missing.length === 0) return [];
  return [`It returned no value for ${listed(missing, NAMES_SHOWN)}, which it declares.`];
}

function conditionProblems(source: string, model: Checked, result: Result): string[] {
  try {
    const expression = compileExpression(source, VARIABLES);
    const met = expression.evaluate(variablesFor(expression, model, result));
    return met === true ? [] : [`\`${source}\` is ${met === false ? "false" : "not a condition"}.`];
  } catch (error) {
    if (!(error instanceof ExpressionError)) throw error;
    return [error.message];
  }
}

/** Only those that it uses: a result may have half a million rows. */
function variablesFor({ references }: Expression, { kpis }: Checked, { computed, values }: Result) {
  return {
    count: computed,
    ...(references.has("kpis") ? { kpis: summaries(kpis, values) } : {}),
    ...(references.has("rows") ? { rows: values.map(rowOf) } : {}),
  };
}

function rowOf({ kpi_id, value, dimensions }: ValueWrite) {
  return { kpi_id, value: Number(value), dimensions };
}

interface Summary {
  count: number;
  sum: number;
  min: number | null;
  max: number | null;
}

function summaries(kpis: readonly string[], values: readonly ValueWrite[]): Record<string, Summary> {
  const byKpi = new Map<string, Summary>(kpis.map((kpiId) => [kpiId, { count: 0, sum: 0, min: null, max: null }]));
  for (const { kpi_id, value } of values) {
    const summary = byKpi.get(kpi_id);
    if (!summary) continue;
    const number = Number(value);
    summary.count += 1;
    summary.sum += number;
    summary.min = Math.min(summary.min ?? number, number);
    summary.max = Math.max(summary.max ?? number, number);
  }
  return Object.fromEntries(byKpi);
}
