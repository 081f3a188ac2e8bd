/**
 * A session is the row that says that this process runs. Work that is leased by session (lease.ts) is held until the session
 * expires, so one heartbeat extends everything that the process holds.
 *
 *     opened ──heartbeat, every 5 s──▶ opened ──none for 15 s──▶ expired ──an hour──▶ deleted
 *                                        └──graceful stop──▶ closed, which is expired at once
 *
 * A heartbeat also finds expired sessions of other processes and calls `onExpiry`, so that the loops that reclaim work need
 * not poll every few seconds. What expired before a process opened its session, its loops find in their first run. An expired
 * session is never extended, because another process may already have its work. The process opens a new one and calls its own
 * listeners too.
 */
import { hostname } from "node:os";
import type { Role } from "../config/settings.ts";
import type { Db } from "../data/db.ts";
import { statement } from "../data/statement.ts";
import type { Pulse } from "./pulse.ts";
import type { RetryPolicy } from "./retry.ts";
import { createService, type OnRun, type Service, type ServiceLog } from "./service.ts";

/** The name of this process in rows and logs: `host:pid`. */
export const PROCESS_NAME = `${hostname()}:${process.pid}`;
export const SESSION_TTL_SECONDS = 15;
const HEARTBEAT_INTERVAL_MS = 5_000;
/** Expired sessions are kept this long for `millrace doctor`, then deleted. */
const KEEP_SECONDS = 3_600;
/** Listeners are called at this many heartbeats in a row: at the first, rows may still be locked. */
const ANNOUNCEMENTS = 4;
/** How many expired sessions a heartbeat reads, the latest first. */
const EXPIRED_MAX = 1_000;

/** For writes under a lease: retries for longer than a session lives without a heartbeat; after that the lease is lost. */
export const OUTLAST_SESSION: RetryPolicy = { maxAttempts: 20, baseMs: 100, factor: 2, capMs: 2_000, jitter: 0.2 };

export interface Session {
  /** The id to claim with. It changes when the session has expired, for example because the process was suspended. */
  id(): string;
  /**
   * Calls `listener` when a session has expired, of another process or of this one: what it held can be reclaimed. It is
   * called some times in a row, and once with true if the session was not closed: its process died, or was suspended.
   */
  onExpiry(listener: (hasDied: boolean) => void): void;
  readonly service: Service;
  close(): Promise<void>;
}

export interface SessionOptions {
  pulse: Pulse;
  log: ServiceLog;
  version: string;
  roles: readonly string[];
  onRun?: OnRun;
  ttlSeconds?: number;
  heartbeatIntervalMs?: number;
}

/** A condition for other statements: a process with this role is alive. */
export function isServed(role: Role): string {
  return `exists (select from kernel.session served where served.expires_at > now() and '${role}' = any(served.roles))`;
}

const SERVED = statement<{ role: Role }>(
  "kernel.session.served",
  "select distinct unnest(roles) as role from kernel.session where expires_at > now()",
);

/** The roles of the processes that are alive. */
export async function servedRoles(db: Db): Promise<ReadonlySet<Role>> {
  return new Set((await db.read(SERVED)).map(({ role }) => role));
}

const OPEN = statement<{ id: string; expired: string[] }>(
  "kernel.session.open",
  `insert into kernel.session (process, roles, version, expires_at)
   values ($1, $2, $3, now() + make_interval(secs => $4))
   returning id, array(select id::text from kernel.session where expires_at <= now() order by expires_at desc limit $5) as expired`,
);
// Concurrent heartbeats that delete the same old sessions do not wait for each other.
const BEAT = statement<{ alive: boolean; expired: string[]; unclosed: string[] }>(
  "kernel.session.beat",
  `with old as (
     select id from kernel.session where expires_at < now() - make_interval(secs => $3) for update skip locked
   ), deleted as (
     delete from kernel.session s using old where s.id = old.id
   ), beaten as (
     update kernel.session set expires_at = now() + make_interval(secs => $2) where id = $1 and expires_at > now()
     returning id
   ), expired as (
     select id::text, closed_at from kernel.session where expires_at <= now() order by expires_at desc limit $4
   )
   select exists (select from beaten) as alive, array(select id from expired) as expired,
          array(select id from expired where closed_at is null) as unclosed`,
);
// Not deleted, so that other processes see that it has expired and reclaim what it held.
const CLOSE = statement(
  "kernel.session.close",
  "update kernel.session set expires_at = least(expires_at, now()), closed_at = now() where id = $1",
);

export async function openSession(options: SessionOptions): Promise<Session> {
  const { pulse, log, ttlSeconds = SESSION_TTL_SECONDS } = options;

  async function open(): Promise<{ id: string; expired: readonly string[] }> {
    const [row] = await pulse.rows(OPEN, [PROCESS_NAME, options.roles, options.version, ttlSeconds, EXPIRED_MAX]);
    if (!row) throw new Error("insert returned no row");
    return row;
  }

  const opened = await open();
  let { id } = opened;
  const listeners: ((hasDied: boolean) => void)[] = [];
  // By id rather than by time, so that none is missed after failed heartbeats or changes of the clock.
  let known = new Set(opened.expired);
  let announcementsLeft = 0;

  async function runOnce() {
    const [beat] = await pulse.rows(BEAT, [id, ttlSeconds, KEEP_SECONDS, EXPIRED_MAX]);
    if (!beat) throw new Error("select returned no row");
    if (!beat.alive) {
      ({ id } = await open());
      log.warn(
        { session: id },
        "the session of this process expired and its leases are lost; it goes on with a new session",
      );
    }
    const isNew = (expired: string) => !known.has(expired);
    const hasDied = !beat.alive || beat.unclosed.some(isNew);
    if (!beat.alive || beat.expired.some(isNew)) announcementsLeft = ANNOUNCEMENTS;
    known = new Set(beat.expired);
    if (announcementsLeft > 0) {
      announcementsLeft -= 1;
      for (const listener of listeners) listener(hasDied);
    }
    return beat.alive ? { beaten: 1 } : { reopened: 1 };
  }

  const service = createService({
    name: "session",
    intervalMs: options.heartbeatIntervalMs ?? HEARTBEAT_INTERVAL_MS,
    log,
    ...(options.onRun ? { onRun: options.onRun } : {}),
    runOnce,
  });
  pulse.onReconnect(service.wake);
  return {
    id: () => id,
    onExpiry: (listener) => void listeners.push(listener),
    service,
    async close() {
      await service.stop();
      await pulse.rows(CLOSE, [id]);
    },
  };
}
