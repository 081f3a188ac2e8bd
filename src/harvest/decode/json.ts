/** A body of JSON as a document, with limits. */
import { endOfString, type JsonLimits, whyTooComplex } from "../../kernel/json/complexity.ts";
import { messageOf } from "../../kernel/text/message-of.ts";
import { charsetIn, charsetOf, textIn } from "./charset.ts";
import { DecodeError } from "./decode-error.ts";
import { withMarks } from "./numbers.ts";

/** A page of 1,000 records of Crossref has up to a million values. */
const LIMITS: JsonLimits = { depthMax: 256, elementsMax: 5_000_000 };
/** Characters that JSON allows in a string only as an escape. */
// oxlint-disable-next-line no-control-regex -- it matches control characters
const CONTROL = /[\u0000-\u001f]/;
// oxlint-disable-next-line no-control-regex -- it matches control characters
const CONTROLS = /[\u0000-\u001f]/g;

export interface JsonDocument {
  document: unknown;
  warnings: string[];
}

export function decodeJson(body: Buffer, contentType: string | undefined): JsonDocument {
  const charset = charsetOf(body, [charsetIn(contentType)]);
  let text: string;
  try {
    text = textIn(body, charset);
  } catch {
    throw new DecodeError(`The body is too large for one document: ${body.length} bytes.`);
  }
  const warnings = charset.lossy ? ["bytes that are not UTF-8 were replaced"] : [];
  try {
    return { document: parse(text), warnings };
  } catch (error) {
    const repaired = error instanceof DecodeError ? text : withEscapedControls(text);
    if (repaired === text) throw notJson(error);
    try {
      return { document: parse(repaired), warnings: [...warnings, "line breaks inside of strings were escaped"] };
    } catch {
      throw notJson(error);
    }
  }
}

/** The data of a stored record. Large whole numbers stay exact for `outputFields`. */
export function parseRecord(dataJson: string): unknown {
  return JSON.parse(withMarks(dataJson));
}

function parse(text: string): unknown {
  const reason = whyTooComplex(text, LIMITS);
  if (reason !== undefined) throw new DecodeError(`The body ${reason}.`);
  return JSON.parse(withMarks(text));
}

function notJson(error: unknown): DecodeError {
  if (error instanceof DecodeError) return error;
  // The parser quotes the text around the error, which may be long and contain a secret.
  const place = /at position \d+|Unexpected end/.exec(messageOf(error))?.[0] ?? "";
  return new DecodeError(`The body is not JSON${place && ` (${place})`}.`);
}

/** NCBI sends raw line breaks inside strings. */
function withEscapedControls(text: string): string {
  let result = "";
  let from = 0;
  for (let at = text.indexOf('"'); at !== -1 && at < text.length; at = text.indexOf('"', at + 1)) {
    const end = endOfString(text, at);
    const string = text.slice(at, end);
    if (CONTROL.test(string)) {
      result += text.slice(from, at) + string.replaceAll(CONTROLS, escaped);
      from = end;
    }
    at = end;
  }
  return result + text.slice(from);
}

function escaped(character: string): string {
  return `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`;
}
