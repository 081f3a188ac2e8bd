/** Converts DuckDB's values to JSON, and JSON to parameters of DuckDB. engine.ts has the rules. */
import {
  BIGINT,
  BOOLEAN,
  DOUBLE,
  DuckDBArrayType,
  DuckDBArrayValue,
  DuckDBBlobValue,
  DuckDBDecimalValue,
  DuckDBFloatType,
  DuckDBIntervalValue,
  DuckDBListType,
  DuckDBListValue,
  DuckDBListVector,
  DuckDBMapType,
  DuckDBMapValue,
  DuckDBMapVector,
  DuckDBStructType,
  DuckDBStructValue,
  DuckDBStructVector,
  DuckDBTimestampMillisecondsValue,
  DuckDBTimestampNanosecondsValue,
  DuckDBTimestampSecondsValue,
  DuckDBTimestampTZValue,
  DuckDBTimestampValue,
  DuckDBTimeTZValue,
  type DuckDBType,
  DuckDBUnionType,
  DuckDBUnionValue,
  type DuckDBValue,
  type DuckDBVector,
  LIST,
  listValue,
  SQLNULL,
  VARCHAR,
} from "@duckdb/node-api";
import { isoDuration } from "../result/duration.ts";
import { exactNumber } from "../result/exact-number.ts";
import { jsonValue } from "../result/json-value.ts";
import { shortestReal } from "../result/real.ts";
import type { ResultSize } from "../result/size.ts";
import { zonedTime } from "../result/times.ts";
import { kindOfItems } from "../sql/params.ts";

const TIMESTAMPS = [
  DuckDBTimestampValue,
  DuckDBTimestampSecondsValue,
  DuckDBTimestampMillisecondsValue,
  DuckDBTimestampNanosecondsValue,
];

/**
 * The value of a row as JSON. The type is needed beside it: JSON is returned as text, and a number of four bytes as one of eight.
 * Lists and maps are converted item by item and counted first: one value can have millions of items.
 */
export function jsonAt(vector: DuckDBVector, row: number, size: ResultSize, type: DuckDBType = vector.type): unknown {
  if (vector instanceof DuckDBListVector && type instanceof DuckDBListType) {
    return itemsAt(vector, row, size, (items, at) => jsonAt(items, at, size, type.valueType));
  }
  if (vector instanceof DuckDBMapVector && type instanceof DuckDBMapType) {
    const { listVector } = vector as unknown as { listVector: DuckDBListVector }; // The only way to its length.
    const entries = itemsAt(listVector, row, size, (items, at) => {
      const [key, value] = [0, 1].map((index) => (items as DuckDBStructVector).entryVectorAt(index));
      return [keyOf(key?.getItem(at), type.keyType), value && jsonAt(value, at, size, type.valueType)];
    });
    return entries && Object.fromEntries(entries);
  }
  if (vector instanceof DuckDBStructVector && type instanceof DuckDBStructType) {
    if (!vector.isItemValid(row)) return null;
    const fields = type.entryNames.map((name, index) => [
      name,
      jsonAt(vector.entryVectorAt(index), row, size, type.entryTypes[index]),
    ]);
    return Object.fromEntries(fields);
  }
  const value = vector.getItem(row);
  if (typeof value === "string") size.reserve(value.length);
  return toJson(value, type);
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

function toJson(value: DuckDBValue | undefined, type: DuckDBType | undefined): unknown {
  if (value === null || value === undefined) return null;
  if (typeof value === "string") return type?.alias === "JSON" ? jsonValue(value) : value;
  if (typeof value === "boolean") return value;
  if (typeof value === "number") {
    if (!Number.isFinite(value)) return String(value);
    return type instanceof DuckDBFloatType ? shortestReal(value) : value;
  }
  if (typeof value === "bigint" || value instanceof DuckDBDecimalValue) return exactNumber(String(value));
  // Its `toString` uses the time zone of the machine.
  if (value instanceof DuckDBTimestampTZValue) {
    return iso(new DuckDBTimestampValue(value.micros)) + (value.isFinite ? "Z" : "");
  }
  if (TIMESTAMPS.some((Timestamp) => value instanceof Timestamp)) return iso(value);
  if (value instanceof DuckDBTimeTZValue) return zonedTime(value.toString());
  if (value instanceof DuckDBIntervalValue) return isoDuration(value);
  if (value instanceof DuckDBBlobValue) return Buffer.from(value.bytes).toString("base64");
  return nestedToJson(value, type);
}

/** What is inside of a fixed array or a union comes as one value. */
function nestedToJson(value: Exclude<DuckDBValue, null>, type: DuckDBType | undefined): unknown {
  if (value instanceof DuckDBListValue || value instanceof DuckDBArrayValue) {
    const typeOfItem = type instanceof DuckDBListType || type instanceof DuckDBArrayType ? type.valueType : undefined;
    return value.items.map((item) => toJson(item, typeOfItem));
  }
  if (value instanceof DuckDBStructValue) {
    const types = type instanceof DuckDBStructType ? type.entryTypes : [];
    return Object.fromEntries(
      Object.entries(value.entries).map(([name, field], index) => [name, toJson(field, types[index])]),
    );
  }
  if (value instanceof DuckDBMapValue) {
    const { keyType, valueType } = type instanceof DuckDBMapType ? type : {};
    return Object.fromEntries(
      value.entries.map(({ key, value: entry }) => [keyOf(key, keyType), toJson(entry, valueType)]),
    );
  }
  if (value instanceof DuckDBUnionValue) {
    return toJson(value.value, type instanceof DuckDBUnionType ? type.memberTypeForTag(value.tag) : undefined);
  }
  return String(value); // Dates, times, UUIDs and bits.
}

/** A key of JSON is text: that of the value as JSON. Of a list or row it is DuckDB's. */
function keyOf(key: DuckDBValue | undefined, type: DuckDBType | undefined): string {
  const value = toJson(key, type);
  const isScalar = typeof value === "string" || typeof value === "number" || typeof value === "boolean";
  return isScalar ? String(value) : (key?.toString() ?? "null");
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
