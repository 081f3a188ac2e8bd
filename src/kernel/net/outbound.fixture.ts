/** Servers on loopback and outbound clients for the tests of this folder, closed after each test. */
import { once } from "node:events";
import { createServer as createHttpServer, type RequestListener } from "node:http";
import { createServer as createHttpsServer } from "node:https";
import { type AddressInfo, createServer as createTcpServer, type Server, type Socket } from "node:net";
import { afterEach } from "vitest";
import { SELF_SIGNED } from "../../../test/self-signed.ts";
import { createOutbound, type Outbound, type OutboundFailed, type OutboundOptions } from "./outbound.ts";

const cleanUps: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0).toReversed()) await cleanUp();
});

export function outboundThat(options: Partial<OutboundOptions>): Outbound {
  const outbound = createOutbound({ allowPrivate: true, setting: "ALLOW_PRIVATE", ...options });
  cleanUps.push(() => outbound.close());
  return outbound;
}

/** All return `host:port`. */
export async function serve(listener: RequestListener): Promise<string> {
  return listen(createHttpServer(listener));
}

export async function serveTls(listener: RequestListener): Promise<string> {
  return listen(createHttpsServer(SELF_SIGNED, listener));
}

/** Without HTTP: for what no server of Node would send. */
export async function serveTcp(onConnection: (socket: Socket) => void): Promise<string> {
  return listen(createTcpServer((socket) => onConnection(socket.on("error", () => {}))));
}

/** Answers every request with exactly these bytes, and then does something with the connection. */
export async function answerWith(
  head: string,
  body: string | Buffer,
  then: (socket: Socket) => void = () => {},
): Promise<string> {
  return serveTcp((socket) => {
    socket.on("data", () => {
      socket.write(Buffer.concat([Buffer.from(`${head}\r\n\r\n`), Buffer.from(body)]), () => then(socket));
    });
  });
}

export async function listen(server: Server): Promise<string> {
  const sockets = new Set<Socket>();
  server.on("connection", (socket: Socket) => sockets.add(socket));
  await once(server.listen(0, "127.0.0.1"), "listening");
  cleanUps.push(async () => {
    for (const socket of sockets) socket.destroy();
    await new Promise((resolve) => server.close(resolve));
  });
  return `127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** A port where nothing listens. */
export async function unusedHost(): Promise<string> {
  const server = createTcpServer();
  await once(server.listen(0, "127.0.0.1"), "listening");
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return `127.0.0.1:${port}`;
}

const never = new AbortController().signal;
export const UNTIMED = { method: "GET", headers: {}, bodyLimitBytes: 1_000, signal: never } as const;
export const REQUEST = { ...UNTIMED, timeoutMs: 10_000 } as const;

export async function failureOf(work: Promise<unknown>): Promise<OutboundFailed> {
  return work.then(
    (value) => {
      throw new Error(`It did not fail: ${JSON.stringify(value)}`);
    },
    (error: OutboundFailed) => error,
  );
}
