/** The connection to another database on the same server. */
import type { Connection } from "../src/kernel/data/db.ts";

export function withDatabase(connection: Connection, database: string): Connection {
  if (!("connectionString" in connection)) return { ...connection, database };
  const url = new URL(connection.connectionString);
  url.pathname = `/${database}`;
  return { connectionString: url.href };
}
