/** Converts SQL and parameters to what Trino accepts: one statement, with the values as literals after `using`. */
import { EngineRefusal, type Params } from "./engine.ts";
import { kindOfItems, named, usedNames } from "./params.ts";
import { holdsSeveral, sqlTokens } from "./sql-tokens.ts";

export function trinoStatement(sql: string, given: Params | undefined): string {
  if (holdsSeveral(sql)) {
    throw new EngineRefusal("Trino runs one statement at a time, and this SQL contains several. Run them one by one.");
  }
  const params = named(given);
  usedNames(sql, params); // Throws if a parameter has no value.
  const values: string[] = [];
  let text = "";
  for (const token of sqlTokens(sql)) {
    if (token.kind === "semicolon") continue; // After the only statement; Trino accepts none.
    if (token.kind === "parameter") values.push(literal(params[token.text.slice(1)]));
    text += token.kind === "parameter" ? "?" : token.text;
  }
  return values.length === 0 ? text : `execute immediate ${textLiteral(text)} using ${values.join(", ")}`;
}

function literal(value: unknown): string {
  if (value === null || value === undefined) return "null";
  if (typeof value === "string") return textLiteral(value);
  if (typeof value === "boolean") return String(value);
  if (typeof value === "number") return numberLiteral(value);
  if (!Array.isArray(value) || kindOfItems(value) === undefined) return textLiteral(JSON.stringify(value));
  // 1 and 1.5 in one array need the same type.
  const isWhole = value.every((item) => typeof item !== "number" || Number.isSafeInteger(item));
  const items = value.map((item: unknown) =>
    typeof item === "number" && !isWhole ? doubleLiteral(item) : literal(item),
  );
  return `array[${items.join(", ")}]`;
}

function numberLiteral(value: number): string {
  return Number.isSafeInteger(value) ? String(value) : doubleLiteral(value);
}

/** Without an exponent it would be a decimal, and the decimal 0.1 differs from the double 0.1. */
function doubleLiteral(value: number): string {
  return Number.isFinite(value) ? value.toExponential() : `double '${value}'`;
}

function textLiteral(text: string): string {
  return `'${text.replaceAll("'", "''")}'`;
}
