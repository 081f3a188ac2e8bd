/**
 * Measures JSON text before it is parsed. Parsing takes memory and time by the number of values in the text, a hundred times
 * its length for `[[[[...`, and cannot be interrupted: 8 MB of brackets, which gzip makes of 8 KB, stopped a process for
 * seconds. The scan allocates nothing and ends at the first limit that is passed. Measured on the DAG of a chain of 1 MB, on
 * a busy machine: 2 ms, and 12 ms for `JSON.parse`.
 */

export interface JsonLimits {
  /** Lists and objects inside each other. */
  depthMax: number;
  /** Items of lists and fields of objects, in all. */
  elementsMax: number;
}

/**
 * For text from outside: far more than any real document. `JSON.stringify` and Postgres fail at some depth, too. Fields with
 * half a million different names, which take longest, are parsed in half a second.
 */
export const JSON_LIMITS: JsonLimits = { depthMax: 256, elementsMax: 500_000 };

export const QUOTE = 0x22;
const BACKSLASH = 0x5c;
export const COMMA = 0x2c;
export const OPEN_BRACKET = 0x5b;
export const CLOSE_BRACKET = 0x5d;
export const OPEN_BRACE = 0x7b;
export const CLOSE_BRACE = 0x7d;

/** What is too much, to follow "it"; undefined if the text is within the limits. It need not be JSON. */
export function whyTooComplex(text: string, { depthMax, elementsMax }: JsonLimits): string | undefined {
  let depth = 0;
  let elements = 0;
  for (let i = 0; i < text.length; i += 1) {
    switch (text.charCodeAt(i)) {
      case QUOTE:
        i = endOfString(text, i);
        break;
      case OPEN_BRACKET:
      case OPEN_BRACE:
        depth += 1;
        elements += 1;
        if (depth > depthMax) return `is nested more than ${depthMax} levels deep`;
        break;
      case CLOSE_BRACKET:
      case CLOSE_BRACE:
        depth -= 1;
        break;
      case COMMA:
        elements += 1;
        break;
      default:
        continue;
    }
    if (elements > elementsMax) return `has more than ${elementsMax} values`;
  }
  return undefined;
}

/** Like `JSON.parse`, for text from outside. Also throws a SyntaxError if the text is beyond the limits. */
export function parseWithin(text: string, limits = JSON_LIMITS): unknown {
  const reason = whyTooComplex(text, limits);
  if (reason !== undefined) throw new SyntaxError(`The text ${reason}`);
  return JSON.parse(text);
}

/** Where the string that begins at `from` has its closing quote; the end of the text if it has none. */
export function endOfString(text: string, from: number): number {
  let end = from;
  do end = text.indexOf('"', end + 1);
  while (end !== -1 && isEscaped(text, end));
  return end === -1 ? text.length : end;
}

function isEscaped(text: string, at: number): boolean {
  let first = at;
  while (text.charCodeAt(first - 1) === BACKSLASH) first -= 1;
  return (at - first) % 2 === 1;
}
