/**
 * Sessions of the web console: a person signs in with a key or a link, and the browser holds a token instead of the key. A
 * session can do what its key can, and ends with it.
 *
 *     signed in ──not used for 12 h, or 7 days old──▶ expired ──a later sign-in──▶ deleted
 *         └──signed out, or its key is revoked──▶ ended at once, in all processes
 */
import type { Db, Queryable, Tx } from "../data/db.ts";
import { statement } from "../data/statement.ts";
import type { Clock } from "../time/clock.ts";
import type { Wake } from "../work/wake.ts";
import type { ConsoleSecrets } from "./console-secrets.ts";
import { createHashLookup, idOf } from "./hash-lookup.ts";
import { callerOf, ENVIRONMENT_ADMIN, REVOKED_TOPIC } from "./keys.ts";
import { createRevocations, type Revocations } from "./revocations.ts";
import type { Caller } from "./scopes.ts";

export interface ConsoleSessions {
  /** The caller with this token, if its session has not ended. */
  find(token: string): Promise<Caller | undefined>;
  /** A new session of a caller with a key. The token is given only here. */
  create(tx: Queryable, caller: Caller): Promise<NewSession>;
  /** Whether there was such a session. After the commit, all processes drop it from their caches. */
  end(tx: Tx, token: string): Promise<boolean>;
  /** Calls a function when the session has ended; returns what ends the watch. */
  watch: Revocations["watch"];
}

export interface NewSession {
  token: string;
  caller: Caller;
}

const IDLE_SECONDS = 12 * 3_600;
export const SESSION_SECONDS_MAX = 7 * 24 * 3_600;
/** A use is noted at most this often. */
const NOTE_SECONDS = 300;
/** Of one key. A further one ends the oldest. */
const SESSIONS_MAX = 100;
const EXPIRED_DELETED_MAX = 1_000;
const ENDED_TOPIC = "kernel.console_sessions";
const LIMITS = [IDLE_SECONDS, SESSION_SECONDS_MAX] as const;

interface SessionRow {
  hash: Buffer;
  id: string | null;
  name: string;
  scopes: string[];
  tenant_id: string | null;
  source: string | null;
  rate_limit_per_minute: number | null;
  expires_at: Date;
  ends_at: Date;
}

// The uses of several sessions are noted by whoever gets their rows: processes must not wait for each other here.
const FIND = statement<SessionRow>(
  "kernel.console_session.find",
  `with found as (
     select s.hash, s.created_at + make_interval(secs => $3) as ends_at,
            case when s.used_at < now() - make_interval(secs => $4) then now() else s.used_at end as used_at,
            k.id, k.name, k.scopes, k.tenant_id::text, k.source, k.rate_limit_per_minute
     from kernel.console_session s left join kernel.api_key k on k.id = s.key_id
     where s.hash = any($1::bytea[])
       and s.used_at > now() - make_interval(secs => $2) and s.created_at > now() - make_interval(secs => $3)
       and (s.key_id is null or k.id is not null and k.revoked_at is null)
   ), noted as (
     select s.hash from kernel.console_session s join found f on f.hash = s.hash
     where s.used_at < now() - make_interval(secs => $4) for update of s skip locked
   ), used as (
     update kernel.console_session s set used_at = now() from noted n where s.hash = n.hash returning s.key_id
   ), noted_key as (
     select id from kernel.api_key where id in (select key_id from used) for no key update skip locked
   ), used_key as (
     update kernel.api_key k set used_at = now() from noted_key n where k.id = n.id
   )
   select hash, id, name, scopes, tenant_id, source, rate_limit_per_minute, ends_at,
          least(ends_at, used_at + make_interval(secs => $2)) as expires_at
   from found`,
);
const INSERT = statement<{ expires_at: Date; ends_at: Date }>(
  "kernel.console_session.insert",
  `insert into kernel.console_session (hash, key_id) values ($1, $2)
   returning created_at + make_interval(secs => $3) as expires_at, created_at + make_interval(secs => $4) as ends_at`,
);
// Rows that another process is deleting are left to it.
const TRIM = statement(
  "kernel.console_session.trim",
  `with expired as (
     select hash from kernel.console_session
     where used_at <= now() - make_interval(secs => $2) or created_at <= now() - make_interval(secs => $3)
     limit $4 for update skip locked
   ), surplus as (
     select hash from kernel.console_session where key_id is not distinct from $1::uuid
     order by created_at desc, hash offset $5 for update skip locked
   )
   delete from kernel.console_session
   where hash in (select hash from expired union all select hash from surplus)`,
);
const END = statement<{ hash: Buffer }>(
  "kernel.console_session.end",
  "delete from kernel.console_session where hash = $1 returning hash",
);

export interface ConsoleSessionsDeps {
  db: Db;
  wake: Wake;
  clock: Clock;
  secrets: ConsoleSecrets;
}

export function createConsoleSessions({ db, wake, clock, secrets }: ConsoleSessionsDeps): ConsoleSessions {
  const rowsOf = (hashes: readonly Buffer[]) => db.rows(FIND, [hashes, ...LIMITS, NOTE_SECONDS]);
  const stored = createHashLookup<Caller>({
    clock,
    read: async (hashes) => (await rowsOf(hashes)).map((row) => [row.hash, sessionCaller(row)] as const),
  });
  // By the same statement, so that a request that stays open is a use of its session.
  const revocations = createRevocations({
    async ended(ids) {
      const alive = new Set((await rowsOf(ids.map((id) => Buffer.from(id, "base64")))).map(({ hash }) => idOf(hash)));
      return ids.filter((id) => !alive.has(id));
    },
  });
  for (const topic of [REVOKED_TOPIC, ENDED_TOPIC]) {
    wake.on(topic, () => {
      stored.clear();
      revocations.look();
    });
  }

  return {
    watch: revocations.watch,

    async find(token) {
      const hash = secrets.hashOf(token);
      return hash && stored.find(hash);
    },

    async create(tx, caller) {
      const { secret: token, hash } = secrets.create(caller);
      const [row] = await tx.rows(INSERT, [hash, caller.keyId, ...LIMITS]);
      if (!row) throw new Error("insert returned no row");
      await tx.rows(TRIM, [caller.keyId, ...LIMITS, EXPIRED_DELETED_MAX, SESSIONS_MAX]);
      return { token, caller: inSession(caller, { ...row, hash }) };
    },

    async end(tx, token) {
      const hash = secrets.hashOf(token);
      if (!hash || (await tx.rows(END, [hash])).length === 0) return false;
      tx.afterCommit(() => wake.hint(ENDED_TOPIC));
      return true;
    },
  };
}

function sessionCaller({ id, ...row }: SessionRow): Caller {
  return inSession(id === null ? ENVIRONMENT_ADMIN : callerOf({ ...row, id }), row);
}

function inSession(caller: Caller, row: Pick<SessionRow, "hash" | "expires_at" | "ends_at">): Caller {
  const session = { id: idOf(row.hash), expiresAt: row.expires_at };
  return { ...caller, expiresAtMs: row.ends_at.getTime(), session };
}
