/**
 * The embedded Postgres: a real server that Millrace starts, watches and stops by itself, so that a fresh machine needs
 * nothing but Node. This is the only door of the folder; the life of the server is told in `supervisor.ts`.
 */

import { type EmbeddedPostgres, type EmbeddedPostgresOptions, supervise } from "./supervisor.ts";

export { resolveDataDir } from "./data-directory.ts";
export type { EmbeddedPostgres, EmbeddedPostgresOptions } from "./supervisor.ts";

export function startEmbeddedPostgres(options: EmbeddedPostgresOptions): Promise<EmbeddedPostgres> {
  return supervise(options, { transport: process.platform === "win32" ? "loopback" : "socket" });
}
