/** Converts Trino's values to JSON. engine.ts has the rules. */

import { DAY_MS } from "../../kernel/time/units.ts";
import { EngineRefusal } from "../engine.ts";
import { isoDuration } from "../result/duration.ts";
import { exactNumber } from "../result/exact-number.ts";
import { jsonValue, STRING_OR_NUMBER } from "../result/json-value.ts";
import { offsetMsOf, utcText, wallMs, withoutZeros, zonedTime } from "../result/times.ts";
import { uniqueNames } from "../result/unique-names.ts";

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

const LONG_WHOLE = /^-?\d{16,}$/;

const asExact: Parser = (value) => exactNumber(String(value));
const asDouble: Parser = (value) => (Number.isFinite(Number(value)) ? Number(value) : value);

/** By type; other types are not converted: booleans, text, dates, bytes in base64. */
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
  "time with time zone": (value) => zonedTime(String(value)),
  "interval day to second": (value) => daysAndSeconds(String(value)),
  "interval year to month": (value) => yearsAndMonths(String(value)),
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
      const [keyType, entryType] = parts.map(({ value }) => value as TypeSignature);
      const parseKey = SCALARS[keyType?.rawType ?? ""] ?? String; // Of a list or row there is only Trino's text.
      const entry = parserOf(entryType as TypeSignature);
      return (value) =>
        Object.fromEntries(Object.entries(value as object).map(([key, item]) => [String(parseKey(key)), entry(item)]));
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

/** `-2 03:00:00.500`: the sign is that of all parts. */
function daysAndSeconds(text: string): string {
  const [, sign, days, hours, minutes, seconds, millis] = /^(-?)(\d+) (\d+):(\d+):(\d+)\.(\d{3})$/.exec(text) ?? [];
  if (days === undefined) return text;
  const unit = sign === "-" ? -1 : 1;
  const wholeSeconds = (Number(hours) * 60 + Number(minutes)) * 60 + Number(seconds);
  return isoDuration({
    days: unit * Number(days),
    micros: BigInt(unit * (wholeSeconds * 1_000 + Number(millis))) * 1_000n,
  });
}

/** `-1-2`. */
function yearsAndMonths(text: string): string {
  const [, sign, years, months] = /^(-?)(\d+)-(\d+)$/.exec(text) ?? [];
  if (years === undefined) return text;
  return isoDuration({ months: (sign === "-" ? -1 : 1) * (Number(years) * 12 + Number(months)) });
}

/** To UTC. Trino writes an instant as wall time with its zone: `2026-01-31 01:02:03.500 Europe/Berlin`. */
function instant(text: string): string {
  const [, wall, fraction = "", zone = ""] = /^(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)(\.\d+)? (\S+)$/.exec(text) ?? [];
  if (!wall) return text;
  const offsetMs = utcOffsetMs(wallMs(wall), zone);
  if (offsetMs === undefined) return text;
  if (offsetMs === "ambiguous") {
    throw new EngineRefusal(
      `The result has the time ${text}, which occurs twice, since clocks were set back then, and Trino does not tell which of the two it means. ` +
        "Add `at time zone 'UTC'` to the column in the SQL.",
    );
  }
  return utcText(wall, fraction, offsetMs);
}

const formatters = new Map<string, Intl.DateTimeFormat>();

/** The UTC offset of a wall time. One of the hour that is repeated when clocks go back names two moments. */
function utcOffsetMs(atMs: number, zone: string): number | "ambiguous" | undefined {
  if (zone === "UTC") return 0;
  if (/^[+-]/.test(zone)) return offsetMsOf(zone);
  try {
    const formatter =
      formatters.get(zone) ?? new Intl.DateTimeFormat("en", { timeZone: zone, timeZoneName: "longOffset" });
    formatters.set(zone, formatter);
    const offsetAt = (ms: number) =>
      offsetMsOf(formatter.formatToParts(ms).find(({ type }) => type === "timeZoneName")?.value ?? "");
    const [before, after] = [offsetAt(atMs - DAY_MS), offsetAt(atMs + DAY_MS)];
    const [offset = before, other = offset] = [before, after].filter((each) => offsetAt(atMs - each) === each);
    return offset === other ? offset : "ambiguous";
  } catch {
    return undefined; // An unknown time zone.
  }
}
