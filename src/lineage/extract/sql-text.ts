/**
 * The identity of a statement: a hash without literals, comments and white space, so that the daily run of a statement with
 * another date is the same statement.
 */
import { hash } from "node:crypto";

/**
 * In the order in which they are tried: comments; text in single quotes, a quote within it doubled or escaped; quoted names,
 * which are kept; capital letters; numbers, but not the digit in `t1`. A literal that nothing closes goes to the end, whatever
 * it ends with: else each quote in it would be tried up to the end in vain. Words and blanks that stay as they are do not
 * match, since each match costs a call: that took most of the time of what runs for every event.
 */
const PIECE =
  /--[^\n]*|\/\*[\s\S]*?(?:\*\/|$)|'(?:[^'\\]|\\[\s\S]?|'')*(?:'|$)|"(?:[^"]|"")*"|`[^`]*`|[\p{Lu}\p{Lt}]+|(?<![\p{L}\p{N}_$#@])\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/gu;
const LIST_OF_LITERALS = /\(\s*\?(?:\s*,\s*\?)*\s*\)/g;
const ROWS_OF_LITERALS = /\(\?\)(?:\s*,\s*\(\?\))+/g;
const WHITE_SPACE = /\s{2,}|[^\S ]/g;
const HASH_HEX = 32;

/** Comments gone, literals as `?`, white space as one blank, lists and rows of literals (`in (1, 2, 3)`) as one, in lower case. */
export function normalisedSql(sql: string): string {
  const normalised = sql
    .replace(PIECE, normalisedPiece)
    .replace(LIST_OF_LITERALS, "(?)")
    .replace(ROWS_OF_LITERALS, "(?)")
    .replace(WHITE_SPACE, " ");
  let end = normalised.length;
  while (end > 0 && " ;".includes(normalised.charAt(end - 1))) end -= 1;
  return normalised.slice(0, end).trimStart();
}

function normalisedPiece(piece: string): string {
  switch (piece.charAt(0)) {
    case "-":
    case "/":
      return " ";
    case '"':
    case "`":
      return piece;
    case "'":
      return "?";
    default:
      return /^\d/.test(piece) ? "?" : piece.toLowerCase();
  }
}

export function sqlHash(sql: string): string {
  return hash("sha256", normalisedSql(sql), "hex").slice(0, HASH_HEX);
}
