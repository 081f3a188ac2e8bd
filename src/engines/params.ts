/** Parameters as people write them, by name or in a list, and as the engines take them. engine.ts has the rules. */
import { EngineRefusal, type Params } from "./engine.ts";
import { sqlTokens } from "./sql-tokens.ts";

/** By name; those of a list are called 1, 2 and so on. */
export function named(params: Params = {}): Readonly<Record<string, unknown>> {
  return isList(params) ? Object.fromEntries(params.map((value, index) => [index + 1, value])) : params;
}

function isList(params: Params): params is readonly unknown[] {
  return Array.isArray(params);
}

/** The parameters that the SQL uses, in the order in which it does. Each must have a value. */
export function usedNames(sql: string, params: Readonly<Record<string, unknown>>): string[] {
  const names = new Set<string>();
  for (const { kind, text } of sqlTokens(sql)) if (kind === "parameter") names.add(text.slice(1));
  for (const name of names) {
    if (Object.hasOwn(params, name)) continue;
    const given = Object.keys(params).map((key) => `$${key}`);
    throw new EngineRefusal(
      `The SQL uses $${name}, but params has no such value. Given: ${given.join(", ") || "none"}.`,
    );
  }
  return [...names];
}

/** Postgres knows only numbers, without gaps: `$op_time` becomes `$1`, everywhere the same. */
export function numbered(sql: string, given: Params | undefined): { text: string; values: unknown[] } {
  const params = named(given);
  const names = usedNames(sql, params);
  const number = new Map(names.map((name, index) => [`$${name}`, `$${index + 1}`]));
  const pieces = [...sqlTokens(sql)].map(({ kind, text }) => (kind === "parameter" ? number.get(text) : text));
  return { text: pieces.join(""), values: names.map((name) => forPostgres(params[name])) };
}

/** What all items are, nulls apart; "null" where there are no others, undefined where they differ or are no plain values. */
export function kindOfItems(items: readonly unknown[]): "string" | "number" | "boolean" | "null" | undefined {
  const kinds = new Set(items.filter((item) => item !== null && item !== undefined).map((item) => typeof item));
  const [kind] = kinds;
  if (kind === undefined) return "null";
  const isPlain = kind === "string" || kind === "number" || kind === "boolean";
  return kinds.size === 1 && isPlain ? kind : undefined;
}

/** node-postgres makes an array of every list and JSON of every object. */
function forPostgres(value: unknown): unknown {
  return Array.isArray(value) && kindOfItems(value) === undefined ? JSON.stringify(value) : value;
}
