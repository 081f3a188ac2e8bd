/** Converts Postgres's values to JSON. engine.ts has the rules. */
import pg from "pg";
import { exactNumber } from "../result/exact-number.ts";
import { jsonValue } from "../result/json-value.ts";
import { offsetMsOf, utcText, zonedTime } from "../result/times.ts";

type Parser = (text: string) => unknown;

const asNumber: Parser = (text) => (Number.isFinite(Number(text)) ? Number(text) : text);
const asIso: Parser = (text) => text.replace(" ", "T");
const { BOOL, BYTEA, DATE, FLOAT4, FLOAT8, INT2, INT4, INT8, JSON: JSON_TYPE, JSONB, NUMERIC, OID } = pg.types.builtins;
const { BPCHAR, INTERVAL, TIME, TIMESTAMP, TIMESTAMPTZ, TIMETZ, TEXT, UUID, VARCHAR } = pg.types.builtins;

/** By type OID; other types keep the text that Postgres prints, as an interval does, for which it prints ISO 8601. */
const SCALARS: Readonly<Record<number, Parser>> = {
  [BOOL]: (text) => text === "t",
  [INT2]: asNumber,
  [INT4]: asNumber,
  [OID]: asNumber,
  [INT8]: exactNumber,
  [FLOAT4]: asNumber,
  [FLOAT8]: asNumber,
  [NUMERIC]: exactNumber,
  [JSON_TYPE]: jsonValue,
  [JSONB]: jsonValue,
  [TIMESTAMP]: asIso,
  [TIMESTAMPTZ]: instant,
  [TIMETZ]: zonedTime,
  [BYTEA]: (text) => Buffer.from(text.slice(2), "hex").toString("base64"),
};

/** To UTC: SQL may set another time zone. What is outside of the years 1 to 9999 keeps its text. */
function instant(text: string): string {
  const [, wall, fraction = "", offset = ""] =
    /^(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)(\.\d+)?([+-][\d:]+)$/.exec(text) ?? [];
  return wall === undefined ? text : utcText(wall, fraction, offsetMsOf(offset));
}

/** From the OID of an array type to the OID of its items. */
const ARRAYS: Readonly<Record<number, number>> = {
  199: JSON_TYPE,
  1000: BOOL,
  1001: BYTEA,
  1005: INT2,
  1007: INT4,
  1009: TEXT,
  1014: BPCHAR,
  1015: VARCHAR,
  1016: INT8,
  1021: FLOAT4,
  1022: FLOAT8,
  1028: OID,
  1115: TIMESTAMP,
  1182: DATE,
  1183: TIME,
  1185: TIMESTAMPTZ,
  1187: INTERVAL,
  1231: NUMERIC,
  1270: TIMETZ,
  2951: UUID,
  3807: JSONB,
};

type Texts = (string | null | Texts)[];
const TEXT_ARRAY: number = 1009;
// oxlint-disable-next-line typescript/no-unsafe-enum-assignment -- the typings list no type of arrays
const asTexts = pg.types.getTypeParser(TEXT_ARRAY) as (text: string) => Texts;

export function parserOf(type: number): Parser {
  const itemType = ARRAYS[type];
  if (itemType === undefined) return SCALARS[type] ?? String;
  const item = SCALARS[itemType] ?? String;
  return (text) => parseItems(asTexts(text), item);
}

/** An array may have several dimensions. */
function parseItems(value: Texts, item: Parser): unknown[] {
  return value.map((entry) => (Array.isArray(entry) ? parseItems(entry, item) : entry === null ? null : item(entry)));
}
