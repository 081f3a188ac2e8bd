/**
 * The parser of JSON bodies. Beyond syntax it refuses text that Postgres cannot store (NUL, unpaired surrogates, bytes that
 * are not UTF-8), so that no module has to think of it and no such body ends as a 500.
 */
import { ApiError } from "../errors.ts";

const decoder = new TextDecoder("utf-8", { fatal: true });
/** Only an escape can bring in NUL or a lone surrogate, because the decoder refuses both as bytes; NUL aside. */
const SUSPICIOUS = /\\u(?:0000|d[89a-f])|\0/i;

export function parseJson(body: Buffer): unknown {
  const text = decode(body);
  if (text.trim() === "") throw new ApiError("MALFORMED_JSON", {}, { reason: "it is empty" });
  const value = parse(text);
  if (SUSPICIOUS.test(text)) refuseUnstorable(value, "The body");
  return value;
}

function decode(body: Buffer): string {
  try {
    return decoder.decode(body);
  } catch {
    throw new ApiError("INVALID_TEXT", {}, { where: "The body", what: "bytes that are not UTF-8" });
  }
}

function parse(text: string): unknown {
  try {
    // A key `__proto__` would change the prototype of whatever the value is spread or assigned into later.
    return JSON.parse(text, (key, value: unknown) => (key === "__proto__" ? undefined : value));
  } catch (error) {
    throw new ApiError("MALFORMED_JSON", {}, { reason: error instanceof Error ? error.message : "unknown reason" });
  }
}

function refuseUnstorable(value: unknown, where: string): void {
  if (typeof value === "string") {
    if (value.includes("\0")) throw new ApiError("INVALID_TEXT", {}, { where, what: "a NUL character" });
    if (!value.isWellFormed()) throw new ApiError("INVALID_TEXT", {}, { where, what: "an unpaired surrogate" });
  } else if (Array.isArray(value)) {
    value.forEach((item, index) => refuseUnstorable(item, `${where}[${index}]`));
  } else if (value !== null && typeof value === "object") {
    for (const [key, item] of Object.entries(value)) {
      refuseUnstorable(key, `A field name in ${where.toLowerCase()}`);
      refuseUnstorable(item, `Field \`${key}\``);
    }
  }
}
