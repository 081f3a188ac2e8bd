/**
 * The search words of an asset. Postgres splits neither `order_lineId` nor Chinese into words, so that is done here, for
 * assets and for queries alike; `to_tsvector` gets letters, digits and spaces only.
 */
import type { Attributes, AttributeValue } from "./facts.ts";
import type { AssetName } from "./names.ts";

/** Of one text: the subject of a statement is in its first pages. */
const TEXT_LENGTH_MAX = 16_000;
/** Of one asset: a table may have hundreds of properties, and a vector has room for one megabyte. */
const WORDS_MAX = 2_000;
/** Nobody types a longer one. Postgres would warn of those over 2 KB and leave them out. */
const WORD_LENGTH_MAX = 80;
const DEPTH_MAX = 6;
const QUERY_WORDS_MAX = 16;

/** Dots and slashes part the names of a path, and `_` the words of one name. */
const IDENTIFIER = /[\p{L}\p{M}\p{N}_]+/gu;
const SPACELESS = "[\\p{Script=Han}\\p{Script=Hiragana}\\p{Script=Katakana}\\p{Script=Hangul}ー]+";
/** A run of a script without spaces, digits, capitals as in `HTTP`, a word as in `Order` or `order`, or other letters. */
const PART = new RegExp(
  `(${SPACELESS})|\\p{N}+|\\p{Lu}+(?!\\p{Ll})|\\p{Lu}?[\\p{Ll}\\p{M}]+|(?:(?!${SPACELESS})[\\p{Lo}\\p{Lm}\\p{Lt}\\p{M}])+|\\p{L}`,
  "gu",
);
const ONE_PLAIN_WORD = /^[a-z]+$/;

/** Attributes that most assets have and nobody searches for. */
const UNSEARCHED: ReadonlySet<string> = new Set([
  "position",
  "nullable",
  "autoIncrement",
  "createTime",
  "lastModifiedTime",
  "producer",
  "namespace",
]);

/** The text for `to_tsvector('simple', ...)`: the words of the name, then those of the attributes; each once. */
export function wordsOf({ kind, path }: AssetName, attributes: Attributes): string {
  const words = new Set<string>();
  for (const part of kind === "SQL" ? path.slice(0, 2) : startsWithOrigin(path) ? path.slice(1) : path)
    addText(words, part);
  for (const [attribute, value] of Object.entries(attributes)) {
    if (!UNSEARCHED.has(attribute)) addValue(words, value, DEPTH_MAX);
  }
  return [...words].join(" ");
}

/**
 * The same for what a person looks for, as text for `to_tsquery('simple', ...)`: all words must be there, and the last may
 * be the beginning of one. Empty if there is nothing to look for.
 */
export function queryWords(text: string): string {
  const words = searchWords(text);
  return words.map((word, index) => (index === words.length - 1 ? `${word}:*` : word)).join(" & ");
}

/** The words to look for. Of a run without spaces the pairs alone: each is rarer than its two characters. */
export function searchWords(text: string): string[] {
  const words = new Set<string>();
  for (const [identifier] of normal(text).matchAll(IDENTIFIER)) {
    for (const [part, spaceless] of identifier.matchAll(PART)) {
      const found = spaceless === undefined ? [part.toLowerCase()] : pairsOf(spaceless);
      for (const word of found) words.add(word.slice(0, WORD_LENGTH_MAX));
    }
  }
  return [...words].slice(0, QUERY_WORDS_MAX);
}

function startsWithOrigin(path: readonly string[]): boolean {
  return path[0] === "gravitino" || path[0] === "external";
}

function addValue(words: Set<string>, value: AttributeValue, depth: number): void {
  if (words.size >= WORDS_MAX || depth === 0) return;
  if (typeof value === "string") addText(words, value);
  else if (value !== null && typeof value === "object") {
    for (const item of Object.values(value)) addValue(words, item, depth - 1);
  }
}

function addText(words: Set<string>, text: string): void {
  if (ONE_PLAIN_WORD.test(text)) {
    words.add(text.slice(0, WORD_LENGTH_MAX));
    return;
  }
  for (const [identifier] of normal(text).matchAll(IDENTIFIER)) {
    if (words.size >= WORDS_MAX) return;
    addIdentifier(words, identifier);
  }
}

function addIdentifier(words: Set<string>, identifier: string): void {
  if (ONE_PLAIN_WORD.test(identifier)) {
    words.add(identifier.slice(0, WORD_LENGTH_MAX));
    return;
  }
  let parts = 0;
  for (const [part, spaceless] of identifier.matchAll(PART)) {
    parts += 1;
    if (spaceless === undefined) words.add(part.toLowerCase().slice(0, WORD_LENGTH_MAX));
    else for (const word of [...Array.from(spaceless), ...pairsOf(spaceless)]) words.add(word);
  }
  // Whole as well, without what joined it: `orderid` finds `order_id` and `orderId`.
  if (parts > 1) words.add(identifier.replaceAll("_", "").toLowerCase().slice(0, WORD_LENGTH_MAX));
}

function pairsOf(run: string): string[] {
  const characters = Array.from(run);
  if (characters.length === 1) return characters;
  return characters.slice(1).map((character, index) => `${characters[index]}${character}`);
}

/** Full-width letters and their like are the same letters. */
function normal(text: string): string {
  return text.slice(0, TEXT_LENGTH_MAX).normalize("NFKC");
}
