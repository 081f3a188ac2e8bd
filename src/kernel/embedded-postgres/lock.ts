/**
 * One Millrace per data directory: the one whose connection holds an advisory lock in the server. The operating system closes
 * the connection when the process ends, so a lock is never stale. The end of the connection also tells the supervisor that
 * the server has ended.
 */

import { Client, escapeIdentifier } from "pg";
import { messageOf } from "../text/message-of.ts";
import { SUPERUSER } from "./cluster.ts";
import type { Endpoint } from "./endpoint.ts";
import { errorCode } from "./failure.ts";
import { FINGERPRINT_SETTING } from "./settings.ts";

export const DATABASE = "millrace";
/** The lock is in the maintenance database, so that it does not prevent copying or dropping ours. */
const MAINTENANCE_DATABASE = "postgres";
/** "mill" and "race" in ASCII. */
const LOCK_KEY = [0x6d696c6c, 0x72616365] as const;
const CONNECT_MS_MAX = 3_000;
/** Creating the database copies 8 MB, which can be slow on a busy disk. */
const QUERY_MS_MAX = 60_000;

export interface Lock {
  client: Client;
  /** Resolves when the connection, and with it the lock, has ended. */
  lost: Promise<void>;
}

export type LockAttempt =
  | { outcome: "locked"; lock: Lock; fingerprint: string | null }
  /** Another Millrace holds it; `holder` is its pid. */
  | { outcome: "held"; holder: number | undefined }
  /** The server accepts no connection at the moment: it is recovering, or has no free slot. */
  | { outcome: "busy" }
  | { outcome: "unreachable"; reason: string };

export async function tryLock(endpoint: Endpoint, password: string | undefined): Promise<LockAttempt> {
  const client = new Client({
    host: endpoint.host,
    port: endpoint.port,
    user: SUPERUSER,
    database: MAINTENANCE_DATABASE,
    password,
    ssl: false,
    application_name: `${SUPERUSER} ${process.pid}`,
    connectionTimeoutMillis: CONNECT_MS_MAX,
    query_timeout: QUERY_MS_MAX,
  });
  const lost = new Promise<void>((resolve) => client.once("end", resolve));
  // Every error also ends the connection, which `lost` reports.
  client.on("error", () => undefined);
  try {
    await client.connect();
    const { rows } = await client.query<{ locked: boolean; fingerprint: string | null }>(
      "select pg_try_advisory_lock($1, $2) as locked, current_setting($3, true) as fingerprint",
      [...LOCK_KEY, FINGERPRINT_SETTING],
    );
    const row = rows[0];
    if (row?.locked) return { outcome: "locked", lock: { client, lost }, fingerprint: row.fingerprint };
    const holder = await findHolder(client);
    await client.end();
    return { outcome: "held", holder };
  } catch (error) {
    void client.end().catch(() => undefined);
    return describeFailure(error);
  }
}

async function findHolder(client: Client): Promise<number | undefined> {
  const { rows } = await client.query<{ application_name: string }>(
    `select a.application_name
       from pg_locks l join pg_stat_activity a on a.pid = l.pid and a.datname = current_database()
      where l.locktype = 'advisory' and l.granted and l.classid = $1 and l.objid = $2 and l.objsubid = 2`,
    [...LOCK_KEY],
  );
  const pid = Number(rows[0]?.application_name.split(" ")[1]);
  return Number.isInteger(pid) ? pid : undefined;
}

/** cannot_connect_now and too_many_connections. */
const BUSY = new Set(["57P03", "53300"]);

function describeFailure(error: unknown): LockAttempt {
  if (BUSY.has(errorCode(error) ?? "")) return { outcome: "busy" };
  return { outcome: "unreachable", reason: messageOf(error) };
}

/** Creates the database of Millrace if it is missing: at the first start, or after a first start that was killed. */
export async function ensureDatabase({ client }: Lock): Promise<void> {
  const { rowCount } = await client.query("select from pg_database where datname = $1", [DATABASE]);
  if (rowCount !== 0) return;
  // Errors of statements are returned to the client; in the server's log they would take space and leak values of rows.
  await client.query(`alter role ${escapeIdentifier(SUPERUSER)} set log_min_messages = fatal`);
  await client.query(`create database ${escapeIdentifier(DATABASE)}`);
}
