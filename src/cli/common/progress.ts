/** How far long work is, on standard error: one line that changes on a terminal, a new line now and then otherwise. */
import { clip, printable } from "./output.ts";

export interface Progress {
  tell(text: string): void;
  /** Takes the line away, so that what follows stands in its place. */
  end(): void;
}

const TERMINAL_GAP_MS = 100;
const LINES_GAP_MS = 5_000;
const CLEAR_LINE = "\r\u001b[K";

/** Standard error, or what a test puts in its place. */
interface Terminal {
  isTTY?: boolean;
  columns?: number;
  write(text: string): unknown;
}

export function createProgress({
  isQuiet,
  terminal = process.stderr,
  now = () => performance.now(),
}: {
  isQuiet: boolean;
  terminal?: Terminal;
  now?: () => number;
}): Progress {
  if (isQuiet) return { tell: () => {}, end: () => {} };
  const { isTTY = false } = terminal;
  let last = now();
  let isDrawn = false;
  return {
    tell(text) {
      if (now() - last < (isTTY ? TERMINAL_GAP_MS : LINES_GAP_MS)) return;
      last = now();
      isDrawn = isTTY;
      terminal.write(isTTY ? CLEAR_LINE + clip(printable(text), (terminal.columns ?? 80) - 1) : `${printable(text)}\n`);
    },
    end() {
      if (isDrawn) terminal.write(CLEAR_LINE);
      isDrawn = false;
    },
  };
}
