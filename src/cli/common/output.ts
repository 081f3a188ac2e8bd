/** What commands print: results on standard output, remarks for a person on standard error. */
import { styleText } from "node:util";

export function print(text: string): void {
  process.stdout.write(`${text}\n`);
}

/** Told only to a person who watches; a script has the exit code. */
export function remark(text: string): void {
  if (process.stderr.isTTY) process.stderr.write(`${text}\n`);
}

export type Style = Extract<Parameters<typeof styleText>[0], string>;

/** Only on a terminal whose user did not refuse them (no-color.org). */
export function hasColours(): boolean {
  return process.stdout.isTTY && !process.env["NO_COLOR"];
}

export function paint(style: Style, text: string): string {
  return hasColours() ? styleText(style, text) : text;
}

/** Control characters could move the cursor or recolour the terminal, and marks of direction could reorder a line. */
// oxlint-disable-next-line no-control-regex -- they are what it is about
const UNPRINTABLE = /[\u0000-\u001f\u007f-\u009f\u2028\u2029\u202a-\u202e\u2066-\u2069]/g;

/** Text that came from elsewhere, harmless in a terminal. */
export function printable(text: string): string {
  return text.replaceAll(UNPRINTABLE, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

export type Cell = string | number | undefined;

/** Columns side by side under their names. A column that is empty in every row is left out. */
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

/** `padEnd` counts code units, which would push the columns behind a Chinese file name out of line. */
export function padEnd(text: string, width: number): string {
  return text + " ".repeat(Math.max(0, width - displayWidth(text)));
}

const graphemes = new Intl.Segmenter();
const WIDE =
  /^[\u1100-\u115f\u2e80-\u303e\u3041-\ua4cf\ua960-\ua97f\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6\u{1f300}-\u{1faff}\u{20000}-\u{3fffd}]/u;

/** The letters, lines and signs of our own output; measuring each for itself would slow down a long tree. */
const NARROW = /^[ -~\u2500-\u25ff…✓✗↻⊘]*$/;

/** Cells of a terminal: Chinese, Japanese and Korean letters and pictures take two, combining marks none of their own. */
export function displayWidth(text: string): number {
  if (NARROW.test(text)) return text.length;
  let width = 0;
  for (const { segment } of graphemes.segment(text)) width += WIDE.test(segment) ? 2 : 1;
  return width;
}

/** No wider than `width`; an ellipsis stands for what was cut off. */
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

/** A time of the server's, whatever zone it is told in, to the second: `2025-01-01T00:00:00Z`. */
export function toSeconds(time: string | null | undefined): string | undefined {
  return time ? new Date(time).toISOString().replace(/\.\d+/, "") : undefined;
}
