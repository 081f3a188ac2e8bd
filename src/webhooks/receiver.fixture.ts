/** A subscriber's HTTP server for tests: records requests, and answers each path as the test sets it up. */
import { createServer, type IncomingHttpHeaders, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

export interface Received {
  path: string;
  headers: IncomingHttpHeaders;
  body: string;
  json: Record<string, unknown>;
  atMs: number;
}

/** `nth` counts the requests to the path from 1. Returns the status, or undefined if it answers by itself or not at all. */
export type Answering = (nth: number, response: ServerResponse, received: Received) => number | undefined;

export interface Receiver {
  url(path: string): string;
  received(path?: string): Received[];
  on(path: string, answering: Answering): void;
  stop(): Promise<void>;
}

export const hang: Answering = () => undefined;
export const reset: Answering = (_, response) => void response.socket?.resetAndDestroy();

export async function startReceiver(): Promise<Receiver> {
  const all: Received[] = [];
  const answers = new Map<string, Answering>();
  const counts = new Map<string, number>();
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => {
      const body = Buffer.concat(chunks).toString();
      const path = request.url ?? "";
      const [route = ""] = path.split("?");
      const received = {
        path,
        headers: request.headers,
        body,
        json: JSON.parse(body) as Record<string, unknown>,
        atMs: performance.now(),
      };
      all.push(received);
      const nth = (counts.get(route) ?? 0) + 1;
      counts.set(route, nth);
      const status = (answers.get(route) ?? (() => 200))(nth, response, received);
      if (status !== undefined) response.writeHead(status).end();
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: (path) => `http://127.0.0.1:${port}${path}`,
    received: (path) => all.filter((one) => path === undefined || one.path.split("?")[0] === path),
    on: (path, answering) => void answers.set(path, answering),
    stop() {
      server.closeAllConnections();
      return new Promise((resolve) => server.close(() => resolve()));
    },
  };
}
