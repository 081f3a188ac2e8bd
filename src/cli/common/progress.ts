/** Shows the progress of long work on standard error: one line that is redrawn on a terminal, a new line every 5 s otherwise. */
import { clip, printable } from "./output.ts";

export interface Progress {
  update(text: string): void;
  /** Clears the line. */
  end(): void;
}

const TERMINAL_GAP_MS = 100;
const LINES_GAP_MS = 5_000;
const CLEAR_LINE = "\r\u001b[K";

/** Standard error, or a substitute in tests. */
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
  if (isQuiet) return { update: () => {}, end: () => {} };
  const { isTTY = false } = terminal;
  let last = now();
  let isDrawn = false;
  return {
    update(text) {
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
