/**
 * The built-in summary `rules-v1`: what a statement reads, joins, filters, aggregates and writes, as one sentence with tags. It
 * matches keywords instead of parsing, so it works for any dialect and for truncated text.
 */
import { listed } from "../../../kernel/text/sentences.ts";
import { nameAt, type Token, tokensOf } from "./sql-tokens.ts";

export interface Summary {
  summary: string;
  tags: string[];
}

/** Each clause is read up to its end, so the work grows with the square of what is nested. Real statements have fewer. */
const TOKENS_MAX = 4_000;
const LISTED_MAX = 8;
const CONDITION_LENGTH_MAX = 120;
const TAGS_MAX = 24;

const AGGREGATES = new Set(
  "sum count avg min max stddev variance median any_value array_agg string_agg group_concat collect_list collect_set approx_count_distinct approx_distinct percentile percentile_cont listagg".split(
    " ",
  ),
);
/** What ends a condition or a list of columns, on the same level. */
const CLAUSES = new Set(
  "select from where group having order limit union except intersect join left right inner outer full cross on using set values when window qualify returning cluster distribute sort lateral fetch offset natural for".split(
    " ",
  ),
);
/** Words in a condition that are no columns. */
const NO_COLUMNS = new Set(
  "and or not in is null like ilike between exists true false case when then else end any all some interval date timestamp current_date current_timestamp cast as escape rlike regexp distinct from".split(
    " ",
  ),
);

const WRITES_AS: Readonly<Record<string, string>> = { delete: "deletes from", drop: "drops", truncate: "empties" };

interface Found {
  verb: string;
  reads: string[];
  writes: string[];
  joins: string[];
  filters: string[];
  aggregates: string[];
  groups: string[];
  marks: string[];
}

export function summariseSql(sql: string): Summary {
  const found = read(tokensOf(sql).slice(0, TOKENS_MAX));
  const part = (words: string, items: readonly string[]) =>
    items.length === 0 ? [] : [`${words} ${listed(items, LISTED_MAX)}`];
  const parts = [
    ...part("reads", found.reads),
    ...part("joins on", found.joins),
    ...part("filters by", found.filters),
    ...part("aggregates", found.aggregates),
    ...part("groups by", found.groups),
    ...part(WRITES_AS[found.verb] ?? "writes", found.writes),
  ];
  const sentence = parts.length === 0 ? "runs a statement that names no table" : parts.join("; ");
  const tables = [...found.writes, ...found.reads].map((name) => (name.split(".").at(-1) ?? name).toLowerCase());
  return {
    summary: `${sentence.charAt(0).toUpperCase()}${sentence.slice(1)}.`,
    tags: distinct([found.verb, ...found.marks, ...tables]).slice(0, TAGS_MAX),
  };
}

function read(tokens: readonly Token[]): Found {
  const withNames = cteNames(tokens);
  const writes = writtenTables(tokens);
  const isTable = (name: string) => !withNames.has(name.toLowerCase());
  const has = (word: string) => tokens.some((token) => token.word === word);
  const joins = tokens.flatMap((token, at) => joinCondition(tokens, token, at));
  const aggregates = tokens.flatMap((token, at) => aggregate(tokens, token, at));
  const marks = [
    ...(has("join") ? ["join"] : []),
    ...(aggregates.length > 0 ? ["aggregation"] : []),
    ...(has("over") ? ["window"] : []),
    ...(has("union") ? ["union"] : []),
    ...(withNames.size > 0 ? ["cte"] : []),
  ];
  return {
    verb: verbOf(tokens),
    reads: distinct(tokens.flatMap((token, at) => tablesFrom(tokens, token, at)).filter(isTable)),
    writes: distinct(writes),
    joins: distinct(joins),
    filters: distinct(tokens.flatMap((token, at) => filtered(tokens, token, at))),
    aggregates: distinct(aggregates),
    groups: distinct(tokens.flatMap((token, at) => grouped(tokens, token, at))),
    marks,
  };
}

