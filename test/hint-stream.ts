/** A client of the stream of hints. */
import { onTestFinished } from "vitest";
import { ADMIN_KEY } from "./millrace.ts";
import { until } from "./until.ts";

export interface Hint {
  kind: string;
  id: string;
  rev: string;
}

export interface HintStream {
  response: Response;
  /** The changes received so far. */
  hints: Hint[];
  /** The names of all events received so far. */
  events: string[];
  /** The `Last-Event-ID` of the next connection. */
  lastId(): string;
  /** Resolves to the first hint of an entity; among those after the first `from` hints. */
  hint(kind: string, id: string, from?: number): Promise<Hint>;
  /** Resolves when the server ends the stream; rejects if it breaks off. */
  ended: Promise<void>;
  disconnect(): void;
}

/** Opens a stream; by default with the admin key (null is none) and without a position. Resolves after its first event, if it has a gap. */
export async function openHintStream(
  url: string,
  { key = ADMIN_KEY, after, query = "" }: { key?: string | null; after?: string; query?: string } = {},
): Promise<HintStream> {
  const control = new AbortController();
  onTestFinished(() => control.abort());
  const response = await fetch(`${url}/api/v1/events${query}`, {
    headers: {
      ...(key === null ? {} : { authorization: `Bearer ${key}` }),
      ...(after === undefined ? {} : { "last-event-id": after }),
    },
    signal: control.signal,
  });
  const hints: Hint[] = [];
  const events: string[] = [];
  let lastId = after ?? "";
  const ended = (async () => {
    let text = "";
    for await (const piece of response.body?.pipeThrough(new TextDecoderStream()) ?? []) {
      text += piece;
      const parts = text.split("\n\n");
      text = parts.pop() ?? "";
      for (const part of parts) take(part);
    }
  })();
  ended.catch(() => {}); // Most tests disconnect and do not wait for the end.

  function take(part: string): void {
    const lines = part.split("\n");
    const field = (name: string) => lines.find((line) => line.startsWith(`${name}: `))?.slice(name.length + 2);
    lastId = field("id") ?? lastId;
    const event = field("event");
    if (event === undefined) return;
    events.push(event);
    if (event === "changes") hints.push(...(JSON.parse(field("data") ?? "") as { changes: Hint[] }).changes);
  }

  if (response.status === 200 && after === undefined && query === "") {
    await until(() => events.length > 0, "the first event");
  }
  return {
    response,
    hints,
    events,
    lastId: () => lastId,
    hint: (kind, id, from = 0) =>
      until(() => hints.slice(from).find((hint) => hint.kind === kind && hint.id === id), `a hint of ${kind} ${id}`),
    ended,
    disconnect: () => control.abort(),
  };
}
