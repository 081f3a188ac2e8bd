/** A connection as the URL that other processes take: the host is the folder of the socket, percent-encoded. */
import type { Connection } from "../src/kernel/data/db.ts";

export function urlOf(connection: Connection): string {
  if ("connectionString" in connection) return connection.connectionString;
  // dlt insists on a password, also where the server asks for none.
  const { host, port, user, password = "none", database } = connection;
  return `postgresql://${user}:${encodeURIComponent(password)}@${encodeURIComponent(host)}:${port}/${database}`;
}
