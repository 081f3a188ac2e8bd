/** A simulated terminal that handles the control sequences of frames. */
import type { Window } from "./views.ts";

export interface TestTerminal extends Window {
  /** All lines, including those that have scrolled out, without the line of the cursor. */
  lines(): string[];
  isCursorHidden(): boolean;
  /** Wraps lines that are now too long, as terminals do. */
  resize(columns: number, rows: number): void;
}

export function testTerminal(columns: number, rows: number): TestTerminal {
  let lines: string[] = [""];
  let row = 0;
  let column = 0;
  let isHidden = false;
  const listeners = new Set<() => void>();

  function put(sign: string): void {
    if (column === terminal.columns) newLine();
    const line = (lines[row] ?? "").padEnd(column);
    lines[row] = line.slice(0, column) + sign + line.slice(column + 1);
    column += 1;
  }
  function newLine(): void {
    row += 1;
    column = 0;
    lines[row] ??= "";
  }
  function obey(sequence: string, count: number, command: string): void {
    if (command === "A") row = Math.max(0, lines.length - terminal.rows, row - count);
    else if (command === "K" || command === "J") lines[row] = (lines[row] ?? "").slice(0, column);
    else if (sequence === "\u001b[?25l" || sequence === "\u001b[?25h") isHidden = command === "l";
    else if (command !== "m") throw new Error(`the terminal does not know ${JSON.stringify(sequence)}`);
    if (command === "J") lines.length = row + 1;
  }

  const terminal: TestTerminal = {
    columns,
    rows,
    write(text) {
      // oxlint-disable-next-line no-control-regex -- it matches control characters
      for (const [piece, count, command] of text.matchAll(/\u001b\[\??(\d*)([A-Za-z])|[^]/gu)) {
        if (command !== undefined) obey(piece, Number(count), command);
        else if (piece === "\n") newLine();
        else if (piece === "\r") column = 0;
        else put(piece);
      }
    },
    lines: () => lines.slice(0, row),
    isCursorHidden: () => isHidden,
    on: (_, listener) => listeners.add(listener),
    off: (_, listener) => listeners.delete(listener),
    resize(width, height) {
      Object.assign(terminal, { columns: width, rows: height });
      lines = lines.flatMap((line) => line.match(new RegExp(`.{1,${width}}`, "gu")) ?? [""]);
      row = lines.length - 1;
      for (const listener of listeners) listener();
    },
  };
  return terminal;
}
