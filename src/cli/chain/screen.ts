/**
 * Draws a frame over the last one, in place and without flicker: one write that goes up, overwrites each line and clears
 * what is left of it. Nothing is cleared before it is written anew.
 */
import { stripVTControlCharacters } from "node:util";
import { displayWidth } from "../common/output.ts";

export interface Screen {
  /** `columns`: how wide the terminal is at the moment. */
  draw(lines: readonly string[], columns: number): void;
  /** The last frame stays; what is written next comes below it. */
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
      // In a window that was made narrower since, the lines of the last frame have been wrapped.
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
