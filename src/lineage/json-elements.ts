/**
 * The elements of a JSON array as they are written. An event is kept exactly as it was sent, with the order of its keys and
 * those that come twice, which is lost once a batch has been parsed and its elements are written out again.
 */

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COMMA = 0x2c;
const OPEN_BRACKET = 0x5b;
const CLOSE_BRACKET = 0x5d;
const OPEN_BRACE = 0x7b;
const CLOSE_BRACE = 0x7d;

/** `text` is a JSON array: whoever calls this has parsed it. */
export function elementsOf(text: string): string[] {
  const elements: string[] = [];
  let depth = 0;
  let start = 0;
  for (let i = 0; i < text.length; i += 1) {
    switch (text.charCodeAt(i)) {
      case QUOTE:
        i = endOfString(text, i);
        break;
      case OPEN_BRACKET:
      case OPEN_BRACE:
        depth += 1;
        if (depth === 1) start = i + 1;
        break;
      case COMMA:
        if (depth > 1) break;
        elements.push(text.slice(start, i).trim());
        start = i + 1;
        break;
      case CLOSE_BRACKET:
      case CLOSE_BRACE: {
        depth -= 1;
        if (depth > 0) break;
        const last = text.slice(start, i).trim();
        if (last !== "") elements.push(last); // Else the array is empty.
        break;
      }
      default:
    }
  }
  return elements;
}

/** Where the string that begins at `from` has its closing quote. */
function endOfString(text: string, from: number): number {
  let end = from;
  do end = text.indexOf('"', end + 1);
  while (isEscaped(text, end));
  if (end === -1) throw new Error("the text is no JSON array");
  return end;
}

function isEscaped(text: string, at: number): boolean {
  let first = at;
  while (text.charCodeAt(first - 1) === BACKSLASH) first -= 1;
  return (at - first) % 2 === 1;
}
