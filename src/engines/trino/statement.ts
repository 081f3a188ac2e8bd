/**
 * Converts SQL and parameters to what Trino accepts: one statement, with the values as literals. Not as `?`: two of them are two
 * different expressions, so that `group by date_trunc($unit, at)` would not match the same words after `select`.
 */
import { EngineRefusal, type Params } from "../engine.ts";
import { kindOfItems, named, usedNames } from "../sql/params.ts";
import { literal } from "../sql/text.ts";
import { holdsSeveral, sqlTokens } from "../sql/tokens.ts";
import { inSource, type Piece } from "./positions.ts";

export interface TrinoStatement {
  text: string;
  /** Whether it only reads, so that it can be sent again if it was lost. */
  isRead: boolean;
  /** The message of an error, with its position in the SQL that was given. */
  messageOf(message: string): string;
}

/** After these words, Trino accepts a number and no expression. */
const BEFORE_COUNT = /^(limit|offset|first|next)$/i;
/** A statement that begins with one of these changes nothing. (`explain analyze` runs what it explains.) */
const READS = /^(select|with|values|table|show|describe|desc|\()$/i;
const INTEGER_MAX = 2 ** 31 - 1;

export function trinoStatement(sql: string, given: Params | undefined): TrinoStatement {
  if (holdsSeveral(sql, "trino")) {
    throw new EngineRefusal("Trino runs one statement at a time, and this SQL contains several. Run them one by one.");
  }
  const params = named(given);
  usedNames(sql, params, "trino"); // Throws if a parameter has no value.
  const pieces: Piece[] = [];
  let firstWord: string | undefined;
  let lastWord = "";
  let from = 0;
  for (const { kind, text } of sqlTokens(sql, "trino")) {
    if (kind === "parameter") {
      const value = params[text.slice(1)];
      const written = BEFORE_COUNT.test(lastWord) ? bareLiteral(value) : valueLiteral(value);
      // Spaces keep it from joining its neighbours: `'a'$b` must not become one string, nor `U&$b` one with escapes.
      pieces.push({ text: ` ${written} `, from, isValue: true });
    } else if (kind !== "semicolon") {
      pieces.push({ text, from, isValue: false }); // Trino accepts no semicolon after the only statement.
    }
    if (kind === "other") {
      firstWord ??= text;
      lastWord = text;
    }
    from += text.length;
  }
  return {
    text: pieces.map(({ text }) => text).join(""),
    isRead: READS.test(firstWord ?? ""),
    messageOf: (message) => inSource(message, pieces, sql),
  };
}

/** A number alone after `group by` or `order by` would be that of a column, so it is written with its type. */
function valueLiteral(value: unknown): string {
  if (typeof value !== "number") return bareLiteral(value);
  if (!Number.isSafeInteger(value)) return `double precision '${value}'`;
  return `${Math.abs(value) <= INTEGER_MAX ? "integer" : "bigint"} '${value}'`;
}

function bareLiteral(value: unknown): string {
  if (value === null || value === undefined) return "null";
  if (typeof value === "string") return literal(value);
  if (typeof value === "boolean") return String(value);
  if (typeof value === "number") return Number.isSafeInteger(value) ? String(value) : doubleLiteral(value);
  if (!Array.isArray(value) || kindOfItems(value) === undefined) return literal(JSON.stringify(value));
  // 1 and 1.5 in one array need the same type.
  const isWhole = value.every((item) => typeof item !== "number" || Number.isSafeInteger(item));
  const items = value.map((item: unknown) =>
    typeof item === "number" && !isWhole ? doubleLiteral(item) : bareLiteral(item),
  );
  return `array[${items.join(", ")}]`;
}

/** Without an exponent it would be a decimal, and the decimal 0.1 differs from the double 0.1. */
function doubleLiteral(value: number): string {
  return Number.isFinite(value) ? value.toExponential() : `double precision '${value}'`;
}
