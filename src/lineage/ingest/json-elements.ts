/**
 * Splits a JSON array into the texts of its elements. An event is stored exactly as it was sent; parsing a batch and
 * writing its elements again would lose duplicate keys and the form of numbers.
 */
import {
  CLOSE_BRACE,
  CLOSE_BRACKET,
  COMMA,
  endOfString,
  OPEN_BRACE,
  OPEN_BRACKET,
  QUOTE,
} from "../../kernel/json/complexity.ts";

/**
 * Nothing if the text does not begin and end as an array. Otherwise it is a JSON array if, and only if, each of the elements
 * is JSON. Of an array with more than `max` elements, one more is answered, and the text behind it is not looked at.
 */
export function elementsOf(text: string, max = Number.POSITIVE_INFINITY): string[] | undefined {
  const begin = endOfSpace(text, 0);
  if (text.charCodeAt(begin) !== OPEN_BRACKET) return undefined;
  const elements: string[] = [];
  let depth = 1;
  let start = begin + 1;
  for (let i = start; i < text.length; i += 1) {
    switch (text.charCodeAt(i)) {
      case QUOTE:
        i = endOfString(text, i);
        break;
      case OPEN_BRACKET:
      case OPEN_BRACE:
        depth += 1;
        break;
      case COMMA:
        if (depth > 1) break;
        elements.push(trimmed(text, start, i));
        if (elements.length > max) return elements;
        start = i + 1;
        break;
      case CLOSE_BRACKET:
      case CLOSE_BRACE: {
        depth -= 1;
        if (depth > 0) break;
        if (text.charCodeAt(i) !== CLOSE_BRACKET || endOfSpace(text, i + 1) < text.length) return undefined;
        const last = trimmed(text, start, i);
        return elements.length === 0 && last === "" ? [] : [...elements, last];
      }
      default:
    }
  }
  return undefined;
}

/** The first place that holds no white space of JSON, which is less than what `trim` takes for white space. */
function endOfSpace(text: string, from: number): number {
  let at = from;
  while (isSpace(text.charCodeAt(at))) at += 1;
  return at;
}

function trimmed(text: string, from: number, to: number): string {
  const start = endOfSpace(text, from);
  let end = to;
  while (end > start && isSpace(text.charCodeAt(end - 1))) end -= 1;
  return text.slice(start, end);
}

function isSpace(code: number): boolean {
  return code === 0x20 || code === 0x0a || code === 0x0d || code === 0x09;
}
