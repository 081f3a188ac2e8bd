/** Parses the text format of server-sent events of the HTML standard, from chunks of text that may end anywhere. */
import { OperatorError } from "../../kernel/errors.ts";

export interface ServerSentEvent {
  /** `message` if the server sent none. */
  event: string;
  data: string;
}

export interface EventReader {
  /** The events that this chunk completes. */
  push(text: string): ServerSentEvent[];
  /** The id of the last event, to send when reconnecting. Empty if there was none. */
  lastId(): string;
  /** The delay before reconnecting that the server asked for, if any. */
  retryMs(): number | undefined;
}

/** Twice the largest run: 10,000 nodes, each with some kilobytes of artifact and error. */
const EVENT_LENGTH_MAX = 128 * 1024 * 1024;

export function createEventReader(): EventReader {
  let line = ""; // The beginning of an incomplete line.
  let endedInCr = false; // A line feed at the start of the next chunk belongs to this line end.
  let started = false;
  let event = "";
  let data: string[] = [];
  let length = 0;
  let id = "";
  let lastId = "";
  let retryMs: number | undefined;

  function takeLine(text: string, events: ServerSentEvent[]): void {
    if (text === "") {
      lastId = id;
      if (data.length > 0) events.push({ event: event || "message", data: data.join("\n") });
      event = "";
      data = [];
      length = 0;
      return;
    }
    const colon = text.indexOf(":");
    const field = colon === -1 ? text : text.slice(0, colon);
    const value = colon === -1 ? "" : text.slice(text[colon + 1] === " " ? colon + 2 : colon + 1);
    if (field === "data") data.push(value);
    else if (field === "event") event = value;
    else if (field === "id" && !value.includes("\0")) id = value;
    else if (field === "retry" && /^\d+$/.test(value)) retryMs = Number(value);
  }

  return {
    push(text) {
      const events: ServerSentEvent[] = [];
      if (text === "") return events;
      // Only the new chunk is searched: an event may come in thousands of chunks.
      let from = (endedInCr && text.startsWith("\n")) || (!started && text.startsWith("\ufeff")) ? 1 : 0;
      started = true;
      const lineEnd = /\r\n|\n|\r/g;
      lineEnd.lastIndex = from;
      length += text.length;
      for (let end = lineEnd.exec(text); end !== null; end = lineEnd.exec(text)) {
        takeLine(line + text.slice(from, end.index), events);
        line = "";
        from = lineEnd.lastIndex;
      }
      line += text.slice(from);
      endedInCr = text.endsWith("\r");
      if (length > EVENT_LENGTH_MAX) throw new OperatorError("The server sends an event that is too long.");
      return events;
    },
    lastId: () => lastId,
    retryMs: () => retryMs,
  };
}
