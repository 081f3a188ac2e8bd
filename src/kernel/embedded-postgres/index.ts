/**
 * The embedded Postgres: a real server that Millrace starts, supervises and stops, so that a machine needs only Node. The public
 * interface of this folder; `supervisor.ts` describes the server's states.
 */

import { type EmbeddedPostgres, type EmbeddedPostgresOptions, supervise } from "./supervisor.ts";

export { resolveDataDir } from "./data-directory.ts";
export type { EmbeddedPostgres, EmbeddedPostgresOptions } from "./supervisor.ts";

export function startEmbeddedPostgres(options: EmbeddedPostgresOptions): Promise<EmbeddedPostgres> {
  return supervise(options, { transport: process.platform === "win32" ? "loopback" : "socket" });
}
