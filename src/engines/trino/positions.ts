/**
 * Finds the place of an error in the SQL that a user gave. Trino counts in the statement that it was sent, where values are longer
 * or shorter than the names of their parameters. It counts characters as code points, and only `\n` ends a line.
 */

/** A part of the statement, and where it begins in the SQL. A value stands for the whole name of its parameter. */
export interface Piece {
  text: string;
  from: number;
  isValue: boolean;
}

/** Replaces the first `line 1:8:` of a message; a later one is a place in a stored view. */
export function inSource(message: string, pieces: readonly Piece[], sql: string): string {
  return message.replace(/\bline (\d+):(\d+):/, (place, line: string, column: string) => {
    const text = pieces.map((piece) => piece.text).join("");
    const at = offsetOf(text, Number(line), Number(column));
    return at === undefined ? place : `line ${placeOf(sql, sourceOf(at, pieces))}:`;
  });
}

function offsetOf(text: string, line: number, column: number): number | undefined {
  let start = 0;
  for (let passed = 1; passed < line; passed += 1) {
    start = text.indexOf("\n", start) + 1;
    if (start === 0) return undefined;
  }
  let at = start;
  for (let passed = 1; passed < column && at < text.length; passed += 1) at += isPair(text, at) ? 2 : 1;
  return at;
}

function sourceOf(at: number, pieces: readonly Piece[]): number {
  let start = 0;
  let source = 0;
  for (const { text, from, isValue } of pieces) {
    source = from + (isValue ? 0 : Math.min(at - start, text.length));
    if (at < start + text.length) break;
    start += text.length;
  }
  return source;
}

function placeOf(sql: string, offset: number): string {
  const lines = sql.slice(0, offset).split("\n");
  return `${lines.length}:${Array.from(lines.at(-1) ?? "").length + 1}`;
}

function isPair(text: string, at: number): boolean {
  return (text.codePointAt(at) ?? 0) > 0xffff;
}
