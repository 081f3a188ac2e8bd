/**
 * A session is this process's sign of life in the database. Work that is leased by session (lease.ts) belongs to the
 * process for as long as the session does not expire, so a process heartbeats once for all it holds.
 */
import { hostname } from "node:os";
import type { Db } from "../data/db.ts";
import { statement } from "../data/statement.ts";
import type { RetryPolicy } from "./retry.ts";
import { createService, type OnRun, type Service, type ServiceLog } from "./service.ts";

/** This process, for people: `host:pid`. */
export const PROCESS_NAME = `${hostname()}:${process.pid}`;
export const SESSION_TTL_SECONDS = 15;
const HEARTBEAT_INTERVAL_MS = 5_000;
/** Expired sessions are kept this long for `millrace doctor`, then forgotten. */
const FORGET_AFTER_SECONDS = 3_600;
/** A silence is told of for so long: several beats, so that one that fails is no loss. */
const SILENCE_TOLD_SECONDS = 20;

/** For writes that end what a session holds: longer in all than one lives unheard; then it is not ours to write any more. */
export const OUTLAST_SESSION: RetryPolicy = { maxAttempts: 20, baseMs: 100, factor: 2, capMs: 2_000, jitter: 0.2 };

export interface Session {
  /** The id to claim with. It changes when the session was lost, for instance because the process was suspended. */
  id(): string;
  /** Calls `listener` when another process has fallen silent: what it held is there to be taken back. */
  onSilence(listener: () => void): void;
  readonly service: Service;
  close(): Promise<void>;
}

export interface SessionOptions {
  db: Db;
  log: ServiceLog;
  version: string;
  roles: readonly string[];
  onRun?: OnRun;
}

const OPEN = statement<{ id: string }>(
  "kernel.session.open",
  `insert into kernel.session (process, roles, version, expires_at)
   values ($1, $2, $3, now() + make_interval(secs => $4)) returning id`,
);
// An expired session is never revived: its work may have been reclaimed already. The heart beats anyway, so it also listens
// for others: loops that take work back need not ask every few seconds, each for itself.
const BEAT = statement<{ alive: boolean; silence: boolean }>(
  "kernel.session.beat",
  `with forgotten as (
     delete from kernel.session where expires_at < now() - make_interval(secs => $3)
   ), beaten as (
     update kernel.session set expires_at = now() + make_interval(secs => $2) where id = $1 and expires_at > now()
     returning id
   )
   select exists (select from beaten) as alive,
          exists (select from kernel.session where expires_at between now() - make_interval(secs => $4) and now()) as silence`,
);
const CLOSE = statement("kernel.session.close", "delete from kernel.session where id = $1");

export async function openSession(options: SessionOptions): Promise<Session> {
  const { db } = options;

  async function open(): Promise<string> {
    const [row] = await db.rows(OPEN, [PROCESS_NAME, options.roles, options.version, SESSION_TTL_SECONDS]);
    if (!row) throw new Error("insert returned no row");
    return row.id;
  }

  let id = await open();
  const listeners: (() => void)[] = [];
  const service = createService({
    name: "session",
    intervalMs: HEARTBEAT_INTERVAL_MS,
    log: options.log,
    ...(options.onRun ? { onRun: options.onRun } : {}),
    async runOnce() {
      const [beat] = await db.rows(BEAT, [id, SESSION_TTL_SECONDS, FORGET_AFTER_SECONDS, SILENCE_TOLD_SECONDS]);
      if (beat?.silence) for (const listener of listeners) listener();
      if (beat?.alive) return { beaten: 1 };
      id = await open();
      options.log.warn(
        { session: id },
        "this process was silent for too long and lost its leases; it goes on with a new session",
      );
      return { reopened: 1 };
    },
  });
  return {
    id: () => id,
    onSilence: (listener) => void listeners.push(listener),
    service,
    async close() {
      await service.stop();
      await db.rows(CLOSE, [id]);
    },
  };
}
