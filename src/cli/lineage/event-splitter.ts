/**
 * Splits a text that arrives in chunks into events: one event, an array of them, or JSON lines. The text of each event is kept
 * unchanged, so it is not parsed and serialised again.
 */
import { OperatorError } from "../../kernel/errors.ts";
import { EXIT } from "../common/exit-codes.ts";

export interface EventText {
  text: string;
  /** Its first line, counted from 1. */
  line: number;
}

export interface EventSplitter {
  /** The events that this chunk completes. */
  push(chunk: string): EventText[];
  /** Call it at the end of the text: throws if an event is incomplete. */
  end(): void;
}

/** More than any server accepts. Without a limit, a missing brace would load the rest of the file into memory. */
const EVENT_LENGTH_MAX = 64 * 1_048_576;

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const LINE_FEED = 0x0a;
const COMMA = 0x2c;
const OPEN_BRACKET = 0x5b;
const CLOSE_BRACKET = 0x5d;
const OPEN_BRACE = 0x7b;
const CLOSE_BRACE = 0x7d;
/** Space, tab, line ends, and the byte order mark. */
const BLANKS: ReadonlySet<number> = new Set([0x20, 0x09, LINE_FEED, 0x0d, 0xfeff]);

/** `name` is the file name for errors. */
export function createEventSplitter(name: string): EventSplitter {
  let line = 1;
  let eventLine = 1;
  /** The beginning of an incomplete event, from earlier chunks. */
  let started = "";
  /** The number of open braces and brackets; 0 between events. */
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
      throw refuse(line, `an event must begin here with \`{\`, not \`${character}\`.`);
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
    push(chunk) {
      const events: EventText[] = [];
      let start = 0;
      for (let i = 0; i < chunk.length; i += 1) {
        const code = chunk.charCodeAt(i);
        if (depth > 0) {
          within(code);
          if (depth === 0) {
            events.push({ text: started + chunk.slice(start, i + 1), line: eventLine });
            started = "";
          }
        } else if (code === OPEN_BRACE) {
          depth = 1;
          start = i;
          eventLine = line;
        } else between(code, chunk[i] ?? "");
        if (code === LINE_FEED) line += 1;
      }
      if (depth > 0) started += chunk.slice(start);
      if (started.length > EVENT_LENGTH_MAX) {
        throw refuse(eventLine, "the event that begins here has no end within 64 MiB. Is a brace missing?");
      }
      return events;
    },
    end() {
      if (depth > 0) throw refuse(eventLine, "the event that begins here has no end. Is a brace missing?");
      if (isArray) throw refuse(line, "the array has no end. Is the file complete?");
    },
  };
}
