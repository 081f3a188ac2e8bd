/**
 * The query of ESearch. Ranges of dates narrow it, in the term or in parameters; every other word matches all records, since
 * the text of a simulated record means nothing.
 */
import { DAY_MS } from "../../kernel/time/units.ts";
import { type SimulatedRecord } from "../common/records.ts";
import { entered } from "./article.ts";

type DateOf = (record: SimulatedRecord) => number;

export interface DateRange {
  /** As ESearch calls it in the translation: `Date - Create`. */
  label: string;
  text: string;
  dateOf: DateOf;
  from: number;
  /** Included. */
  until: number;
}

export interface Search {
  ranges: DateRange[];
  /** Words of the query that PubMed does not know. One with a field finds nothing; without one it is ignored. */
  phrasesNotFound: string[];
  findsNothing: boolean;
  /** Words without a field, and what was made of them. */
  translations: { from: string; to: string }[];
  translation: string;
}

interface DateKind {
  label: string;
  dateOf: DateOf;
}

const created: DateKind = { label: "Date - Create", dateOf: (record) => record.created };
const entry: DateKind = { label: "Date - Entry", dateOf: entered };
const modified: DateKind = { label: "Date - Modification", dateOf: (record) => record.updated };
const publication: DateKind = { label: "Date - Publication", dateOf: (record) => record.published };

const KINDS: Readonly<Record<string, DateKind>> = {
  crdt: created,
  "date - create": created,
  edat: entry,
  "date - entry": entry,
  mdat: modified,
  lr: modified,
  "date - modification": modified,
  pdat: publication,
  dp: publication,
  "date - publication": publication,
};

const DAY = String.raw`"?(\d{4}(?:\/\d{1,2}){0,2})"?`;
const RANGE = new RegExp(String.raw`${DAY}(?:\s*\[([^\]]+)\])?\s*:\s*${DAY}\s*\[([^\]]+)\]|${DAY}\s*\[([^\]]+)\]`, "g");

export function readSearch(
  params: URLSearchParams,
  { now, unknownPhrases }: { now: number; unknownPhrases: readonly string[] },
): Search {
  const term = (params.get("term") ?? "").replaceAll(/\s+/g, " ").trim();
  const ranges: DateRange[] = [];
  for (const [, first, , last, rangeTag, only, tag] of term.matchAll(RANGE)) {
    const kind = KINDS[(rangeTag ?? tag ?? "").toLowerCase()];
    if (kind) ranges.push(range(kind, first ?? only ?? "", last ?? only ?? ""));
  }
  const byParameter = parameterRange(params, now);
  if (byParameter) ranges.push(byParameter);
  const phrases = phrasesOf(term).filter(({ words }) => unknownPhrases.includes(words));
  return {
    ranges,
    phrasesNotFound: phrases.map(({ words }) => words),
    findsNothing: phrases.some(({ field }) => field !== undefined),
    translations: translationsOf(term, unknownPhrases),
    translation: byParameter ? `(${term}) AND ${byParameter.text}[${byParameter.label}]` : term,
  };
}

/** The words of a query in a row, with the field in brackets if they have one. */
function phrasesOf(term: string): { words: string; field: string | undefined }[] {
  const undated = term.replaceAll(RANGE, "").replaceAll('"', "");
  return undated.split(/ (?:AND|OR|NOT)(?= |$)|^(?:AND|NOT) |[()]/).flatMap((part) => {
    const [, words = "", field] = /^\s*([^[\]]*?)\s*(?:\[([^\]]*)\])?\s*$/.exec(part) ?? [];
    return words === "" ? [] : words.split(" ").map((word) => ({ words: word, field }));
  });
}

/** Also for the names of journals, whose field is `ta`. */
function translationsOf(term: string, unknownPhrases: readonly string[]): { from: string; to: string }[] {
  return phrasesOf(term)
    .filter(({ words, field }) => (field === undefined || field === "ta") && !unknownPhrases.includes(words))
    .map(({ words }) => ({ from: words, to: `"${words}"[All Fields]` }));
}

export function matches({ ranges, findsNothing }: Search, record: SimulatedRecord): boolean {
  if (findsNothing) return false;
  return ranges.every(({ dateOf, from, until }) => dateOf(record) >= from && dateOf(record) <= until);
}

/** `mindate` and `maxdate` count only together; `reldate` is a number of days back from today. */
function parameterRange(params: URLSearchParams, now: number): DateRange | undefined {
  const kind = KINDS[params.get("datetype") ?? "pdat"] ?? publication;
  const [first, last, days] = [params.get("mindate"), params.get("maxdate"), params.get("reldate")];
  if (first !== null && last !== null) return range(kind, first, last);
  if (days === null) return undefined;
  const day = (ms: number) => new Date(ms).toISOString().slice(0, 10).replaceAll("-", "/");
  return range(kind, day(now - Number(days) * DAY_MS), day(now));
}

function range(kind: DateKind, first: string, last: string): DateRange {
  const { from } = spanOf(first);
  const { until } = spanOf(last);
  return { ...kind, text: `${first}:${last}`, from, until };
}

/** The first and last instant of `2026`, `2026/08` or `2026/08/20`. */
function spanOf(text: string): { from: number; until: number } {
  const [year, month, day] = text.split("/").map(Number);
  const from = Date.UTC(year ?? 0, (month ?? 1) - 1, day ?? 1);
  if (day !== undefined) return { from, until: from + DAY_MS - 1 };
  const next = month === undefined ? Date.UTC((year ?? 0) + 1, 0) : Date.UTC(year ?? 0, month);
  return { from, until: next - 1 };
}
