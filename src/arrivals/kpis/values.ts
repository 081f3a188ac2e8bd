/** Turns the rows of a model's query into values of indicators: `kpi_id`, `value`, and every other column a dimension. */

import { storableText } from "../../kernel/data/storable.ts";
import { fingerprint } from "../../kernel/json/canonical.ts";
import { listed } from "../../kernel/text/sentences.ts";
import type { ValueWrite } from "../store/kpis.ts";
import { DIGITS_MAX, decimalOf } from "./exact-value.ts";
import type { Dimensions } from "./formula.ts";

/** The rows of a model are not valid; running it again would not change that. */
export class ModelFailure extends Error {}

export interface ValueCollector {
  add(rows: readonly Readonly<Record<string, unknown>>[]): void;
  /** The number of rows added. */
  computed(): number;
  /** The last row for an indicator and its dimensions wins; if its value is null, there is none. */
  values(): ValueWrite[];
}

const NAMES_SHOWN = 5;
const DIMENSION_LENGTH_MAX = 1_000;

/** `kpiIds` are those that the model may return. */
export function collectValues(kpiIds: readonly string[]): ValueCollector {
  const own = new Set(kpiIds);
  const values = new Map<string, ValueWrite>();
  let computed = 0;

  function add(row: Readonly<Record<string, unknown>>): void {
    computed += 1;
    const { kpiId, value, dimensions } = partsOf(row, computed);
    if (!own.has(kpiId)) throw new ModelFailure(`Row ${computed} has \`${kpiId}\`, ${notAmong(kpiIds)}.`);
    const dimension_key = fingerprint(dimensions);
    const key = `${kpiId} ${dimension_key}`;
    if (value === null) values.delete(key);
    else values.set(key, { kpi_id: kpiId, dimension_key, dimensions, value });
  }

  return {
    add: (rows) => rows.forEach(add),
    computed: () => computed,
    values: () => [...values.values()],
  };
}

function notAmong(kpiIds: readonly string[]): string {
  if (kpiIds.length === 0) return "but the model has no kpis";
  return `which is not among the model's kpis (${listed(kpiIds, NAMES_SHOWN)})`;
}

function partsOf(row: Readonly<Record<string, unknown>>, number: number) {
  let kpiId: unknown;
  let value: unknown;
  const dimensions: [name: string, cell: Dimensions[string]][] = [];
  for (const [name, cell] of Object.entries(row)) {
    const lower = name.toLowerCase(); // Engines differ in the case of a name that is not quoted.
    if (lower === "kpi_id") kpiId = cell;
    else if (lower === "value") value = cell;
    else dimensions.push([name, dimensionOf(cell)]);
  }
  if (typeof kpiId !== "string" || kpiId === "") {
    const columns = Object.keys(row).join(", ");
    throw new ModelFailure(`Row ${number} has no text in a column \`kpi_id\`; its columns are ${columns}.`);
  }
  return { kpiId, value: decimalIn(value, number), dimensions: Object.fromEntries(dimensions) };
}

/** Engines return a number that a double cannot hold exactly as text. */
function decimalIn(value: unknown, number: number): string | null {
  if (value === null) return null;
  const decimal = typeof value === "string" || typeof value === "number" ? decimalOf(value) : undefined;
  if (decimal !== undefined) return decimal;
  const shown = value === undefined ? "no column `value`" : `\`${shownAs(value)}\` as its value`;
  const rule = isLong(value)
    ? `it has at most ${DIGITS_MAX} digits before and after the point`
    : "it must be a number, or null for none";
  throw new ModelFailure(`Row ${number} has ${shown}; ${rule}.`);
}

function isLong(value: unknown): boolean {
  return typeof value === "string" && /\d/.test(value) && !Number.isNaN(Number(value));
}

/** JSON has no NaN and no infinities. */
function shownAs(value: unknown): string {
  return (typeof value === "number" ? String(value) : (JSON.stringify(value) ?? "")).slice(0, 40);
}

function dimensionOf(cell: unknown): Dimensions[string] {
  if (cell === null || cell === undefined) return null;
  if (typeof cell === "number" || typeof cell === "boolean") return cell;
  return storableText(typeof cell === "string" ? cell : JSON.stringify(cell), DIMENSION_LENGTH_MAX);
}