/** `ctas` is a table made from a query. */
function verbOf(tokens: readonly Token[]): string {
  const verbs = ["create", "insert", "merge", "update", "delete", "drop", "truncate", "alter", "select"];
  const outer = tokens.filter(({ depth, word }) => depth === 0 && verbs.includes(word)).map(({ word }) => word);
  const verb = outer[0] ?? (tokens.some(({ word }) => word === "select") ? "select" : "statement");
  if (verb === "select" && outer.includes("insert")) return "insert";
  if (verb !== "create") return verb;
  const isView = tokens.slice(0, 8).some(({ word }) => word === "view");
  return isView ? "view" : outer.includes("select") || tokens.some(({ word }) => word === "select") ? "ctas" : "create";
}

function cteNames(tokens: readonly Token[]): Set<string> {
  const names = new Set<string>();
  tokens.forEach((token, at) => {
    // In "with a as (...), b (x, y) as (...)": a name that `as (` follows, at a place where only a query can be named.
    if (token.word !== "as" || tokens[at + 1]?.kind !== "open") return;
    let before = at - 1;
    if (tokens[before]?.kind === "close") before = openedBy(tokens, before) - 1;
    const lead = tokens[before - 1];
    if (lead?.word === "with" || lead?.word === "recursive" || lead?.text === ",")
      names.add(tokens[before]?.text.toLowerCase() ?? "");
  });
  return names;
}

function openedBy(tokens: readonly Token[], close: number): number {
  const depth = tokens[close]?.depth;
  let at = close - 1;
  while (at > 0 && !((tokens[at]?.kind === "open" || tokens[at]?.kind === "call") && tokens[at]?.depth === depth))
    at -= 1;
  return at;
}

const WRITING = new Set(["into", "overwrite", "table", "view", "update"]);
const BETWEEN = new Set("table if not exists only into".split(" "));
const BEGINS_WRITE = new Set("insert create merge update delete drop truncate alter replace".split(" "));

function writtenTables(tokens: readonly Token[]): string[] {
  return tokens.flatMap((token, at) => {
    const isDelete = token.word === "from" && tokens[at - 1]?.word === "delete";
    if (!WRITING.has(token.word) && !isDelete) return [];
    // Not `for update`, `then update set`, `on update`; nor a table function.
    const lead = tokens.slice(Math.max(0, at - 5), at + 1).some(({ word }) => BEGINS_WRITE.has(word));
    if (!lead || tokens[at + 1]?.word === "set" || ["for", "on"].includes(tokens[at - 1]?.word ?? "")) return [];
    let start = at + 1;
    while (BETWEEN.has(tokens[start]?.word ?? "")) start += 1;
    const name = nameAt(tokens, start);
    return name && !CLAUSES.has(tokens[start]?.word ?? "") ? [name.name] : [];
  });
}

function tablesFrom(tokens: readonly Token[], token: Token, at: number): string[] {
  const before = tokens[at - 1]?.word;
  const isFrom = token.word === "from" && before !== "delete" && before !== "distinct" && !isInCall(tokens, at);
  const isUsing = token.word === "using" && tokens.some(({ word }) => word === "merge");
  if (!isFrom && !isUsing && token.word !== "join") return [];
  const names: string[] = [];
  for (let next = at + 1; ; ) {
    while (["only", "lateral", "table"].includes(tokens[next]?.word ?? "")) next += 1;
    if (isEnd(tokens, next, token.depth)) return names;
    const name = nameAt(tokens, next);
    if (name && tokens[name.end]?.kind !== "call") names.push(name.name);
    next = name?.end ?? next;
    // Behind the name, or the subquery, there may be another one: `from a x, (select ...) y, c`.
    while (next < tokens.length && !isEnd(tokens, next, token.depth) && !isComma(tokens, next, token.depth)) next += 1;
    if (token.word === "join" || !isComma(tokens, next, token.depth)) return names;
    next += 1;
  }
}

/** `extract(year from x)`: inside of a call, unless a query has begun there. */
function isInCall(tokens: readonly Token[], at: number): boolean {
  const depth = tokens[at]?.depth ?? 0;
  for (let open = at - 1; open >= 0; open -= 1) {
    const token = tokens[open];
    if (token?.depth === depth && token.word === "select") return false;
    if (token?.depth === depth - 1 && (token.kind === "call" || token.kind === "open")) return token.kind === "call";
  }
  return false;
}

