/**
 * Splits SQL into just enough pieces to tell its parameters and semicolons from those inside of text, names and comments.
 * The rules are those of Postgres, which DuckDB shares. Joined together again, the pieces are the SQL.
 */

export interface Token {
  kind: "parameter" | "semicolon" | "blank" | "other";
  text: string;
}

const NAME = "[\\p{L}_][\\p{L}\\p{N}_]*";
const PIECES = [
  ["blank", "\\s+|--[^\\n]*"],
  ["comment", "/\\*"],
  ["dollarQuote", `\\$(?:${NAME})?\\$`],
  ["parameter", `\\$(?:${NAME}|\\d+)`],
  ["semicolon", ";"],
  // Text and names in quotes, where a doubled quote does not end them; after E a backslash escapes one as well.
  ["quoted", "[eE]'[^'\\\\]*(?:(?:''|\\\\[^])[^'\\\\]*)*'?|'[^']*(?:''[^']*)*'?|\"[^\"]*(?:\"\"[^\"]*)*\"?"],
  // A word is taken whole: a dollar sign may be part of it.
  ["other", "[\\p{L}\\p{N}_][\\p{L}\\p{N}_$]*|[^]"],
] as const;
const PIECE = new RegExp(PIECES.map(([kind, pattern]) => `(?<${kind}>${pattern})`).join("|"), "uy");

export function* sqlTokens(sql: string): Generator<Token> {
  for (let at = 0; at < sql.length; ) {
    PIECE.lastIndex = at;
    const groups = PIECE.exec(sql)?.groups ?? {};
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

/** At least as many as there are: the body of a function may hold semicolons of its own. */
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
