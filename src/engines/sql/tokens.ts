/**
 * Splits SQL into tokens, far enough to tell parameters and semicolons from those inside strings, quoted names and comments.
 * The concatenated tokens are the SQL.
 *
 * DuckDB shares the rules of Postgres. In Trino comments do not nest, a backslash is never an escape, and `$$` takes no tag.
 */

export interface Token {
  kind: "parameter" | "semicolon" | "blank" | "other";
  text: string;
}

export type Dialect = "postgres" | "trino";

export function dialectOf(kind: "duckdb" | "postgres" | "trino"): Dialect {
  return kind === "trino" ? "trino" : "postgres";
}

/** DuckDB also skips the zero-width space and the word joiner. */
const SPACE = "\\s\\u200b\\u2060";
/** In a name, any character beyond ASCII that is not a space. */
const LETTER = `[A-Za-z_]|[^\\x00-\\x7f${SPACE}]`;
const NAME = `(?:${LETTER})(?:${LETTER}|[0-9])*`;
/** A doubled quote is an escape. */
const QUOTED = "'[^']*(?:''[^']*)*'?|\"[^\"]*(?:\"\"[^\"]*)*\"?";
const TOKEN = {
  // In E'...' a backslash is an escape too.
  postgres: tokenOf(`\\$(?:${NAME})?\\$`, `[eE]'[^'\\\\]*(?:(?:''|\\\\[^])[^'\\\\]*)*'?|${QUOTED}`),
  trino: tokenOf("\\$\\$", QUOTED),
} as const satisfies Record<Dialect, RegExp>;

function tokenOf(dollarQuote: string, quoted: string): RegExp {
  const patterns = [
    ["blank", `[${SPACE}]+|--[^\\n\\r]*`],
    ["comment", "/\\*"],
    ["dollarQuote", dollarQuote],
    ["parameter", `\\$(?:${NAME}|\\d+)`],
    ["semicolon", ";"],
    ["quoted", quoted],
    // A whole word: it may contain a dollar sign.
    ["other", `(?:${LETTER}|[0-9])(?:${LETTER}|[0-9$])*|[^]`],
  ];
  return new RegExp(patterns.map(([kind, pattern]) => `(?<${kind}>${pattern})`).join("|"), "uy");
}

export function* sqlTokens(sql: string, dialect: Dialect = "postgres"): Generator<Token> {
  const token = TOKEN[dialect];
  for (let at = 0; at < sql.length; ) {
    token.lastIndex = at;
    const groups = token.exec(sql)?.groups ?? {};
    const [[found, text] = ["other", ""]] = Object.entries(groups).filter(([, match]) => match !== undefined);
    const end = endOf(found, sql, at + text.length, text, dialect);
    yield { kind: kindOf(found), text: sql.slice(at, end) };
    at = end;
  }
}

function kindOf(found: string): Token["kind"] {
  if (found === "comment") return "blank";
  return found === "parameter" || found === "semicolon" || found === "blank" ? found : "other";
}

/** `start` is the end of the token's first characters, `text`. */
function endOf(found: string, sql: string, start: number, text: string, dialect: Dialect): number {
  if (found === "comment" && dialect === "postgres") return endOfNested(sql, start);
  if (found !== "comment" && found !== "dollarQuote") return start;
  const close = found === "comment" ? "*/" : text;
  const at = sql.indexOf(close, start);
  return at < 0 ? sql.length : at + close.length;
}

function endOfNested(sql: string, start: number): number {
  const mark = /\/\*|\*\//g;
  mark.lastIndex = start;
  for (let depth = 1; depth > 0; ) {
    const found = mark.exec(sql);
    if (!found) return sql.length;
    depth += found[0] === "/*" ? 1 : -1;
  }
  return mark.lastIndex;
}

/** May be true for one statement: the body of a function can contain semicolons. */
export function holdsSeveral(sql: string, dialect: Dialect = "postgres"): boolean {
  let statements = 0;
  let isBlank = true;
  for (const { kind } of sqlTokens(sql, dialect)) {
    if (kind === "semicolon") isBlank = true;
    else if (kind !== "blank" && isBlank) {
      isBlank = false;
      statements += 1;
    }
  }
  return statements > 1;
}
