/** A TCP proxy to the test's Postgres that a test can cut, and whose connections it can freeze. */
import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import pg from "pg";
import { onTestFinished } from "vitest";
import type { TestDatabase } from "./database.ts";

export interface PostgresProxy {
  url: string;
  /** Present connections stay open but transfer nothing. New ones work. */
  freeze(): void;
  /** The next connection is accepted but transfers nothing. */
  freezeNext(): void;
  /** All connections break, and new ones are refused. */
  cut(): Promise<void>;
  /** Accepts connections again after `cut`. */
  restore(): Promise<void>;
}

export async function startPostgresProxy({ connection }: TestDatabase): Promise<PostgresProxy> {
  const { host, port, user, database, password } = new pg.Client(connection);
  const sockets = new Set<Socket>();
  let nextIsFrozen = false;
  const server = createServer((near) => {
    if (nextIsFrozen) {
      nextIsFrozen = false;
      sockets.add(near.on("error", () => {}));
      return;
    }
    const far = host.startsWith("/") ? connect(`${host}/.s.PGSQL.${port}`) : connect(port, host);
    for (const [socket, other] of [
      [near, far],
      [far, near],
    ] as const) {
      sockets.add(socket);
      socket.on("error", () => {}).on("data", (chunk) => other.write(chunk));
      socket.on("close", () => {
        sockets.delete(socket);
        other.destroy();
      });
    }
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port: nearPort } = server.address() as AddressInfo;
  const cut = async () => {
    for (const socket of sockets) socket.destroy();
    if (server.listening) await new Promise((resolve) => server.close(resolve));
  };
  onTestFinished(cut);
  const credentials = password ? `${user}:${encodeURIComponent(password)}` : user;
  return {
    url: `postgres://${credentials}@127.0.0.1:${nearPort}/${database}`,
    cut,
    freezeNext() {
      nextIsFrozen = true;
    },
    freeze() {
      for (const socket of sockets) socket.removeAllListeners("data").pause();
    },
    async restore() {
      server.listen(nearPort, "127.0.0.1");
      await once(server, "listening");
    },
  };
}
