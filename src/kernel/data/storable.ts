/** Makes text and JSON from outside storable: Postgres accepts neither NUL nor an unpaired surrogate. */
import { isDeeper } from "../json/depth.ts";
import { messageOf } from "../text/message-of.ts";

/** Far more than any real document; both `JSON.stringify` and Postgres fail at some depth. */
const DEPTH_MAX = 256;
/** Matches any escape, so that `\\u0000` counts as a backslash and letters. Pairs are not escaped, so an escaped surrogate is unpaired. */
const ESCAPE = /\\(?:u0000|ud[89a-f][0-9a-f]{2}|.)/g;

/** Accepts any value, because code in a user's own file may pass one. */
export function storableText(value: unknown, lengthMax: number): string {
  return String(value).slice(0, lengthMax).replaceAll("\0", "\uFFFD").toWellFormed();
}

/** A copy of the value as JSON has it, with its size; or the reason why there is none. */
export function storableJson(value: unknown): { copy: unknown; bytes: number } | { reason: string } {
  try {
    const text = (JSON.stringify(value) ?? "null").replace(ESCAPE, (escape) => (escape.length > 2 ? "\uFFFD" : escape));
    const copy: unknown = JSON.parse(text);
    if (isDeeper(copy, DEPTH_MAX)) return { reason: `nested deeper than ${DEPTH_MAX} levels` };
    return { copy, bytes: Buffer.byteLength(text) };
  } catch (error) {
    if (error instanceof RangeError) return { reason: "nested too deeply" };
    return { reason: `not JSON: ${messageOf(error).split("\n")[0]}` };
  }
}
