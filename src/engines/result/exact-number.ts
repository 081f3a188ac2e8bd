/** Converts numbers of a database to JSON, whose numbers are doubles. */
import { withoutTrailing } from "../../kernel/text/without-trailing.ts";

/** A double preserves any decimal with up to this many digits. */
const EXACT_DIGITS_MAX = 15;

/** The number if a double holds it exactly, else its text. */
export function exactNumber(text: string): number | string {
  const [, whole = "", fraction = ""] = /^-?(\d+)(?:\.(\d+))?$/.exec(text) ?? [];
  if (whole === "") return text; // NaN and the infinities.
  const value = Number(text);
  if (/^0*$/.test(fraction)) return Number.isSafeInteger(value) ? value : text;
  const digits = withoutTrailing((whole + fraction).replace(/^0+/, ""), "0");
  return digits.length <= EXACT_DIGITS_MAX ? value : text;
}
