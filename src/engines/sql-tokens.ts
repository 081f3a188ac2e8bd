/**
 * Splits SQL into tokens, far enough to tell parameters and semicolons from those inside strings, quoted names and comments.
 * The rules are those of Postgres, which DuckDB shares. The concatenated tokens are the SQL.
 */

export interface Token {
  kind: "parameter" | "semicolon" | "blank" | "other";
  text: string;
}

/** DuckDB also skips the zero-width space and the word joiner. */
const SPACE = "\\s\\u200b\\u2060";
/** In a name, any character beyond ASCII that is not a space. */
const LETTER = `[A-Za-z_]|[^\\x00-\\x7f${SPACE}]`;
const NAME = `(?:${LETTER})(?:${LETTER}|[0-9])*`;
const TOKENS = [
  ["blank", `[${SPACE}]+|--[^\\n\\r]*`],
  ["comment", "/\\*"],
  ["dollarQuote", `\\$(?:${NAME})?\\$`],
  ["parameter", `\\$(?:${NAME}|\\d+)`],
  ["semicolon", ";"],
  // Strings and quoted names, where a doubled quote is an escape; in E'...' a backslash is one too.
  ["quoted", "[eE]'[^'\\\\]*(?:(?:''|\\\\[^])[^'\\\\]*)*'?|'[^']*(?:''[^']*)*'?|\"[^\"]*(?:\"\"[^\"]*)*\"?"],
  // A whole word: it may contain a dollar sign.
  ["other", `(?:${LETTER}|[0-9])(?:${LETTER}|[0-9$])*|[^]`],
] as const;
const TOKEN = new RegExp(TOKENS.map(([kind, pattern]) => `(?<${kind}>${pattern})`).join("|"), "uy");

export function* sqlTokens(sql: string): Generator<Token> {
  for (let at = 0; at < sql.length; ) {
    TOKEN.lastIndex = at;
    const groups = TOKEN.exec(sql)?.groups ?? {};
    const [[found, text] = ["other", ""]] = Object.entries(groups).filter(([, match]) => match !== undefined);
    const end = endOf(found, sql, at, text);
    yield { kind: kindOf(found), text: sql.slice(at, end) };
    at = end;
  }
}

function kindOf(found: string): Token["kind"] {
  if (found === "comment") return "blank";
  return found === "parameter" || found === "semicolon" || found === "blank" ? found : "other";
}

function endOf(found: string, sql: string, at: number, text: string): number {
  const start = at + text.length;
  if (found === "comment") return endOfComment(sql, start);
  if (found !== "dollarQuote") return start;
  const close = sql.indexOf(text, start);
  return close < 0 ? sql.length : close + text.length;
}

/** Comments nest. */
function endOfComment(sql: string, start: number): number {
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
export function holdsSeveral(sql: string): boolean {
  let statements = 0;
  let isBlank = true;
  for (const { kind } of sqlTokens(sql)) {
    if (kind === "semicolon") isBlank = true;
    else if (kind !== "blank" && isBlank) {
      isBlank = false;
      statements += 1;
    }
  }
  return statements > 1;
}
