/**
 * The events in a text that comes piece by piece, each exactly as it is written: one event, an array of them, or one after the
 * other, as in JSON lines. Events are kept word for word, so they are not parsed and written out again on their way.
 */
import { OperatorError } from "../../kernel/errors.ts";
import { EXIT } from "../common/exit-codes.ts";

export interface EventText {
  text: string;
  /** Where it begins, counted from 1. */
  line: number;
}

export interface EventSplitter {
  /** The events that this piece completes. */
  push(piece: string): EventText[];
  /** Call it at the end: throws if that is in the midst of an event. */
  end(): void;
}

/** More than any server takes; a brace that was forgotten would otherwise fill the memory with the rest of a file. */
const EVENT_LENGTH_MAX = 64 * 1_048_576;

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const LINE_FEED = 0x0a;
const COMMA = 0x2c;
const OPEN_BRACKET = 0x5b;
const CLOSE_BRACKET = 0x5d;
const OPEN_BRACE = 0x7b;
const CLOSE_BRACE = 0x7d;
/** Space, tab, ends of lines, and the mark that some editors put at the beginning. */
const BLANKS: ReadonlySet<number> = new Set([0x20, 0x09, LINE_FEED, 0x0d, 0xfeff]);

/** `name` is the file's, for complaints. */
export function createEventSplitter(name: string): EventSplitter {
  let line = 1;
  let begunAt = 1;
  /** What was read of the event under way, before this piece. */
  let begun = "";
  /** Braces and brackets that are open within the event; 0 between events. */
  let depth = 0;
  let isArray = false;
  let isString = false;
  let isEscaped = false;

  const refuse = (at: number, sentence: string) => new OperatorError(`${name}:${at}: ${sentence}`, EXIT.usage);

  function between(code: number, character: string): void {
    if (BLANKS.has(code)) return;
    if (code === OPEN_BRACKET && !isArray) isArray = true;
    else if (code === CLOSE_BRACKET && isArray) isArray = false;
    else if (code !== COMMA || !isArray) {
      throw refuse(line, `here an event should begin, with \`{\`, but there is \`${character}\`.`);
    }
  }

  function within(code: number): void {
    if (isString) {
      if (isEscaped) isEscaped = false;
      else if (code === BACKSLASH) isEscaped = true;
      else if (code === QUOTE) isString = false;
    } else if (code === QUOTE) isString = true;
    else if (code === OPEN_BRACE || code === OPEN_BRACKET) depth += 1;
    else if (code === CLOSE_BRACE || code === CLOSE_BRACKET) depth -= 1;
  }

  return {
    push(piece) {
      const events: EventText[] = [];
      let start = 0;
      for (let i = 0; i < piece.length; i += 1) {
        const code = piece.charCodeAt(i);
        if (depth > 0) {
          within(code);
          if (depth === 0) {
            events.push({ text: begun + piece.slice(start, i + 1), line: begunAt });
            begun = "";
          }
        } else if (code === OPEN_BRACE) {
          depth = 1;
          start = i;
          begunAt = line;
        } else between(code, piece[i] ?? "");
        if (code === LINE_FEED) line += 1;
      }
      if (depth > 0) begun += piece.slice(start);
      if (begun.length > EVENT_LENGTH_MAX) {
        throw refuse(begunAt, "the event that begins here has no end within 64 MiB. Is a brace missing?");
      }
      return events;
    },
    end() {
      if (depth > 0) throw refuse(begunAt, "the event that begins here has no end. Is a brace missing?");
      if (isArray) throw refuse(line, "the array has no end. Is the file complete?");
    },
  };
}
