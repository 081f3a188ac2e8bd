/** Reads the output of a program: line by line for the log, and up to a limit for the node's result. */

/** The output of a program that has ended. */
export interface Output {
  /** The whole output; undefined if it is too long for an artifact. */
  text: string | undefined;
  /** The last line that is not blank; undefined if it is too long for an artifact. */
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

/** Text that keeps only its start when it is too long. */
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
