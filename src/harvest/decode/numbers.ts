/**
 * Whole numbers that a double cannot hold. `JSON.parse` rounds 9007199254740993 and reads 1e400 as Infinity, so ids would
 * collide and data change without a sign. Such a number is parsed as a text that begins with NUL, which no other text does,
 * because Postgres cannot store it; `jsonText` writes it as the number that it was.
 */
import { endOfString, QUOTE } from "../../kernel/json/complexity.ts";

const MARK = "\0#";
const MARK_IN_JSON = "\\u0000#";
const MARKED = /"\\u0000#([^"]*)"/g;
/** Cheap, and true for all documents with such a number, and some with digits in a string. */
const SUSPECT = /[:,[\s]-?(?:\d{16}|\d[\d.]*[eE]\+?\d{3})/;
const NUMBER = /-?\d[\d.eE+-]*/y;
const NUL_ESCAPE = /\\(?:u0000|[^])/g;
const SURROGATE_ESCAPE = /\\(?:ud[89a-f][0-9a-f]{2}|[^])/g;
const REPLACEMENT = "\uFFFD";

/** Makes the text of a document safe to parse: escaped NULs are replaced, large numbers marked. */
export function withMarks(json: string): string {
  const clean = json.includes("\\u0000")
    ? json.replaceAll(NUL_ESCAPE, (escape) => (escape.length > 2 ? REPLACEMENT : escape))
    : json;
  return SUSPECT.test(clean) ? marked(clean) : clean;
}

/** The JSON text of a value that was parsed from marked text, as Postgres accepts it. */
export function jsonText(value: unknown): string {
  let json = JSON.stringify(value);
  if (json.includes(MARK_IN_JSON)) json = json.replaceAll(MARKED, "$1");
  // JSON.stringify escapes only surrogates without their other half.
  if (json.includes("\\ud"))
    json = json.replaceAll(SURROGATE_ESCAPE, (escape) => (escape.length > 2 ? REPLACEMENT : escape));
  return json;
}

/** The digits of a marked number; any other text as it is. */
export function unmarked(text: string): string {
  return text.startsWith(MARK) ? text.slice(MARK.length) : text;
}

function marked(json: string): string {
  let result = "";
  let from = 0;
  for (let at = 0; at < json.length; at += 1) {
    const code = json.charCodeAt(at);
    if (code === QUOTE) {
      at = endOfString(json, at);
      continue;
    }
    if (!isNumberStart(code)) continue;
    NUMBER.lastIndex = at;
    const number = NUMBER.exec(json)?.[0];
    if (number === undefined) continue;
    if (!isExact(number)) {
      result += `${json.slice(from, at)}"${MARK_IN_JSON}${number}"`;
      from = at + number.length;
    }
    at += number.length - 1;
  }
  return result + json.slice(from);
}

function isNumberStart(code: number): boolean {
  return (code >= 0x30 && code <= 0x39) || code === 0x2d;
}

/** A fraction is rounded to a double, as everywhere; a whole number is not. What is no JSON number is left for the parser to refuse. */
function isExact(number: string): boolean {
  const value = Number(number);
  if (Number.isNaN(value)) return true;
  return /^-?\d+$/.test(number) ? Number.isSafeInteger(value) || /^-?0\d/.test(number) : Number.isFinite(value);
}
