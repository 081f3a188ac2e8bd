/** A small HTTP server on this machine, for the shop and the subscribers of the scenario. */
import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";

export interface Incoming {
  url: URL;
  headers: IncomingHttpHeaders;
  body: string;
}

export interface Outgoing {
  status: number;
  headers?: Readonly<Record<string, string>>;
  body?: unknown;
}

export interface LocalServer {
  url: string;
  close(): Promise<void>;
}

export async function startLocalServer(answer: (request: Incoming) => Outgoing): Promise<LocalServer> {
  async function handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    try {
      const url = new URL(request.url ?? "/", "http://localhost");
      const { status, headers = {}, body } = answer({ url, headers: request.headers, body: await text(request) });
      response.writeHead(status, { "content-type": "application/json", ...headers });
      response.end(body === undefined ? "" : JSON.stringify(body));
    } catch {
      response.destroy(); // The caller disconnected, or the request cannot be parsed.
    }
  }

  const server = createServer((request, response) => void handle(request, response));
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject).listen(0, "127.0.0.1", resolve);
  });
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    async close() {
      const closed = new Promise((resolve) => server.close(resolve));
      server.closeAllConnections();
      await closed;
    },
  };
}
