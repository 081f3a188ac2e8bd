/**
 * Patterns of parameters. JavaScript's regular expressions backtrack: some take for ever with values that do not match. So those
 * with a repetition inside a repetition are refused, and those with more than two long repetitions have a limit of time.
 */
import { compileExpression, ExpressionError } from "../../kernel/expressions/cel.ts";
import { messageOf } from "../../kernel/text/message-of.ts";

/** Expressions have a limit on the time that a pattern takes. */
const MATCHES = compileExpression("value.matches(pattern)", ["value", "pattern"]);
/** With n characters, a pattern takes n steps for each of its long repetitions, multiplied: 16 million for two. */
const LONG_REPETITIONS_MAX = 2;
const VALUE_LENGTH_MAX = 4_096;
/** A repetition of at most this many is not long. */
const SHORT_MAX = 64;

/** What is wrong with a pattern, as a sentence. */
export function wrongPattern(pattern: string): string | undefined {
  try {
    RegExp(pattern); // By itself too: `a)|(b` is one only inside the group that makes it match the whole value.
    RegExp(whole(pattern));
  } catch (error) {
    // V8 repeats the pattern before the reason.
    const reason = messageOf(error).split("/: ").at(-1)?.toLowerCase() ?? "";
    return `\`${pattern}\` is not a regular expression: ${reason}.`;
  }
  return isNested(bare(pattern))
    ? "A repeated group contains a repetition, so some values would take for ever."
    : undefined;
}

/** Whether the pattern matches the whole of a text; undefined if that takes too long. */
export function compilePattern(pattern: string): (text: string) => boolean | undefined {
  const expression = new RegExp(whole(pattern));
  const isFast = longRepetitions(bare(pattern)) <= LONG_REPETITIONS_MAX;
  return (text) => {
    if (isFast && text.length <= VALUE_LENGTH_MAX) return expression.test(text);
    const values = { value: text, pattern: whole(pattern) };
    // The limit is one of time, so a busy machine may exceed it too; hardly ever twice.
    return timed(values) ?? timed(values);
  };
}

function timed(values: { value: string; pattern: string }): boolean | undefined {
  try {
    return MATCHES.evaluate(values) === true;
  } catch (error) {
    if (error instanceof ExpressionError) return undefined;
    throw error;
  }
}

function whole(pattern: string): string {
  return `^(?:${pattern})$`;
}

/** The pattern without what is escaped or in a class, which may look like a repetition. */
function bare(pattern: string): string {
  return pattern.replaceAll(/\\.|\[(?:\\.|[^\]\\])*\]/g, "x");
}

function longRepetitions(pattern: string): number {
  return [...pattern.matchAll(/[*+]|\{(\d+)(,?)(\d*)\}/g)].filter(([sign, from, comma, to]) => {
    if (sign === "*" || sign === "+") return true;
    return Number(to || (comma === "" ? from : Number.POSITIVE_INFINITY)) > SHORT_MAX;
  }).length;
}

/** `(a+)+` and its kind. */
function isNested(pattern: string): boolean {
  const groups: boolean[] = [];
  for (let index = 0; index < pattern.length; index += 1) {
    const character = pattern[index]!;
    if (character === "(") groups.push(false);
    if (/[*+{]/.test(character) && groups.length > 0) groups[groups.length - 1] = true;
    if (character !== ")") continue;
    const repeats = groups.pop() ?? false;
    if (repeats && /[*+{]/.test(pattern[index + 1] ?? "")) return true;
    if (repeats && groups.length > 0) groups[groups.length - 1] = true;
  }
  return false;
}
