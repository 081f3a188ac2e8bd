/** The functions of the expressions in requests: those of CEL, and a few for parameters of sources. All are pure. */
import { ExpressionError, functionNames, functionSet } from "../../kernel/expressions/cel.ts";
import { formatTime } from "./time-format.ts";

/** Whole date-times with an offset, or dates, which are midnight in UTC. */
const INSTANT = /^\d{4}-\d\d-\d\d(T\d\d:\d\d(:\d\d(\.\d{1,9})?)?(Z|[+-]\d\d:\d\d))?$/;

/** Allowed unless a definition says otherwise. A list of its own, so that a new version of CEL's library changes no snapshot. */
export const REQUEST_FUNCTION_NAMES = [
  "all",
  "bool",
  "coalesce",
  "concat",
  "contains",
  "double",
  "duration",
  "dyn",
  "endsWith",
  "exists",
  "exists_one",
  "filter",
  "formatDateTime",
  "has",
  "indexOf",
  "int",
  "join",
  "lowerAscii",
  "map",
  "matches",
  "size",
  "split",
  "startsWith",
  "string",
  "substring",
  "timestamp",
  "trim",
  "upperAscii",
] as const;

export const REQUEST_FUNCTIONS = functionSet(
  {
    "formatDateTime(dyn, string): string": formatDateTime,
    "formatDateTime(dyn, string, string): string": formatDateTime,
    "coalesce(dyn, dyn): dyn": coalesce,
    "coalesce(dyn, dyn, dyn): dyn": coalesce,
    "coalesce(dyn, dyn, dyn, dyn): dyn": coalesce,
    "concat(dyn, dyn): string": concat,
    "concat(dyn, dyn, dyn): string": concat,
    "concat(dyn, dyn, dyn, dyn): string": concat,
  },
  REQUEST_FUNCTION_NAMES,
);

/** Every function that `expr.allowedFunctions` may name. */
export const KNOWN_FUNCTIONS: ReadonlySet<string> = functionNames(REQUEST_FUNCTIONS);

function formatDateTime(value: unknown, format: unknown, timeZone: unknown = "UTC"): string {
  const isText = typeof value === "string" && INSTANT.test(value);
  const ms = value instanceof Date ? value.getTime() : isText ? Date.parse(value) : Number.NaN;
  if (Number.isNaN(ms)) throw new ExpressionError("formatDateTime() takes a time like 2025-01-01T00:00:00Z");
  try {
    return formatTime(ms, String(format), String(timeZone));
  } catch {
    throw new ExpressionError("formatDateTime() was given a format or a time zone that does not exist");
  }
}

/** The first value that is not null. */
function coalesce(...values: readonly unknown[]): unknown {
  return values.find((value) => value !== null && value !== undefined) ?? null;
}

function concat(...values: readonly unknown[]): string {
  return values
    .map((value) => {
      if (typeof value === "string") return value;
      if (["number", "bigint", "boolean"].includes(typeof value)) return String(value);
      throw new ExpressionError("concat() takes texts, numbers and true or false");
    })
    .join("");
}
