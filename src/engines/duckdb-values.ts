/** Converts DuckDB's values to JSON, and JSON to parameters of DuckDB. engine.ts has the rules. */
import {
  BIGINT,
  BOOLEAN,
  DOUBLE,
  DuckDBArrayValue,
  DuckDBBlobValue,
  DuckDBDecimalValue,
  DuckDBListValue,
  DuckDBMapValue,
  DuckDBStructValue,
  DuckDBTimestampMillisecondsValue,
  DuckDBTimestampNanosecondsValue,
  DuckDBTimestampSecondsValue,
  DuckDBTimestampTZValue,
  DuckDBTimestampValue,
  type DuckDBType,
  DuckDBUnionValue,
  type DuckDBValue,
  LIST,
  listValue,
  SQLNULL,
  VARCHAR,
} from "@duckdb/node-api";
import { exactNumber } from "./exact-number.ts";
import { kindOfItems } from "./params.ts";

const TIMESTAMPS = [
  DuckDBTimestampValue,
  DuckDBTimestampSecondsValue,
  DuckDBTimestampMillisecondsValue,
  DuckDBTimestampNanosecondsValue,
];

/** `type` is the column's: DuckDB returns JSON as text. */
export function toJson(value: DuckDBValue | undefined, type?: DuckDBType): unknown {
  if (value === null || value === undefined) return null;
  if (typeof value === "string") return type?.alias === "JSON" ? JSON.parse(value) : value;
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
