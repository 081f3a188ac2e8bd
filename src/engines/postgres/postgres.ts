/** A Postgres as warehouse, with a connection pool that is separate from Millrace's own database. */
import pg from "pg";
import { isUnavailable } from "../../kernel/data/db.ts";
import { type Driver, EngineRefusal } from "../engine.ts";
import type { PostgresSettings } from "../settings.ts";
import { submit } from "./query.ts";

const CONNECT_TIMEOUT_MS = 5_000;
const IDLE_TIMEOUT_MS = 60_000;
/** After this time without an effect of the cancel request, the connection is closed. */
const CANCEL_TIMEOUT_MS = 5_000;
/**
 * SQLSTATE classes that a retry may cure: the connection, a login, a missing database, conflicts, resources, locks, operator
 * intervention, time-outs of the server, its disk, internal errors. All others blame the statement.
 */
const TRANSIENT = new Set(["08", "28", "3D", "40", "53", "55", "57", "58", "XX"]);

export type PostgresConnection = ReturnType<typeof connectionOf>;

export function connectionOf({ url }: PostgresSettings, name: string) {
  return {
    connectionString: url,
    application_name: `millrace ${name}`,
    connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
    keepAlive: true,
    // The same result in every time zone; the URL can override it (`?options=-c timezone=...`).
    options: "-c timezone=UTC -c datestyle=ISO -c intervalstyle=iso_8601",
  };
}

export function openPostgres(settings: PostgresSettings, given: { name: string; connectionsMax: number }): Driver {
  const connection = connectionOf(settings, given.name);
  const pool = new pg.Pool({ ...connection, max: given.connectionsMax, idleTimeoutMillis: IDLE_TIMEOUT_MS });
  pool.on("error", () => {}); // An idle connection broke; the pool has removed it.
  pool.on("connect", (client) => client.on("error", () => {})); // A busy one also fails its query, which reports the error.

  return {
    async run(sql, options) {
      const client = await pool.connect();
      const stopCancelling = cancelOnAbort(client, options.signal, connection);
      try {
        options.signal.throwIfAborted();
        const result = await submit(client, sql, options);
        options.signal.throwIfAborted();
        if (client.getTransactionStatus() === "I") return result;
        throw new EngineRefusal("The SQL begins a transaction and does not end it, so it was rolled back.");
      } catch (error) {
        throw explained(error);
      } finally {
        stopCancelling();
        // A late cancel must not hit another query, so the connection is not reused.
        client.release(options.signal.aborted || !(await resetSession(client)));
      }
    },
    close: () => pool.end(),
  };
}

/** Resets the session: settings, temporary tables, locks. Fails in an open transaction. */
async function resetSession(client: pg.PoolClient): Promise<boolean> {
  return client.query("discard all").then(
    () => true,
    () => false,
  );
}

/** Closing the connection is not enough: the server notices that only when it has rows to send. */
function cancelOnAbort(client: pg.PoolClient, signal: AbortSignal, connection: pg.ClientConfig): () => void {
  let timer: NodeJS.Timeout | undefined;
  const disconnect = () => void (client as pg.Client).end().catch(() => {});
  const begin = () => {
    timer = setTimeout(disconnect, CANCEL_TIMEOUT_MS);
    cancel(client, connection).catch(disconnect);
  };
  signal.addEventListener("abort", begin, { once: true });
  return () => {
    signal.removeEventListener("abort", begin);
    clearTimeout(timer);
  };
}

/** Uses a connection outside the pool, since queries that need cancelling may occupy the whole pool. */
async function cancel(client: pg.PoolClient, connection: pg.ClientConfig): Promise<void> {
  const { processID } = client as unknown as { processID: number | null };
  const other = new pg.Client(connection);
  other.on("error", () => {});
  try {
    await other.connect();
    await other.query("select pg_cancel_backend($1)", [processID]);
  } finally {
    await other.end();
  }
}

/** What the database refuses is an EngineRefusal; other errors stay as they are. */
export function explained(error: unknown): unknown {
  if (!(error instanceof pg.DatabaseError) || isUnavailable(error) || TRANSIENT.has(error.code?.slice(0, 2) ?? "")) {
    return error;
  }
  const { message, detail, hint } = error;
  return new EngineRefusal([message, detail, hint].filter(Boolean).join(". "), { cause: error });
}