/** `on conflict do nothing`, `on delete cascade` and the like. */
const NO_CONDITION = new Set("conflict duplicate delete update commit".split(" "));

function joinCondition(tokens: readonly Token[], token: Token, at: number): string[] {
  const next = tokens[at + 1];
  if (token.word === "using" && next?.kind !== "word" && next?.kind !== "quoted") {
    return [clause(tokens, at + 2, token.depth + 1)].filter(Boolean);
  }
  if (token.word !== "on" || tokens[at - 1]?.word === "distinct" || NO_CONDITION.has(next?.word ?? "")) return [];
  return [clause(tokens, at + 1, token.depth)].filter(Boolean);
}

/** The text up to the next clause. */
function clause(tokens: readonly Token[], from: number, depth: number, to = endOf(tokens, from, depth)): string {
  const text = tokens
    .slice(from, Math.min(to, from + CONDITION_LENGTH_MAX)) // No token is shorter than a character.
    .map((token) => (token.kind === "text" ? "?" : token.text))
    .join(" ");
  return text.replaceAll(/ ?([.(]) ?| (?=[),])/g, "$1").slice(0, CONDITION_LENGTH_MAX);
}

function filtered(tokens: readonly Token[], token: Token, at: number): string[] {
  if (token.word !== "where" && token.word !== "having" && token.word !== "qualify") return [];
  return columns(tokens, at + 1, endOf(tokens, at + 1, token.depth), token.depth);
}

function grouped(tokens: readonly Token[], token: Token, at: number): string[] {
  if (token.word !== "group" || tokens[at + 1]?.word !== "by") return [];
  return columns(tokens, at + 2, endOf(tokens, at + 2, token.depth), token.depth);
}

/** The columns that are named between two places, those of subqueries left out. */
function columns(tokens: readonly Token[], from: number, to: number, depth: number): string[] {
  const names: string[] = [];
  let at = from;
  while (at < to && names.length < LISTED_MAX * 2) {
    const token = tokens[at];
    const isQuery = (token?.kind === "open" || token?.kind === "call") && tokens[at + 1]?.word === "select";
    if (isQuery) while (at < to && !(tokens[at]?.kind === "close" && tokens[at]?.depth === token.depth)) at += 1;
    const name = nameAt(tokens, at);
    const next = name && tokens[name.end];
    const isColumn = name && !NO_COLUMNS.has(token?.word ?? "") && next?.kind !== "call" && next?.word !== "from";
    if (isColumn && (token?.depth ?? 0) >= depth) names.push(name.name);
    at = name?.end ?? at + 1;
  }
  return names;
}

function aggregate(tokens: readonly Token[], token: Token, at: number): string[] {
  if (!AGGREGATES.has(token.word) || tokens[at + 1]?.kind !== "call") return [];
  let end = at + 2;
  while (end < tokens.length && !(tokens[end]?.kind === "close" && tokens[end]?.depth === token.depth)) end += 1;
  return [`${token.word}(${clause(tokens, at + 2, token.depth + 1, end)})`];
}

function endOf(tokens: readonly Token[], from: number, depth: number): number {
  let end = from;
  while (end < tokens.length && !isEnd(tokens, end, depth)) end += 1;
  return end;
}

/** Where a clause of this depth ends: at the next one, at the parenthesis around it, or at the end of the statement. */
function isEnd(tokens: readonly Token[], at: number, depth: number): boolean {
  const token = tokens[at];
  if (!token) return true;
  if (token.text === ";" && token.kind === "symbol") return true;
  if (token.kind === "close" && token.depth < depth) return true;
  // A function may have the name of a keyword: `left(name, 3)`.
  return token.depth === depth && CLAUSES.has(token.word) && tokens[at + 1]?.kind !== "call";
}

function isComma(tokens: readonly Token[], at: number, depth: number): boolean {
  return tokens[at]?.text === "," && tokens[at]?.depth === depth;
}

function distinct(items: readonly string[]): string[] {
  return [...new Map(items.map((item) => [item.toLowerCase(), item])).values()];
}
