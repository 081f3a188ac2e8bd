/** Numbers of a database as JSON, where a number is a double. */

/** Any decimal with so many digits comes out of a double as it went in. */
const EXACT_DIGITS_MAX = 15;

/** The number, if a double holds it to its last digit; else its text. */
export function exactNumber(text: string): number | string {
  const [, whole = "", fraction = ""] = /^-?(\d+)(?:\.(\d+))?$/.exec(text) ?? [];
  if (whole === "") return text; // NaN and the infinities.
  const value = Number(text);
  if (/^0*$/.test(fraction)) return Number.isSafeInteger(value) ? value : text;
  const digits = (whole + fraction).replace(/^0+/, "").replace(/0+$/, "");
  return digits.length <= EXACT_DIGITS_MAX ? value : text;
}
