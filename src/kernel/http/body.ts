/**
 * The parser of JSON bodies. Beyond syntax it refuses what would stop the process (endless nesting, too many values) and
 * what Postgres cannot store (NUL, unpaired surrogates, bytes that are not UTF-8), so that no module has to handle it.
 */
import { invalid, kernelError } from "../errors.ts";
import { JSON_LIMITS, type JsonLimits, whyTooComplex } from "../json/complexity.ts";

const BODY_LIMITS: JsonLimits = { ...JSON_LIMITS, depthMax: 64 };
const NAME_LENGTH_SHOWN = 64;
const decoder = new TextDecoder("utf-8", { fatal: true });
/** NUL and unpaired surrogates are possible only as an escape: the parser refuses the one as a byte, the decoder the other. */
const SUSPICIOUS = /\\u|__proto__/;

export function parseJson(body: Buffer): unknown {
  const text = textOf(body);
  const value = valueOf(text, BODY_LIMITS);
  if (SUSPICIOUS.test(text)) refuseUnusable(value, "");
  return value;
}

/** Throws INVALID_TEXT. */
export function textOf(body: Buffer): string {
  try {
    return decoder.decode(body);
  } catch {
    throw kernelError("INVALID_TEXT", {}, { where: "The body", what: "bytes that are not UTF-8" });
  }
}

/** Throws MALFORMED_JSON or BODY_TOO_COMPLEX. */
export function valueOf(text: string, limits: JsonLimits): unknown {
  if (text.trim() === "") throw kernelError("MALFORMED_JSON", {}, { reason: "it is empty" });
  const reason = whyTooComplex(text, limits);
  if (reason !== undefined) throw kernelError("BODY_TOO_COMPLEX", {}, { reason });
  try {
    return JSON.parse(text);
  } catch (error) {
    throw kernelError(
      "MALFORMED_JSON",
      {},
      { reason: error instanceof Error ? withoutExcerpt(error) : "unknown reason" },
    );
  }
}

/** The parser quotes a part of the text, which may be a secret and would end up in the caller's log. */
function withoutExcerpt({ message }: Error): string {
  return message.replace(/, (\.\.\.)?".*$/s, "");
}

/** `place` is the path to the value, empty for the body itself. */
function refuseUnusable(value: unknown, place: string): void {
  if (typeof value === "string") {
    refuseUnstorable(value, place === "" ? "The body" : `The field \`${place}\``);
  } else if (Array.isArray(value)) {
    for (const [index, item] of value.entries()) refuseUnusable(item, `${place}[${index}]`);
  } else if (value !== null && typeof value === "object") {
    for (const [name, item] of Object.entries(value)) {
      refuseUnstorable(name, place === "" ? "A field name in the body" : `A field name in \`${place}\``);
      // It would change the prototype of an object that the value is assigned to later.
      if (name === "__proto__") throw invalid("The body has a field named `__proto__`, which is never accepted");
      const shown = name.slice(0, NAME_LENGTH_SHOWN);
      refuseUnusable(item, place === "" ? shown : `${place}.${shown}`);
    }
  }
}

function refuseUnstorable(text: string, where: string): void {
  if (text.includes("\0")) throw kernelError("INVALID_TEXT", {}, { where, what: "a NUL character" });
  if (!text.isWellFormed()) throw kernelError("INVALID_TEXT", {}, { where, what: "an unpaired surrogate" });
}
