/** A Postgres as warehouse: read and write, with connections of its own, apart from those of Millrace's own database. */
import pg from "pg";
import { isUnavailable } from "../kernel/data/db.ts";
import { type Driver, EngineRefusal } from "./engine.ts";
import { submit } from "./postgres-query.ts";
import type { PostgresSettings } from "./settings.ts";

const CONNECT_TIMEOUT_MS = 5_000;
const IDLE_TIMEOUT_MS = 60_000;
/** A server that does not answer the request to cancel loses the connection instead. */
const CANCEL_TIMEOUT_MS = 5_000;
/**
 * Classes of SQLSTATE that may pass: the connection, a login, a missing database, conflicts, resources, locks, an operator
 * or a time-out of the server, its disk, its bugs. The rest is about the statement.
 */
const MAY_PASS = new Set(["08", "28", "3D", "40", "53", "55", "57", "58", "XX"]);

export function openPostgres({ url }: PostgresSettings, given: { name: string; connectionsMax: number }): Driver {
  const connection = {
    connectionString: url,
    application_name: `millrace ${given.name}`,
    connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
    keepAlive: true,
    // One result wherever it is computed; the URL may say otherwise (`?options=-c timezone=...`).
    options: "-c timezone=UTC -c datestyle=ISO",
  };
  const pool = new pg.Pool({ ...connection, max: given.connectionsMax, idleTimeoutMillis: IDLE_TIMEOUT_MS });
  pool.on("error", () => {}); // An idle connection broke and is gone from the pool.
  pool.on("connect", (client) => client.on("error", () => {})); // A busy one fails its query, which is enough to know.

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
        // A cancel that is late must not hit the next query, so this connection has none.
        client.release(options.signal.aborted || !(await isClean(client)));
      }
    },
    close: () => pool.end(),
  };
}

/** Ends what the query left in the session: settings, temporary tables, locks. In an open transaction it fails. */
async function isClean(client: pg.PoolClient): Promise<boolean> {
  return client.query("discard all").then(
    () => true,
    () => false,
  );
}

/** Closing the connection alone would not do: the server notices that only when it has rows to send. */
function cancelOnAbort(client: pg.PoolClient, signal: AbortSignal, connection: pg.ClientConfig): () => void {
  let timer: NodeJS.Timeout | undefined;
  const hangUp = () => void (client as pg.Client).end().catch(() => {});
  const begin = () => {
    timer = setTimeout(hangUp, CANCEL_TIMEOUT_MS);
    cancel(client, connection).catch(hangUp);
  };
  signal.addEventListener("abort", begin, { once: true });
  return () => {
    signal.removeEventListener("abort", begin);
    clearTimeout(timer);
  };
}

/** On a connection outside of the pool, which may be taken up by queries that are to be cancelled as well. */
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

function explained(error: unknown): unknown {
  if (!(error instanceof pg.DatabaseError) || isUnavailable(error) || MAY_PASS.has(error.code?.slice(0, 2) ?? "")) {
    return error;
  }
  const { message, detail, hint } = error;
  return new EngineRefusal([message, detail, hint].filter(Boolean).join(". "), { cause: error });
}
