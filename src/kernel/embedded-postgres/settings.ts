/**
 * The settings of the embedded server, each with its reason. They are passed on the command line, not in a file, so that the
 * server's fingerprint matches its settings and a killed start leaves no half-written configuration.
 */

import { createHash } from "node:crypto";
import type { Binaries } from "./binaries.ts";

const SETTINGS = {
  // An acknowledged write survives kill -9, a restart and a power failure. Explicit, so that no file can turn it off.
  fsync: "on",
  synchronous_commit: "on",
  full_page_writes: "on",

  // Enough for the hot indexes of a few million rows; more would reduce the page cache of a small machine.
  shared_buffers: "256MB",
  // The largest pool (100), reads (4), the listener, the lock and a migration (3), the reserve of Postgres for superusers
  // (3), and psql sessions (10). An unused slot costs a few kB.
  max_connections: "120",
  // There are no replicas.
  wal_level: "minimal",
  max_wal_senders: "0",
  max_logical_replication_workers: "0",
  // Fewer checkpoints write fewer full-page images; replaying 2 GB of WAL takes less than a minute.
  max_wal_size: "2GB",
  checkpoint_timeout: "15min",
  // On SSDs a random read costs about as much as a sequential one.
  random_page_cost: "1.1",
  // For short statements, compiling takes longer than running.
  jit: "off",
  // Queue tables change quickly; with the default of a minute they bloat.
  autovacuum_naptime: "10s",
  // A query of a killed client ends within a second instead of holding its locks to its end.
  client_connection_check_interval: "1s",

  timezone: "UTC",
  log_timezone: "UTC",
  // `failure.ts` reads the log, so its language must not depend on the machine.
  lc_messages: "C",
} as const;

/** Stores the fingerprint in the server for later processes. Postgres accepts any setting with a dot in its name. */
export const FINGERPRINT_SETTING = "millrace.fingerprint";

export function serverSettings(extra: Record<string, string>): Record<string, string> {
  return { ...SETTINGS, ...extra };
}

/** Identifies a server's version and settings, to decide whether a running server can be used. */
export function fingerprint(binaries: Binaries, settings: Record<string, string>): string {
  const sorted = Object.entries(settings).sort(([a], [b]) => (a < b ? -1 : 1));
  const identity = JSON.stringify([binaries.version, binaries.dir, sorted]);
  return createHash("sha256").update(identity).digest("hex").slice(0, 16);
}

export function toArguments(settings: Record<string, string>): string[] {
  return Object.entries(settings).flatMap(([name, value]) => ["-c", `${name}=${value}`]);
}
