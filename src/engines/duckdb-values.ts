/** Converts DuckDB's values to JSON, and JSON to parameters of DuckDB. engine.ts has the rules. */
import {
  BIGINT,
  BOOLEAN,
  DOUBLE,
  DuckDBArrayValue,
  DuckDBBlobValue,
  DuckDBDecimalValue,
  DuckDBListValue,
  DuckDBListVector,
  DuckDBMapValue,
  DuckDBMapVector,
  DuckDBStructValue,
  DuckDBStructVector,
  DuckDBTimestampMillisecondsValue,
  DuckDBTimestampNanosecondsValue,
  DuckDBTimestampSecondsValue,
  DuckDBTimestampTZValue,
  DuckDBTimestampValue,
  type DuckDBType,
  DuckDBUnionValue,
  type DuckDBValue,
  type DuckDBVector,
  LIST,
  listValue,
  SQLNULL,
  VARCHAR,
} from "@duckdb/node-api";
import { exactNumber } from "./exact-number.ts";
import { jsonValue } from "./json-value.ts";
import { kindOfItems } from "./params.ts";
import type { ResultSize } from "./result-size.ts";

const TIMESTAMPS = [
  DuckDBTimestampValue,
  DuckDBTimestampSecondsValue,
  DuckDBTimestampMillisecondsValue,
  DuckDBTimestampNanosecondsValue,
];

/**
 * The value of a row as JSON; `type` is the column's, because DuckDB returns JSON as text. Lists and maps are converted item by
 * item and counted first: one value can have millions of items.
 */
export function jsonAt(vector: DuckDBVector, row: number, size: ResultSize, type?: DuckDBType): unknown {
  if (vector instanceof DuckDBListVector) return itemsAt(vector, row, size, (items, at) => jsonAt(items, at, size));
  if (vector instanceof DuckDBMapVector) {
    const { listVector } = vector as unknown as { listVector: DuckDBListVector }; // The only way to its length.
    const entries = itemsAt(listVector, row, size, (items, at) => {
      const [key, value] = [0, 1].map((index) => (items as DuckDBStructVector).entryVectorAt(index));
      return [String(key?.getItem(at)), value && jsonAt(value, at, size)];
    });
    return entries && Object.fromEntries(entries);
  }
  if (vector instanceof DuckDBStructVector) {
    if (!vector.isItemValid(row)) return null;
    const { entryNames } = vector.type;
    return Object.fromEntries(entryNames.map((name, index) => [name, jsonAt(vector.entryVectorAt(index), row, size)]));
  }
  const value = vector.getItem(row);
  if (typeof value !== "string") return toJson(value);
  size.reserve(value.length);
  return type?.alias === "JSON" ? jsonValue(value) : value;
}

function itemsAt<T>(
  vector: DuckDBListVector,
  row: number,
  size: ResultSize,
  itemAt: (items: DuckDBVector, at: number) => T,
): T[] | null {
  const items = vector.getItemVector(row);
  if (!items) return null;
  size.reserveItems(items.itemCount);
  return Array.from({ length: items.itemCount }, (_, at) => itemAt(items, at));
}

function toJson(value: DuckDBValue | undefined): unknown {
  if (value === null || value === undefined || typeof value === "string") return value ?? null;
  if (typeof value === "boolean") return value;
  if (typeof value === "number") return Number.isFinite(value) ? value : String(value);
  if (typeof value === "bigint" || value instanceof DuckDBDecimalValue) return exactNumber(String(value));
  // Its `toString` uses the time zone of the machine.
  if (value instanceof DuckDBTimestampTZValue) {
    return iso(new DuckDBTimestampValue(value.micros)) + (value.isFinite ? "Z" : "");
  }
  if (TIMESTAMPS.some((Timestamp) => value instanceof Timestamp)) return iso(value);
  if (value instanceof DuckDBBlobValue) return Buffer.from(value.bytes).toString("base64");
  if (value instanceof DuckDBListValue || value instanceof DuckDBArrayValue) {
    return value.items.map((item) => toJson(item));
  }
  if (value instanceof DuckDBStructValue) {
    return Object.fromEntries(Object.entries(value.entries).map(([name, field]) => [name, toJson(field)]));
  }
  if (value instanceof DuckDBMapValue) {
    return Object.fromEntries(value.entries.map(({ key, value: entry }) => [String(key), toJson(entry)]));
  }
  if (value instanceof DuckDBUnionValue) return toJson(value.value);
  return String(value); // Dates, times, intervals, UUIDs and bits.
}

function iso(timestamp: { toString(): string }): string {
  return timestamp.toString().replace(" ", "T");
}

interface Bindable {
  value: DuckDBValue;
  type: DuckDBType;
}

export function bindable(value: unknown): Bindable {
  if (Array.isArray(value)) {
    const type = itemType(value);
    const itemOf = (item: unknown) => (type === DOUBLE ? ((item ?? null) as number | null) : bindable(item).value);
    if (type) return { value: listValue(value.map(itemOf)), type: LIST(type) };
  }
  if (value === null || value === undefined) return { value: null, type: SQLNULL };
  if (typeof value === "string") return { value, type: VARCHAR };
  if (typeof value === "boolean") return { value, type: BOOLEAN };
  if (typeof value === "number") {
    return Number.isSafeInteger(value) ? { value: BigInt(value), type: BIGINT } : { value, type: DOUBLE };
  }
  return { value: JSON.stringify(value), type: VARCHAR };
}

function itemType(items: readonly unknown[]): DuckDBType | undefined {
  switch (kindOfItems(items)) {
    case "string":
      return VARCHAR;
    case "boolean":
      return BOOLEAN;
    case "number":
      return items.every((item) => item === null || Number.isSafeInteger(item)) ? BIGINT : DOUBLE;
    case "null":
      return SQLNULL; // An empty list fits anywhere.
    case undefined:
      return undefined;
  }
}
