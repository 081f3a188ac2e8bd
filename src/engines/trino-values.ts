/** Converts Trino's values to JSON. engine.ts has the rules. */

import { exactNumber } from "./exact-number.ts";
import { jsonValue } from "./json-value.ts";
import { uniqueNames } from "./unique-names.ts";

/** Trino's description of a type: `array(decimal(10,2))` is an `array` whose one argument is another type. */
export interface TypeSignature {
  rawType: string;
  arguments?: readonly { value: unknown }[];
}

interface RowField {
  fieldName?: { name: string };
  typeSignature: TypeSignature;
}

type Parser = (value: unknown) => unknown;

/**
 * Trino writes a `bigint` as a JSON number, which `JSON.parse` would round. So whole numbers of 16 digits and more are
 * quoted first; a `double` always has a decimal point.
 */
export function parsePage(text: string): unknown {
  if (!/\d{16}/.test(text)) return JSON.parse(text);
  return JSON.parse(text.replace(STRING_OR_NUMBER, (token) => (LONG_WHOLE.test(token) ? `"${token}"` : token)));
}

const STRING_OR_NUMBER = /"[^"\\]*(?:\\.[^"\\]*)*"|-?\d[\d.eE+-]*/g;
const LONG_WHOLE = /^-?\d{16,}$/;

const asExact: Parser = (value) => exactNumber(String(value));
const asDouble: Parser = (value) => (Number.isFinite(Number(value)) ? Number(value) : value);

/** By type; other types are not converted: booleans, text, dates, intervals, bytes in base64. */
const SCALARS: Readonly<Record<string, Parser>> = {
  tinyint: asExact,
  smallint: asExact,
  integer: asExact,
  bigint: asExact,
  decimal: asExact,
  real: asDouble,
  double: asDouble,
  json: (value) => jsonValue(String(value)),
  time: (value) => withoutZeros(String(value)),
  timestamp: (value) => withoutZeros(String(value).replace(" ", "T")),
  "timestamp with time zone": (value) => instant(String(value)),
};

export function parserOf(type: TypeSignature): Parser {
  const parse = parserOfNonNull(type);
  return (value) => (value === null || value === undefined ? null : parse(value));
}

function parserOfNonNull({ rawType, arguments: parts = [] }: TypeSignature): Parser {
  switch (rawType) {
    case "array": {
      const item = parserOf(parts[0]?.value as TypeSignature);
      return (value) => (value as unknown[]).map(item);
    }
    case "map": {
      const entry = parserOf(parts[1]?.value as TypeSignature);
      return (value) => Object.fromEntries(Object.entries(value as object).map(([key, item]) => [key, entry(item)]));
    }
    case "row": {
      const fields = parts.map(({ value }) => value as RowField);
      const names = uniqueNames(fields.map(({ fieldName }, index) => fieldName?.name ?? `field${index}`));
      const parsers = fields.map(({ typeSignature }) => parserOf(typeSignature));
      return (value) =>
        Object.fromEntries(names.map((name, index) => [name, parsers[index]?.((value as unknown[])[index])]));
    }
    default:
      return SCALARS[rawType] ?? ((value) => value);
  }
}

/** Drops trailing zeros of a fraction of a second, as the other engines do. */
function withoutZeros(text: string): string {
  return text.replace(/(\.\d*?)0+(?!\d)/, "$1").replace(/\.(?!\d)/, "");
}

/** To UTC. Trino writes an instant as wall time with its zone: `2026-01-31 01:02:03.500 Europe/Berlin`. */
function instant(text: string): string {
  const [, wall, fraction = "", zone = ""] = /^(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)(\.\d+)? (\S+)$/.exec(text) ?? [];
  const offsetMs = wall && utcOffsetMs(Date.parse(`${wall.replace(" ", "T")}Z`), zone);
  if (!wall || typeof offsetMs !== "number") return text;
  const utc = new Date(Date.parse(`${wall.replace(" ", "T")}Z`) - offsetMs).toISOString().slice(0, -".000Z".length);
  return `${withoutZeros(utc + fraction)}Z`;
}

const formatters = new Map<string, Intl.DateTimeFormat>();

/** The UTC offset of a wall time. In the hour that is repeated when clocks go back, the first of the two. */
function utcOffsetMs(wallMs: number, zone: string): number | undefined {
  if (zone === "UTC") return 0;
  if (/^[+-]/.test(zone)) return parsedOffsetMs(zone);
  try {
    const formatter =
      formatters.get(zone) ?? new Intl.DateTimeFormat("en", { timeZone: zone, timeZoneName: "longOffset" });
    formatters.set(zone, formatter);
    const offsetAt = (ms: number) =>
      parsedOffsetMs(formatter.formatToParts(ms).find(({ type }) => type === "timeZoneName")?.value ?? "");
    const before = offsetAt(wallMs - DAY_MS);
    return offsetAt(wallMs - before) === before ? before : offsetAt(wallMs + DAY_MS);
  } catch {
    return undefined; // An unknown time zone.
  }
}

const DAY_MS = 86_400_000;

/** `GMT+05:30`, `-03:00`; `GMT` alone is 0. */
function parsedOffsetMs(text: string): number {
  const [, sign = "+", hours = 0, minutes = 0] = /([+-])(\d\d):(\d\d)/.exec(text) ?? [];
  return (sign === "-" ? -1 : 1) * (Number(hours) * 60 + Number(minutes)) * 60_000;
}
