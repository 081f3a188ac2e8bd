/** The output of the demo: lines, and below them a few that are redrawn where there is a terminal. */
import { createScreen } from "../cli/chain/screen.ts";

export interface DemoOutput {
  print(text: string): void;
  /** Redraws the lines at the bottom; undefined where there is no terminal. No lines: removes them. */
  draw: ((lines: readonly string[]) => void) | undefined;
  /** The width of the terminal; infinite where there is none. */
  columns(): number;
}

/** Standard output, or a substitute in tests. */
export interface Terminal {
  isTTY?: boolean;
  columns?: number;
  write(text: string): unknown;
}

/** The width of a terminal that does not report one. */
const COLUMNS = 80;

export function createOutput(terminal: Terminal, env: NodeJS.ProcessEnv = process.env): DemoOutput {
  const isDrawable = terminal.isTTY === true && env["TERM"] !== "dumb";
  const screen = createScreen((text) => void terminal.write(text));
  const columns = () => (terminal.isTTY === true ? terminal.columns || COLUMNS : Number.POSITIVE_INFINITY);
  let drawn: readonly string[] = [];

  function draw(lines: readonly string[]): void {
    if (lines.length > 0 || drawn.length > 0) screen.draw(lines, columns());
    if (lines.length === 0) terminal.write(SHOW_CURSOR);
    drawn = lines;
  }
  return {
    columns,
    draw: isDrawable ? draw : undefined,
    print(text) {
      const lines = drawn;
      if (lines.length > 0) draw([]);
      terminal.write(`${text}\n`);
      if (lines.length > 0) draw(lines);
    },
  };
}

const SHOW_CURSOR = "\u001b[?25h";
