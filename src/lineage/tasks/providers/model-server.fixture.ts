/** A service of models for tests, over real HTTP: answers like OpenAI's, unless the test says otherwise. */
import type { ServerResponse } from "node:http";
import { type Answering, type Received, startReceiver } from "../../../webhooks/receiver.fixture.ts";
import { hashEmbedding } from "./hash-embedder.ts";

export const DIMENSION = 16;
const EMBEDDINGS = "/v1/embeddings";
const CHAT = "/v1/chat/completions";

export interface ModelServer {
  endpoint: string;
  origin: string;
  /** The texts of each call of the embedding model, in the order of the calls. */
  embedded(): string[][];
  /** The texts of all calls of the model that summarises. */
  summarised(): string[];
  calls(): Received[];
  /** `nth` counts the calls from 1; what answers nothing by itself leaves the caller waiting. */
  onEmbeddings(answering: Answering): void;
  onChat(answering: Answering): void;
  stop(): Promise<void>;
}

export async function startModelServer(): Promise<ModelServer> {
  const receiver = await startReceiver();
  receiver.on(EMBEDDINGS, embeds());
  receiver.on(CHAT, (_, response, { json }) => chats(response, { summary: `About ${textOf(json)}`, tags: ["sales"] }));
  return {
    endpoint: receiver.url("/v1"),
    origin: new URL(receiver.url("/")).origin,
    embedded: () => receiver.received(EMBEDDINGS).map(({ json }) => json["input"] as string[]),
    summarised: () => receiver.received(CHAT).map(({ json }) => textOf(json)),
    calls: () => receiver.received(),
    onEmbeddings: (answering) => receiver.on(EMBEDDINGS, answering),
    onChat: (answering) => receiver.on(CHAT, answering),
    stop: () => receiver.stop(),
  };
}

/** Vectors of the dimension that is asked for, or of the model's own. */
export function embeds(own = DIMENSION): Answering {
  return (_, response, { json }) => {
    const dimension = (json["dimensions"] as number | undefined) ?? own;
    const data = (json["input"] as string[]).map((text, index) => ({
      index,
      embedding: hashEmbedding(text, dimension),
    }));
    return answer(response, { data: data.toReversed() }); // The order is in the index, not in the place.
  };
}

export function chats(response: ServerResponse, content: object | string): undefined {
  const text = typeof content === "string" ? content : JSON.stringify(content);
  return answer(response, { choices: [{ message: { role: "assistant", content: text } }] });
}

export function answer(
  response: ServerResponse,
  body: unknown,
  status = 200,
  headers: Record<string, string> = {},
): undefined {
  response.writeHead(status, { "content-type": "application/json", ...headers }).end(JSON.stringify(body));
  return undefined;
}

function textOf(json: Record<string, unknown>): string {
  return (json["messages"] as { content: string }[]).at(-1)?.content ?? "";
}
