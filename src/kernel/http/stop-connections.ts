/**
 * Closes the connections that would hold up a stop. Node closes those that are idle at that moment, once. It counts one
 * that a browser or client opened in advance as busy until the request time-out, and keeps one whose request ends later for
 * as long as it is kept alive: both for more than a minute.
 */
import type { IncomingMessage } from "node:http";
import type { Socket } from "node:net";
import type { FastifyInstance } from "fastify";

const SWEEP_MS = 100;

export function closeConnectionsOnStop(http: FastifyInstance): void {
  const unused = new Set<Socket>();
  let isStopping = false;
  http.server.on("connection", (socket: Socket) => {
    if (isStopping) return socket.destroy();
    unused.add(socket);
    socket.once("close", () => unused.delete(socket));
  });
  http.server.on("request", ({ socket }: IncomingMessage) => unused.delete(socket));
  http.addHook("preClose", async () => {
    isStopping = true;
    for (const socket of unused) if (socket.bytesRead === 0) socket.destroy();
    const sweep = setInterval(() => http.server.closeIdleConnections(), SWEEP_MS);
    http.server.once("close", () => clearInterval(sweep));
  });
}
