/** Converts parameters, given by name or in a list, into the form of each engine. engine.ts has the rules. */
import { EngineRefusal, type Params } from "../engine.ts";
import { type Dialect, sqlTokens } from "./tokens.ts";

/** Parameters by name; those of a list are named 1, 2 and so on. */
export function named(params: Params = {}): Readonly<Record<string, unknown>> {
  return isList(params) ? Object.fromEntries(params.map((value, index) => [index + 1, value])) : params;
}

function isList(params: Params): params is readonly unknown[] {
  return Array.isArray(params);
}

/** The parameters that the SQL uses, in order of first use. Throws if one has no value. */
export function usedNames(
  sql: string,
  params: Readonly<Record<string, unknown>>,
  dialect: Dialect = "postgres",
): string[] {
  const names = new Set<string>();
  for (const { kind, text } of sqlTokens(sql, dialect)) if (kind === "parameter") names.add(text.slice(1));
  for (const name of names) {
    if (Object.hasOwn(params, name)) continue;
    const given = Object.keys(params).map((key) => `$${key}`);
    throw new EngineRefusal(
      `The SQL uses $${name}, but params has no such value. Given: ${given.join(", ") || "none"}.`,
    );
  }
  return [...names];
}

/** Postgres numbers parameters, without gaps: every `$op_time` becomes `$1`. */
export function numbered(sql: string, given: Params | undefined): { text: string; values: unknown[] } {
  const params = named(given);
  const names = usedNames(sql, params);
  const number = new Map(names.map((name, index) => [`$${name}`, `$${index + 1}`]));
  const pieces = [...sqlTokens(sql)].map(({ kind, text }) => (kind === "parameter" ? number.get(text) : text));
  return { text: pieces.join(""), values: names.map((name) => forPostgres(params[name])) };
}

/** The common type of the items that are not null; "null" if all are null, undefined if they differ or are not scalars. */
export function kindOfItems(items: readonly unknown[]): "string" | "number" | "boolean" | "null" | undefined {
  const kinds = new Set(items.filter((item) => item !== null && item !== undefined).map((item) => typeof item));
  const [kind] = kinds;
  if (kind === undefined) return "null";
  const isScalar = kind === "string" || kind === "number" || kind === "boolean";
  return kinds.size === 1 && isScalar ? kind : undefined;
}

/** node-postgres sends every list as an array, so a list of mixed types is sent as JSON text. */
function forPostgres(value: unknown): unknown {
  return Array.isArray(value) && kindOfItems(value) === undefined ? JSON.stringify(value) : value;
}
