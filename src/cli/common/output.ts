/** The output of commands: results on standard output, notes on standard error. */
import { styleText } from "node:util";

export function print(text: string): void {
  process.stdout.write(`${text}\n`);
}

/** Printed only on a terminal; a script has the exit code. */
export function printNote(text: string): void {
  if (process.stderr.isTTY) process.stderr.write(`${text}\n`);
}

export type Style = Extract<Parameters<typeof styleText>[0], string>;

/** Only on a terminal, unless NO_COLOR is set (no-color.org). */
export function hasColours(): boolean {
  return process.stdout.isTTY && !process.env["NO_COLOR"];
}

export function paint(style: Style, text: string): string {
  return hasColours() ? styleText(style, text) : text;
}

/** Control characters can move the cursor or change colours, and bidirectional marks can reorder a line. */
// oxlint-disable-next-line no-control-regex -- it matches control characters
const UNPRINTABLE = /[\u0000-\u001f\u007f-\u009f\u2028\u2029\u202a-\u202e\u2066-\u2069]/g;

/** Makes text from outside harmless for a terminal. */
export function printable(text: string): string {
  return text.replaceAll(UNPRINTABLE, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

export type Cell = string | number | undefined;

/** A table with a header. Omits columns that are empty in every row. */
export function table(names: readonly string[], rows: readonly (readonly Cell[])[]): string {
  const columns = names
    .map((name, index) => ({ name, cells: rows.map((row) => printable(String(row[index] ?? ""))) }))
    .filter(({ cells }) => cells.some((cell) => cell !== ""))
    .map(({ name, cells }) => ({ name, cells, width: Math.max(...[name, ...cells].map(displayWidth)) }));
  const line = (cellOf: (column: (typeof columns)[number]) => string) =>
    columns
      .map((column) => padEnd(cellOf(column), column.width))
      .join("  ")
      .trimEnd();
  const header = paint(
    "bold",
    line(({ name }) => name),
  );
  return [header, ...rows.map((_, row) => line(({ cells }) => cells[row] ?? ""))].join("\n");
}

/** `String.padEnd` counts code units, which misaligns columns after a Chinese file name. */
export function padEnd(text: string, width: number): string {
  return text + " ".repeat(Math.max(0, width - displayWidth(text)));
}

const graphemes = new Intl.Segmenter();
const WIDE =
  /^[\u1100-\u115f\u2e80-\u303e\u3041-\ua4cf\ua960-\ua97f\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6\u{1f300}-\u{1faff}\u{20000}-\u{3fffd}]/u;

/** The characters of our own output, all one cell wide; measuring each grapheme would slow down a long tree. */
const NARROW = /^[ -~\u2500-\u25ff…✓✗↻⊘]*$/;

/** The number of terminal cells: Chinese, Japanese and Korean characters and emoji take two, combining marks none. */
export function displayWidth(text: string): number {
  if (NARROW.test(text)) return text.length;
  let width = 0;
  for (const { segment } of graphemes.segment(text)) width += WIDE.test(segment) ? 2 : 1;
  return width;
}

/** Shortens text to `width` cells, with an ellipsis. */
export function clip(text: string, width: number): string {
  if (displayWidth(text) <= width) return text;
  let clipped = "";
  let left = width - 1;
  for (const { segment } of graphemes.segment(text)) {
    left -= displayWidth(segment);
    if (left < 0) break;
    clipped += segment;
  }
  return width < 1 ? "" : `${clipped}…`;
}

/** A time of the server, in UTC, to the second: `2025-01-01T00:00:00Z`. */
export function toSeconds(time: string | null | undefined): string | undefined {
  return time ? new Date(time).toISOString().replace(/\.\d+/, "") : undefined;
}
