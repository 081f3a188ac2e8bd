/** Values of KPIs as exact decimals: their text, and a JSON number beside it. Formulas compute in doubles. */
import { withoutTrailing } from "../../kernel/text/without-trailing.ts";

/** Before and after the point. Every double fits: the smallest has 324 digits after it, and up to 17 significant ones. */
export const DIGITS_MAX = 400;
/** Postgres writes up to 16,383 digits after the point; most may be zeros. */
export const TEXT_LENGTH_MAX = 20_000;
const EXPONENT_LENGTH_MAX = 6;

const DECIMAL = /^([+-]?)(\d*)(?:\.(\d*))?(?:[eE]([+-]?\d+))?$/;

/**
 * The number without an exponent, a plus or superfluous zeros: equal numbers have equal texts. Undefined if it is no finite
 * decimal, or has more digits than a value may have.
 */
export function decimalOf(value: number | string): string | undefined {
  const text = String(value);
  if (text.length > TEXT_LENGTH_MAX) return undefined;
  const [, sign = "", whole = "", fraction = "", exponent = "0"] = DECIMAL.exec(text.trim()) ?? [];
  if (whole + fraction === "" || exponent.length > EXPONENT_LENGTH_MAX) return undefined;
  const digits = (whole + fraction).replace(/^0+/, "");
  if (digits === "") return "0";
  const trimmed = withoutTrailing(digits, "0");
  /** How many of the trimmed digits are before the point; negative for 0.00... */
  const point = digits.length - fraction.length + Number(exponent);
  if (point > DIGITS_MAX || trimmed.length - point > DIGITS_MAX) return undefined;
  const minus = sign === "-" ? "-" : "";
  if (point <= 0) return `${minus}0.${"0".repeat(-point)}${trimmed}`;
  if (point >= trimmed.length) return minus + trimmed.padEnd(point, "0");
  return `${minus}${trimmed.slice(0, point)}.${trimmed.slice(point)}`;
}

/**
 * The nearest double. Null if that would mislead: beyond 2^53, where it may be another integer, only an exact one will do, and
 * what is not 0 is not rounded to 0.
 */
export function numberOf(decimal: string): number | null {
  const nearest = Number(decimal);
  if (nearest !== 0 && Math.abs(nearest) <= Number.MAX_SAFE_INTEGER) return nearest;
  return decimalOf(nearest) === decimal ? nearest : null;
}
