/** Splits SQL of any dialect into tokens, far enough to see which clause names which table. */

export interface Token {
  /** `call` is a parenthesis behind the name of a function, `open` any other one. */
  kind: "word" | "quoted" | "number" | "text" | "call" | "open" | "close" | "symbol";
  /** As it was written; a quoted name without its quotes. */
  text: string;
  /** Of a word, in lower case; else empty. Keywords are compared by it, so a quoted name is never one. */
  word: string;
  /** How many parentheses are open around it; of a parenthesis, around that itself. */
  depth: number;
}

const PATTERN = new RegExp(
  [
    String.raw`(?<skip>\s+|--[^\n]*|/\*[\s\S]*?(?:\*/|$))`,
    // A quote that is doubled or escaped does not end a text; one that never ends takes the rest.
    String.raw`(?<text>'(?:''|\\.|[^'\\])*(?:'|$)|\$(?<tag>\w*)\$[\s\S]*?(?:\$\k<tag>\$|$))`,
    String.raw`(?<quoted>"(?:""|[^"])*(?:"|$)|\x60[^\x60]*(?:\x60|$)|\[[A-Za-z_][^\]\n]*\])`,
    String.raw`(?<number>\d[\w.]*)`,
    String.raw`(?<word>[\p{L}_@#][\p{L}\p{N}_$@#]*)`,
    String.raw`(?<symbol><=>|<>|<=|>=|!=|\|\||::|[\s\S])`,
  ].join("|"),
  "gu",
);

/** Words that stand before a parenthesis without calling anything. */
const NOT_CALLED = new Set(
  "in exists as from join on and or not where having select using values into table over by any all some lateral union except intersect when then else with filter is".split(
    " ",
  ),
);

export function tokensOf(sql: string): Token[] {
  const tokens: Token[] = [];
  let depth = 0;
  for (const { groups = {}, 0: text } of sql.matchAll(PATTERN)) {
    if (groups["skip"] !== undefined) continue;
    const plain = (kind: Token["kind"], shown = text) => tokens.push({ kind, text: shown, word: "", depth });
    if (groups["text"] !== undefined) plain("text");
    else if (groups["quoted"] !== undefined) plain("quoted", text.slice(1, -1));
    else if (groups["number"] !== undefined) plain("number");
    else if (groups["word"] !== undefined) tokens.push({ kind: "word", text, word: text.toLowerCase(), depth });
    else if (text === "(") {
      const before = tokens.at(-1);
      const isCall = before?.kind === "quoted" || (before?.kind === "word" && !NOT_CALLED.has(before.word));
      plain(isCall ? "call" : "open");
      depth += 1;
    } else if (text === ")") {
      depth = Math.max(0, depth - 1);
      plain("close");
    } else plain("symbol");
  }
  return tokens;
}

/** A name of one or more parts from `at` on, such as `catalog.schema.table`, and where it ends; nothing if there is none. */
export function nameAt(tokens: readonly Token[], at: number): { name: string; end: number } | undefined {
  const isPart = (token: Token | undefined) => token?.kind === "word" || token?.kind === "quoted";
  if (!isPart(tokens[at])) return undefined;
  let end = at + 1;
  while (tokens[end]?.text === "." && isPart(tokens[end + 1])) end += 2;
  const parts = tokens.slice(at, end).filter(({ text }) => text !== ".");
  return { name: parts.map(({ text }) => text).join("."), end };
}
