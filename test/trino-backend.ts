/** The Postgres behind the test Trino: runs a statement, and returns types and values in the format of Trino. */
import pg from "pg";
import { sqlTokens } from "../src/engines/sql/tokens.ts";
import type { Connection } from "../src/kernel/data/db.ts";

export interface TrinoOutcome {
  columns?: { name: string; type: string; typeSignature: Signature }[];
  /** Each row as JSON text, because a `bigint` is a number that JavaScript cannot represent. */
  rows: string[];
  updateType?: string;
  updateCount?: number;
  error?: { message: string; errorCode: number; errorName: string; errorType: string };
}

interface Signature {
  rawType: string;
  arguments: { kind: string; value: unknown }[];
}

export interface TrinoBackend {
  /** Calls `begun` with the function that cancels the statement. */
  run(statement: string, begun: (cancel: () => Promise<unknown>) => void): Promise<TrinoOutcome>;
  stop(): Promise<void>;
}

export function createTrinoBackend(connection: Connection): TrinoBackend {
  const config = { ...connection, options: "-c timezone=UTC -c datestyle=ISO" };
  const pool = new pg.Pool({ ...config, max: 12 });
  pool.on("error", () => {});
  return {
    async run(statement, begun) {
      const refusal = refusalOf(statement);
      if (refusal) return { rows: [], error: userError(refusal, "SYNTAX_ERROR") };
      const client = await pool.connect();
      const { processID } = client as unknown as { processID: number };
      begun(() => pool.query("select pg_cancel_backend($1)", [processID]));
      try {
        const query = { text: executableOf(statement), rowMode: "array", types: { getTypeParser: () => String } };
        return outcomeOf(await client.query(query as pg.QueryArrayConfig));
      } catch (error) {
        const { message, code = "", position } = error as pg.DatabaseError;
        if (code.startsWith("57")) return { rows: [], error: userError("Query was canceled", "USER_CANCELED") };
        const place = position === undefined ? "" : `${placeOf(statement, Number(position))}: `;
        return {
          rows: [],
          error: userError(place + message, code === "42P01" ? "TABLE_NOT_FOUND" : "GENERIC_USER_ERROR"),
        };
      } finally {
        client.release(true);
      }
    },
    stop: () => pool.end(),
  };
}

function userError(message: string, errorName: string): NonNullable<TrinoOutcome["error"]> {
  return { message, errorCode: 0, errorName, errorType: "USER_ERROR" };
}

/** Postgres counts from the beginning of the text, Trino by lines. */
function placeOf(statement: string, position: number): string {
  const lines = Array.from(statement)
    .slice(0, position - 1)
    .join("")
    .split("\n");
  return `line ${lines.length}:${Array.from(lines.at(-1) ?? "").length + 1}`;
}

/** Trino accepts one statement without a semicolon, and transactions only from clients that announce support. */
function refusalOf(statement: string): string | undefined {
  if ([...sqlTokens(statement, "trino")].some(({ kind }) => kind === "semicolon")) return "mismatched input ';'";
  return /^\s*(begin|start)\b/i.test(statement) ? "Client does not support transactions" : undefined;
}

/** Postgres needs the type of an empty array, Trino does not. */
function executableOf(statement: string): string {
  return statement.replaceAll("array[]", "'{}'");
}

function outcomeOf({ fields, rows, command, rowCount }: pg.QueryArrayResult): TrinoOutcome {
  if (fields.length === 0) {
    const column = { name: "rows", ...described(simple("bigint")) };
    return { columns: [column], rows: [`[${rowCount ?? 0}]`], updateType: command, updateCount: rowCount ?? 0 };
  }
  const types = fields.map(({ dataTypeID }) => TYPES[dataTypeID] ?? TEXT);
  return {
    columns: fields.map(({ name }, index) => ({ name, ...described((types[index] ?? TEXT).signature) })),
    rows: rows.map(
      (row: (string | null)[]) => `[${row.map((text, index) => encoded(text, types[index] ?? TEXT)).join()}]`,
    ),
  };
}

interface TrinoType {
  signature: Signature;
  /** Converts the text of Postgres to JSON text. */
  encode(text: string): string;
}

const simple = (rawType: string): Signature => ({ rawType, arguments: [] });
const precise = (rawType: string, ...values: number[]): Signature => ({
  rawType,
  arguments: values.map((value) => ({ kind: "LONG", value })),
});
const asText = (text: string) => JSON.stringify(text);
const TEXT: TrinoType = { signature: precise("varchar", 2147483647), encode: asText };
const DOUBLE: TrinoType = { signature: simple("double"), encode: javaDouble };
const DECIMAL: TrinoType = { signature: precise("decimal", 38, 2), encode: asText };
const INTEGER: TrinoType = { signature: simple("integer"), encode: String };
const DATE: TrinoType = { signature: simple("date"), encode: asText };

/** By the OID of the Postgres type. */
const TYPES: Readonly<Record<number, TrinoType>> = {
  16: { signature: simple("boolean"), encode: (text) => String(text === "t") },
  17: {
    signature: simple("varbinary"),
    encode: (text) => asText(Buffer.from(text.slice(2), "hex").toString("base64")),
  },
  20: { signature: simple("bigint"), encode: String },
  23: INTEGER,
  114: { signature: simple("json"), encode: asText },
  701: DOUBLE,
  1082: DATE,
  1114: { signature: precise("timestamp", 6), encode: (text) => asText(sixDigits(text)) },
  1184: {
    signature: precise("timestamp with time zone", 6),
    encode: (text) => asText(`${sixDigits(text.replace(/\+00$/, ""))} UTC`),
  },
  1700: DECIMAL,
  2950: { signature: simple("uuid"), encode: asText },
  1007: arrayOf(INTEGER),
  1009: arrayOf(TEXT),
  1022: arrayOf(DOUBLE),
  1182: arrayOf(DATE),
  1231: arrayOf(DECIMAL),
};

function arrayOf(item: TrinoType): TrinoType {
  const textArray: number = 1009;
  // oxlint-disable-next-line typescript/no-unsafe-enum-assignment -- the typings list no type of arrays
  const parse = pg.types.getTypeParser(textArray) as (text: string) => (string | null)[];
  return {
    signature: { rawType: "array", arguments: [{ kind: "TYPE", value: item.signature }] },
    encode: (text) =>
      `[${parse(text)
        .map((entry) => encoded(entry, item))
        .join()}]`,
  };
}

function encoded(text: string | null, type: TrinoType): string {
  return text === null ? "null" : type.encode(text);
}

function described(typeSignature: Signature): { type: string; typeSignature: Signature } {
  return { type: typeSignature.rawType, typeSignature };
}

function sixDigits(text: string): string {
  const [whole = "", fraction = ""] = text.split(".");
  return `${whole}.${fraction.padEnd(6, "0")}`;
}

/** `0.1`, `7.0`, `1.0E300`; values that JSON numbers cannot represent are text. */
function javaDouble(text: string): string {
  const value = Number(text);
  if (!Number.isFinite(value)) return asText(text);
  const [mantissa = "", exponent] = (Math.abs(value) >= 1e7 ? value.toExponential() : String(value)).split(/e\+?/);
  return (mantissa.includes(".") ? mantissa : `${mantissa}.0`) + (exponent === undefined ? "" : `E${exponent}`);
}
