/** Reads a JSON column. Its text may be larger, or deeper, than a process can parse without stopping. */
import { parseWithin } from "../../kernel/json/complexity.ts";
import { messageOf } from "../../kernel/text/message-of.ts";
import { withoutTrailing } from "../../kernel/text/without-trailing.ts";
import { EngineRefusal } from "../engine.ts";

/**
 * A number that a double cannot hold to its last digit becomes text, as in other columns: `JSON.parse` would round it. In JSON a
 * double cannot be told from a decimal, so what counts is whether the double prints the same digits.
 */
export function jsonValue(text: string): unknown {
  try {
    return parseWithin(MAY_ROUND.test(text) ? text.replace(STRING_OR_NUMBER, quotedIfRounded) : text);
  } catch (error) {
    throw new EngineRefusal(`A JSON value of the result cannot be used. ${messageOf(error)}.`, { cause: error });
  }
}

/** A double holds any number of up to 15 digits, within its range of exponents. */
const MAY_ROUND = /[\d.]{16}|[eE][+-]?\d{3}/;
export const STRING_OR_NUMBER = /"[^"\\]*(?:\\.[^"\\]*)*"|-?\d[\d.eE+-]*/g;

function quotedIfRounded(token: string): string {
  if (token.startsWith('"') || !MAY_ROUND.test(token)) return token;
  return digitsOf(token) === digitsOf(String(Number(token))) ? token : `"${token}"`;
}

/** Equal for equal numbers: `1200`, `1.2e3` and `1200.0` are `12 e2`. */
function digitsOf(number: string): string {
  const [, sign, whole = "", fraction = "", exponent = "0"] =
    /^(-?)(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/.exec(number) ?? [];
  const digits = (whole + fraction).replace(/^0+/, "");
  const significant = withoutTrailing(digits, "0");
  if (significant === "") return whole === "" ? number : "0";
  return `${sign}${significant}e${Number(exponent) - fraction.length + digits.length - significant.length}`;
}
