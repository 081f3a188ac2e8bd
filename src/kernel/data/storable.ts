/** What programs and servers say may hold anything. Postgres takes neither NUL nor half a surrogate pair, as text or JSON. */

import { isDeeper } from "../json/depth.ts";
import { messageOf } from "../text/message-of.ts";

/** Far more than any real document; both `JSON.stringify` and Postgres give up at some depth. */
const DEPTH_MAX = 256;
/** Any escape, so that `\\u0000` is read as a backslash and letters. Whole pairs are not escaped: a surrogate that is stands alone. */
const ESCAPE = /\\(?:u0000|ud[89a-f][0-9a-f]{2}|.)/g;

/** Of whatever it is: what calls us from a user's own file knows no types. */
export function storableText(said: unknown, lengthMax: number): string {
  return String(said).slice(0, lengthMax).replaceAll("\0", "\uFFFD").toWellFormed();
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
