/**
 * The settings of the embedded server, each with its reason. They travel on the command line, not in a file, so that a
 * server runs with exactly what its fingerprint says and no start can leave a half-written configuration behind.
 */

import { createHash } from "node:crypto";
import type { Binaries } from "./binaries.ts";

const SETTINGS = {
  // An acknowledged write survives kill -9, a restart and a power cut. Said aloud so that no file can turn it off.
  fsync: "on",
  synchronous_commit: "on",
  full_page_writes: "on",

  // The hot indexes of a few million rows fit; more would be taken from the page cache of a small machine.
  shared_buffers: "256MB",
  // The largest pool (100), the reads (4), the listener, the lock on the server and a migration (3), what Postgres
  // keeps for superusers (3), and people with psql (10). One that is allowed but not open costs a few kB.
  max_connections: "120",
  // Nobody replicates to or from this server, so it need not write what only a replica reads.
  wal_level: "minimal",
  max_wal_senders: "0",
  max_logical_replication_workers: "0",
  // Rare checkpoints mean fewer full-page images under load; 2 GB of log replays in well under a minute.
  max_wal_size: "2GB",
  checkpoint_timeout: "15min",
  // Solid-state disks: a random page costs about as much as the next one.
  random_page_cost: "1.1",
  // Short statements: compiling takes longer than running.
  jit: "off",
  // Queue tables die and are born quickly; the default minute lets them bloat.
  autovacuum_naptime: "10s",
  // Work of a client that was killed ends within a second instead of holding its locks until it is done.
  client_connection_check_interval: "1s",

  timezone: "UTC",
  log_timezone: "UTC",
  // `failure.ts` reads the log, so its language must not depend on the machine.
  lc_messages: "C",
} as const;

/** Carries the fingerprint into the server, where a later process reads it: any setting with a dot in its name is accepted. */
export const FINGERPRINT_SETTING = "millrace.fingerprint";

export function serverSettings(extra: Record<string, string>): Record<string, string> {
  return { ...SETTINGS, ...extra };
}

/** Tells whether a server found running is the one that we would start. */
export function fingerprint(binaries: Binaries, settings: Record<string, string>): string {
  const sorted = Object.entries(settings).sort(([a], [b]) => (a < b ? -1 : 1));
  const told = JSON.stringify([binaries.version, binaries.dir, sorted]);
  return createHash("sha256").update(told).digest("hex").slice(0, 16);
}

export function toArguments(settings: Record<string, string>): string[] {
  return Object.entries(settings).flatMap(([name, value]) => ["-c", `${name}=${value}`]);
}
