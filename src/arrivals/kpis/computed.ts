/** Recomputes COMPUTED indicators in the transaction that stores their parts, so readers see both or neither. */

import type { Queryable } from "../../kernel/data/db.ts";
import { fingerprint } from "../../kernel/json/canonical.ts";
import {
  dependingKpis,
  type KpiWrite,
  lockComputed,
  replaceKpiValues,
  type ValueSource,
  valuesOf,
} from "../store/kpis.ts";
import { decimalOf } from "./exact-value.ts";
import { compileFormula, evaluateFormula, type Formula, type KpiValue } from "./formula.ts";
import { createIndicatorGraph, type Indicator } from "./indicator-graph.ts";

/** Evaluates all indicators that depend on the changed ones, in dependency order; answers their ids. */
export async function recompute(tx: Queryable, changedIds: readonly string[], source: ValueSource): Promise<string[]> {
  const depending = await dependingKpis(tx, changedIds);
  if (depending.length === 0) return [];
  await lockComputed(tx, source.opTime);
  const formulas = new Map(depending.map((kpi) => [kpi.kpi_id, formulaOf(kpi)]));
  const order = createIndicatorGraph(depending.map(indicatorOf)).affectedBy(changedIds);
  const parts = await readParts(
    tx,
    source.opTime,
    [...formulas.values()].flatMap(({ references }) => references),
  );
  const results = order.flatMap((kpiId) => {
    const formula = formulas.get(kpiId);
    if (!formula) throw new Error(`${kpiId} is to be computed but has no formula`);
    const { rows } = evaluateFormula(formula, parts);
    parts.set(kpiId, rows);
    return rows.map(({ dimensions, value }) => ({
      kpi_id: kpiId,
      dimension_key: fingerprint(dimensions),
      dimensions,
      value: decimalFrom(kpiId, value),
    }));
  });
  await replaceKpiValues(tx, order, results, { ...source, modelId: null });
  return order;
}

/** Throws on a value that is not finite, which is a bug: a formula gives no such value. */
function decimalFrom(kpiId: string, value: number): string {
  const decimal = decimalOf(value);
  if (decimal === undefined) throw new Error(`the formula of ${kpiId} gives ${value}`);
  return decimal;
}

/** The values in doubles, in which formulas compute. */
export async function readParts(
  db: Queryable,
  opTime: string,
  kpiIds: readonly string[],
): Promise<Map<string, KpiValue[]>> {
  const parts = new Map<string, KpiValue[]>();
  for (const { kpi_id, dimensions, value: decimal } of await valuesOf(db, opTime, [...new Set(kpiIds)])) {
    const value = Number(decimal);
    const known = parts.get(kpi_id);
    if (known) known.push({ dimensions, value });
    else parts.set(kpi_id, [{ dimensions, value }]);
  }
  return parts;
}

/** Throws on a bad formula, which is a bug: it was checked when it was defined. */
export function formulaOf({ kpi_id, expression }: KpiWrite): Formula {
  const formula = compileFormula(kpi_id, expression ?? "");
  if ("problems" in formula) throw new Error(`the formula of ${kpi_id} cannot be used: ${formula.problems[0]}`);
  return formula;
}

export function indicatorOf({ kpi_id, type, depends_on }: KpiWrite): Indicator {
  return { kpiId: kpi_id, type, references: depends_on };
}
