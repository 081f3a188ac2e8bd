/** The columns of a record: the values of `outputFields`, each of the type that the definition gives it. */
import type { OutputField } from "../definition/policy.ts";
import { jsonText } from "./numbers.ts";
import { compilePath, type Path } from "./paths.ts";
import { isoTime, timeOf } from "./times.ts";
import { textOf, truthOf, wordOf } from "./values.ts";

/** An integer beyond 2^53 is a bigint, a date its text (`2026-08-20`), JSON its text. */
export type OutputValue = string | number | bigint | boolean | Date | null;

export interface OutputRow {
  /** In the order of the fields. */
  values: OutputValue[];
  /** Fields whose value is not of their type, and therefore null. */
  rejected: { name: string; reason: string }[];
}

const INT64_MAX = 2n ** 63n - 1n;

/** `data` is what `parseRecord` returns. */
export function compileOutput(fields: readonly OutputField[]): (data: unknown) => OutputRow {
  const columns = fields.map((field) => ({ field, path: compilePath(field.path) }));
  return (data) => {
    const row: OutputRow = { values: [], rejected: [] };
    for (const { field, path } of columns) {
      const found = field.type === "json" ? jsonValue(path, data) : path.first(data);
      const value = found === undefined || found === null ? null : convert[field.type](found);
      if (value === undefined) {
        row.rejected.push({ name: field.name, reason: `${kindOf(found)} is not a value of type ${field.type}` });
      }
      row.values.push(value ?? null);
    }
    return row;
  };
}

const convert: Record<OutputField["type"], (value: unknown) => OutputValue | undefined> = {
  string: (value) => textOf(value)?.toWellFormed(),
  integer: integerOf,
  number: numberOf,
  boolean: truthOf,
  date: (value) => dateTime(value)?.toISOString().slice(0, 10),
  timestamp: dateTime,
  json: jsonText,
};

function integerOf(value: unknown): number | bigint | undefined {
  const word = wordOf(value);
  if (word === undefined || !/^[+-]?\d{1,30}(\.0+)?$/.test(word)) return undefined;
  const exact = BigInt(word.replace(/^\+|\.0+$/g, ""));
  if (exact > INT64_MAX || exact < -INT64_MAX - 1n) return undefined;
  const number = Number(exact);
  return Number.isSafeInteger(number) ? number : exact;
}

function numberOf(value: unknown): number | undefined {
  const word = wordOf(value);
  if (word === undefined || !/^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$/.test(word)) return undefined;
  const number = Number(word);
  return Number.isFinite(number) ? number : undefined;
}

function dateTime(value: unknown): Date | undefined {
  return isoTime(wordOf(value) ?? "") ?? timeOf(value, "parts");
}

function jsonValue(path: Path, data: unknown): unknown {
  return path.singular ? path.first(data) : path.all(data);
}

function kindOf(value: unknown): string {
  if (Array.isArray(value)) return "a list";
  if (typeof value === "object") return "an object";
  return `a ${typeof value}`;
}
