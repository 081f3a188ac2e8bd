/** What a program prints, taken as it comes: line by line for the log, and a bounded part of it for the node's result. */

/** All that is known once the program has ended. */
export interface Output {
  /** Everything, unless it was longer than an artifact may be. */
  text: string | undefined;
  /** The last line that is not blank, under the same condition. */
  lastLine: string | undefined;
  /** The last few lines, for an error message. */
  tail: string;
}

const ARTIFACT_LENGTH_MAX = 1_048_576;
const LOG_LINE_LENGTH_MAX = 2_000;
const TAIL_LINES = 10;

export function outputReader(onLine: (line: string) => void): { push(chunk: string): void; end(): Output } {
  const text = boundedText();
  let line = boundedText();
  let lastLine: string | undefined = "";
  const tail: string[] = [];

  function endLine(): void {
    const entry = forLog(line);
    onLine(entry);
    tail.push(entry);
    if (tail.length > TAIL_LINES) tail.shift();
    if (line.start().trim() !== "") lastLine = line.whole();
    line = boundedText();
  }

  return {
    push(chunk) {
      text.add(chunk);
      const [first = "", ...others] = chunk.split("\n");
      line.add(first);
      for (const piece of others) {
        endLine();
        line.add(piece);
      }
    },
    end() {
      if (line.length() > 0) endLine();
      return { text: text.whole(), lastLine, tail: tail.join("\n") };
    },
  };
}

/** Text of any length, of which only the start is kept once it is too long. */
function boundedText() {
  let start = "";
  let length = 0;
  return {
    add(piece: string): void {
      start += piece.slice(0, ARTIFACT_LENGTH_MAX - start.length);
      length += piece.length;
    },
    length: () => length,
    start: () => start,
    whole: () => (length > start.length ? undefined : start),
  };
}

function forLog(line: ReturnType<typeof boundedText>): string {
  const shown = line.start().slice(0, LOG_LINE_LENGTH_MAX).replace(/\r$/, "");
  return line.length() > LOG_LINE_LENGTH_MAX ? `${shown}... (cut, ${line.length()} characters)` : shown;
}
