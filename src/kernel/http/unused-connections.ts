/**
 * Closes connections without a request when the server stops. Browsers and HTTP clients open connections in advance; Node
 * counts them as busy until the request time-out, so a stop would wait for them for a minute.
 */
import type { IncomingMessage } from "node:http";
import type { Socket } from "node:net";
import type { FastifyInstance } from "fastify";

export function closeUnusedOnStop(http: FastifyInstance): void {
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
  });
}
