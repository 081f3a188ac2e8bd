/**
 * A proxy to Postgres that loses an answer: it lets the transaction with a given statement commit and cuts the connection
 * before the client gets the answer, so the client does not know whether it was committed.
 */
import { connect, createServer, type Socket } from "node:net";
import { Client } from "pg";
import { onTestFinished } from "vitest";
import type { TestDatabase } from "../database.ts";

export interface CuttingProxy {
  url: string;
  /** Cuts the next transaction that uses this statement; resolves when that has happened. */
  cut(statement: string): Promise<void>;
}

const COMMIT = Buffer.from("commit\0");

export async function startCuttingProxy({ connection }: TestDatabase): Promise<CuttingProxy> {
  const { host, port, user, database, password } = new Client(connection);
  let wanted: { statement: string; cut: () => void } | undefined;
  const open = new Set<Socket>();
  const proxy = createServer((client) => {
    const server = host.startsWith("/") ? connect(`${host}/.s.PGSQL.${port}`) : connect(port, host);
    let committing: (() => void) | undefined;
    let marked = false;
    for (const [socket, other] of [
      [client, server],
      [server, client],
    ] as const) {
      open.add(socket);
      socket.on("error", () => {});
      socket.on("close", () => other.destroy());
    }
    client.on("data", (chunk) => {
      if (wanted && chunk.includes(wanted.statement)) marked = true;
      if (wanted && marked && chunk.includes(COMMIT)) {
        committing = wanted.cut;
        wanted = undefined;
      }
      server.write(chunk);
    });
    server.on("data", (chunk) => {
      if (!committing) return client.write(chunk);
      client.destroy();
      committing();
    });
  });
  await new Promise<void>((resolve) => proxy.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => {
    for (const socket of open) socket.destroy();
    proxy.close();
  });

  const address = proxy.address() as { port: number };
  const credentials = password ? `${user}:${encodeURIComponent(password)}` : user;
  return {
    url: `postgres://${credentials}@127.0.0.1:${address.port}/${database}`,
    cut: (statement) =>
      new Promise((cut) => {
        wanted = { statement, cut };
      }),
  };
}
