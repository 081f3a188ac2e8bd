/**
 * The one connection on which a process sends its heartbeats (session.ts) and sends and receives hints: wake-ups (wake.ts)
 * and those of changes (hints/hints.ts). Nothing else uses it, so a pool whose connections are all busy delays none of them.
 * Heartbeats every few seconds also detect a connection that no longer answers, and it is replaced.
 *
 *     connected ──a statement times out, or the connection ends──▶ lost ──connect, LISTEN──▶ connected
 */
import { Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import pg from "pg";
import { type Db, isUnavailable } from "../data/db.ts";
import { type Statement, statement } from "../data/statement.ts";
import { messageOf } from "../text/message-of.ts";
import type { ServiceLog } from "./service.ts";

const WAKE_CHANNEL = "millrace_wake";
export const HINTS_CHANNEL = "millrace_hints";
/**
 * For connecting and for each statement. A connection that stops answering right after a heartbeat fails the next one, which is
 * sent 5 s later and times out 10 s later; a new connection sends it again within 11 s. The session expires after 15 s.
 */
const TIMEOUT_MS = 5_000;
/** The least time between two attempts to connect; the first one after a loss starts at once. */
const CONNECT_GAP_MS = 1_000;

export interface Pulse {
  /** Fails at once while there is no connection. */
  rows<Row>(statement: Statement<Row>, values?: readonly unknown[]): Promise<Row[]>;
  /** Sends wake-ups to all processes, this one included. */
  notify(payloads: readonly string[]): Promise<void>;
  /** Calls `listener` with each notification of a channel: wake-ups, unless another is named. */
  onNotification(listener: (payload: string) => void, channel?: string): void;
  isConnected(): boolean;
  /** Calls `listener` when a lost connection has been replaced. Notifications sent meanwhile were missed. */
  onReconnect(listener: () => void): void;
  stop(): Promise<void>;
}

export interface PulseOptions {
  db: Db;
  log: ServiceLog;
  timeoutMs?: number;
}

const LISTEN = [
  statement("kernel.pulse.listen", `listen ${WAKE_CHANNEL}`),
  statement("kernel.pulse.listen_hints", `listen ${HINTS_CHANNEL}`),
];
const NOTIFY = statement(
  "kernel.pulse.notify",
  `select pg_notify('${WAKE_CHANNEL}', payload) from unnest($1::text[]) as t(payload)`,
);

/** Connects, and fails if that is not possible. A connection that is lost later is replaced, with unlimited attempts. */
export async function openPulse({ db, log, timeoutMs = TIMEOUT_MS }: PulseOptions): Promise<Pulse> {
  const notificationListeners: { channel: string; listener: (payload: string) => void }[] = [];
  const reconnectListeners: (() => void)[] = [];
  const stopping = new AbortController();
  let latest: Socket | undefined;
  let connected: { client: pg.Client; socket: Socket } | undefined;
  let connectedAfterMs = 0;
  let reconnecting: Promise<void> | undefined;

  async function connect(): Promise<void> {
    connectedAfterMs = performance.now() + CONNECT_GAP_MS;
    // Our own socket, so that it can be destroyed: `client.end()` waits for an answer that a frozen connection never gives.
    const socket = new Socket();
    latest = socket;
    try {
      const client = await db.dedicated("pulse", {
        stream: () => socket,
        connectionTimeoutMillis: timeoutMs,
        query_timeout: timeoutMs,
        // Shorter, so that a statement that waits for a lock is ended by the server and the connection is kept.
        statement_timeout: timeoutMs * 0.9,
        keepAliveInitialDelayMillis: timeoutMs,
        // A hint does not wait for the answer to a heartbeat, nor the other way round.
        pipeline: true,
        // Losing these writes in a power failure loses no work, so they do not wait for the disk.
        options: "-c synchronous_commit=off",
      });
      client.on("error", (error) => lose(socket, error));
      client.on("end", () => lose(socket, new Error("Connection terminated")));
      client.on("notification", ({ channel, payload = "" }) => {
        for (const each of notificationListeners) if (each.channel === channel) each.listener(payload);
      });
      await Promise.all(LISTEN.map((listen) => db.rowsOn(client, listen)));
      if (socket.destroyed) throw new Error("Connection terminated"); // It ended before `connected` was set.
      connected = { client, socket };
    } catch (error) {
      socket.destroy();
      throw error;
    }
  }

  function lose(socket: Socket, err: unknown): void {
    socket.destroy();
    if (connected?.socket !== socket) return;
    connected = undefined;
    log.warn({ err }, "the connection for heartbeats and hints was lost and is made again");
    reconnecting = reconnect();
  }

  async function reconnect(): Promise<void> {
    let lastFailure = "";
    while (!stopping.signal.aborted) {
      try {
        const waitMs = Math.max(0, connectedAfterMs - performance.now());
        await sleep(waitMs, undefined, { signal: stopping.signal });
        await connect();
      } catch (err) {
        const failure = messageOf(err);
        if (failure !== lastFailure && !stopping.signal.aborted) {
          log.warn({ err }, "the connection for heartbeats and hints could not be made; it is tried again");
        }
        lastFailure = failure;
        continue;
      }
      for (const listener of reconnectListeners) listener();
      return;
    }
  }

  async function rows<Row>(sent: Statement<Row>, values?: readonly unknown[]): Promise<Row[]> {
    if (!connected) throw new Error("Connection terminated; a new one is being made");
    const { client, socket } = connected;
    try {
      return await db.rowsOn(client, sent, values);
    } catch (error) {
      if (!isRefusal(error)) lose(socket, error);
      throw error;
    }
  }

  await connect();
  return {
    rows,
    notify: async (payloads) => void (await rows(NOTIFY, [payloads])),
    onNotification: (listener, channel = WAKE_CHANNEL) => void notificationListeners.push({ channel, listener }),
    isConnected: () => connected !== undefined,
    onReconnect: (listener) => void reconnectListeners.push(listener),
    async stop() {
      stopping.abort();
      const last = connected;
      connected = undefined;
      if (last) await Promise.race([last.client.end(), sleep(timeoutMs, undefined, { ref: false })]);
      latest?.destroy();
      await reconnecting;
    },
  };
}

/** Whether the server answered with an error but the connection still works. */
function isRefusal(error: unknown): boolean {
  return error instanceof pg.DatabaseError && !isUnavailable(error);
}
