/** Searches assets by words, by meaning or by both, with the attribute in which each was found. */
import type { Db } from "../../kernel/data/db.ts";
import { lineageError } from "../catalogue.ts";
import type { AttributeValue } from "../graph/facts.ts";
import { type NodeKind, ownName } from "../graph/names.ts";
import { queryWords, searchWords } from "../graph/words.ts";
import { fullName } from "./shown.ts";
import { type HitRow, readHits, searchText } from "./store/search.ts";

export type SearchMode = "text" | "semantic" | "hybrid";

/** The nearest assets by meaning, the best first, of one kind or of all; nothing if the tenant has chosen no model. */
export type Semantic = (
  tenantId: string,
  text: string,
  among: { kind: NodeKind | null; limit: number },
) => Promise<readonly { nodeId: string; score: number }[] | undefined>;

export interface Search {
  q: string;
  kind: NodeKind | null;
  limit: number;
  mode: SearchMode;
  /** Assets that were dropped are found as well, by words. */
  dropped: boolean;
}

interface Match {
  /** Where: `name`, `fullName`, an attribute, `summary`, or `meaning`. */
  field: string;
  snippet: string;
}
export interface Hit {
  id: string;
  kind: NodeKind;
  name: string;
  fullName: string;
  path: string[];
  description: string | null;
  isDropped: boolean;
  score: number;
  matched: Match[];
}
export interface SearchAnswer {
  /** How it was searched: `text` for a hybrid search of a tenant without a model. */
  mode: SearchMode;
  notice: string | null;
  items: Hit[];
}

const NO_MODEL = "The tenant has chosen no model, so only the words were searched.";
/** More than are shown: what stands low in both lists may come before what is in one of them. */
const FUSED_FACTOR = 4;
/** Reciprocal rank fusion: how little the first places of one list count more than those that follow. */
const FUSION = 60;
const SNIPPET_LENGTH = 160;
const MATCHES_MAX = 3;

export async function search(
  db: Db,
  semantic: Semantic | undefined,
  tenantId: string,
  asked: Search,
): Promise<SearchAnswer> {
  const { q, kind, limit, mode, dropped } = asked;
  const among = { kind, limit: mode === "hybrid" ? limit * FUSED_FACTOR : limit };
  const near = mode === "text" ? undefined : await semantic?.(tenantId, q, among);
  if (mode === "semantic" && !near) throw lineageError("SEMANTIC_UNAVAILABLE", { tenantId });
  const words = searchWords(q);
  const query = queryWords(q);
  const texts =
    mode === "semantic" || query === ""
      ? []
      : await searchText(db, tenantId, { text: q, query, words, kind, dropped, limit: near ? among.limit : limit });

  const scores = new Map<string, number>();
  if (!near) for (const { id, rank } of texts) scores.set(id, rank);
  else if (mode === "semantic") for (const { nodeId, score } of near) scores.set(nodeId, score);
  else {
    const lists = [texts.map(({ id }) => id), near.map(({ nodeId }) => nodeId)];
    for (const list of lists) {
      for (const [place, id] of list.entries()) scores.set(id, (scores.get(id) ?? 0) + 1 / (FUSION + place + 1));
    }
  }
  const rows = await readHits(db, tenantId, [...scores.keys()], { kind, dropped });
  const meant = new Set(near?.map(({ nodeId }) => nodeId));
  const places = new Map([...scores.keys()].map((id, place) => [id, place]));
  const score = ({ id }: HitRow) => scores.get(id) ?? 0;
  const items = rows
    .sort((a, b) => score(b) - score(a) || (places.get(a.id) ?? 0) - (places.get(b.id) ?? 0))
    .slice(0, limit)
    .map((row) => hitOf(row, score(row), words, meant.has(row.id)));
  const fellBack = mode === "hybrid" && !near;
  return { mode: fellBack ? "text" : mode, notice: fellBack ? NO_MODEL : null, items };
}

function hitOf(row: HitRow, score: number, words: readonly string[], isMeant: boolean): Hit {
  const { id, kind, path, attributes } = row;
  const description = attributes["description"];
  const matched = matchesOf(row, words);
  if (isMeant) matched.push({ field: "meaning", snippet: "" });
  return {
    id,
    kind,
    name: ownName(row),
    fullName: fullName(row),
    path,
    description: typeof description === "string" ? description : null,
    isDropped: row.is_dropped,
    score,
    matched,
  };
}

function matchesOf(row: HitRow, words: readonly string[]): Match[] {
  const fields: [string, string][] = [
    ["name", ownName(row)],
    ["fullName", fullName(row)],
    ...Object.entries(row.attributes).map(([field, value]): [string, string] => [field, textOf(value)]),
    ["summary", row.summary ?? ""],
  ];
  const matches: Match[] = [];
  const open = new Set(words);
  for (const [field, text] of fields) {
    const lower = text.toLowerCase();
    const here = [...open].filter((word) => lower.includes(word));
    if (here.length === 0) continue;
    for (const word of here) open.delete(word); // Counted once, where it counts most.
    matches.push({ field, snippet: snippetOf(text, lower.indexOf(here[0] ?? "")) });
    if (matches.length === MATCHES_MAX) break;
  }
  return matches;
}

function textOf(value: AttributeValue): string {
  if (typeof value === "string") return value;
  if (value === null || typeof value !== "object") return "";
  return Object.values(value).map(textOf).join(" ");
}

function snippetOf(text: string, at: number): string {
  const from = Math.max(0, at - SNIPPET_LENGTH / 4);
  const cut = text.slice(from, from + SNIPPET_LENGTH).toWellFormed();
  const tidy = cut.replaceAll(/\s+/g, " ").trim();
  return `${from > 0 ? "…" : ""}${tidy}${from + SNIPPET_LENGTH < text.length ? "…" : ""}`;
}
