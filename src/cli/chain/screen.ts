/**
 * Draws a frame over the last one without flicker: one write that moves the cursor up, overwrites each line and clears the rest
 * of it.
 */
import { stripVTControlCharacters } from "node:util";
import { displayWidth } from "../common/output.ts";

export interface Screen {
  /** `columns` is the present width of the terminal. */
  draw(lines: readonly string[], columns: number): void;
  /** Leaves the last frame on the screen; further output comes below it. */
  leave(): void;
}

const ESC = "\u001b[";
const HIDE_CURSOR = `${ESC}?25l`;
const SHOW_CURSOR = `${ESC}?25h`;
const CLEAR_TO_END_OF_LINE = `${ESC}K`;
const CLEAR_BELOW = `${ESC}J`;

export function createScreen(write: (text: string) => void): Screen {
  let drawn: readonly string[] = [];
  return {
    draw(lines, columns) {
      // If the window became narrower, the terminal has wrapped lines of the last frame.
      const rows = drawn.reduce((sum, line) => sum + rowsOf(line, columns), 0);
      const toTheTop = rows === 0 ? HIDE_CURSOR : `${ESC}${rows}A\r`;
      write(`${toTheTop}${lines.map((line) => `${line}${CLEAR_TO_END_OF_LINE}\n`).join("")}${CLEAR_BELOW}`);
      drawn = lines;
    },
    leave() {
      if (drawn.length > 0) write(SHOW_CURSOR);
      drawn = [];
    },
  };
}

function rowsOf(line: string, columns: number): number {
  return Math.max(1, Math.ceil(displayWidth(stripVTControlCharacters(line)) / columns));
}
