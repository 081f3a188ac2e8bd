/**
 * API keys: random, shown once, stored as a hash. Known keys are cached; a revocation expires the cache in all processes
 * through a wake-up hint.
 */
import { timingSafeEqual } from "node:crypto";
import type { Db, Queryable, Tx } from "../data/db.ts";
import { statement } from "../data/statement.ts";
import { kernelError } from "../errors.ts";
import type { Hints } from "../hints/hints.ts";
import type { KERNEL_HINTS } from "../hints/kinds.ts";
import { systemIds } from "../ids.ts";
import type { Clock } from "../time/clock.ts";
import type { Wake } from "../work/wake.ts";
import { createHashLookup, hashOf } from "./hash-lookup.ts";
import { createRevocations, type Revocations } from "./revocations.ts";
import type { Caller } from "./scopes.ts";
import { createUnknownKeyLimit } from "./unknown-key-limit.ts";

export interface NewKey {
  name: string;
  scopes: readonly string[];
  tenantId?: number;
  source?: string;
  rateLimitPerMinute?: number;
}

/** A key without its secret text. */
export interface KeyRow {
  id: string;
  name: string;
  /** The first characters, to identify the key. */
  hint: string;
  scopes: string[];
  tenant_id: string | null;
  source: string | null;
  rate_limit_per_minute: number | null;
  created_at: Date;
  created_by: string;
  /** The last use of the key or of one of its sessions, up to five minutes late. */
  used_at: Date | null;
  revoked_at: Date | null;
}

export interface Keys {
  /** The caller with this key, if any. Throws if the key is unknown and the address has sent too many of those. */
  find(key: string, address: string): Promise<Caller | undefined>;
  create(tx: Queryable, key: NewKey, createdBy: string): Promise<KeyRow & { key: string }>;
  list(): Promise<KeyRow[]>;
  /** After the commit, all processes drop the key from their caches. */
  revoke(tx: Tx, id: string): Promise<KeyRow>;
  /** Calls a function when the key is revoked; returns what ends the watch. */
  watch: Revocations["watch"];
  /** Creates and returns the first admin key if no key exists. */
  bootstrap(): Promise<string | undefined>;
}

const PREFIX = "mlr_";
const KEY_BYTES = 32;
/** The form of `newKey`. Anything else cannot be a stored key and needs no lookup. */
const SHAPE = /^mlr_[\w-]{43}$/;
const HINT_LENGTH = 8;
/** A use is noted at most this often. */
const NOTE_SECONDS = 60;
/** A hint that a key was revoked. */
export const REVOKED_TOPIC = "kernel.keys";

const COLUMNS =
  "id, name, hint, scopes, tenant_id::text, source, rate_limit_per_minute, created_at, created_by, used_at, revoked_at";
// The uses are noted by whoever gets the rows: processes must not wait for each other here.
const FIND = statement<KeyRow & { hash: Buffer }>(
  "kernel.keys.find",
  `with found as (
     select ${COLUMNS}, hash from kernel.api_key where hash = any($1::bytea[]) and revoked_at is null
   ), noted as (
     select k.id from kernel.api_key k join found f on f.id = k.id
     where k.used_at is null or k.used_at < now() - make_interval(secs => $2) for no key update of k skip locked
   ), used as (
     update kernel.api_key k set used_at = now() from noted n where k.id = n.id
   )
   select * from found`,
);
const INSERT = statement<KeyRow>(
  "kernel.keys.insert",
  `insert into kernel.api_key (id, name, hash, hint, scopes, tenant_id, source, rate_limit_per_minute, created_by)
   values ($1, $2, $3, $4, $5, $6, $7, $8, $9) returning ${COLUMNS}`,
);
// Without it, two processes that start on an empty database would both create a key.
const LOCK = statement("kernel.keys.lock", "lock table kernel.api_key in share row exclusive mode");
const INSERT_FIRST = statement<{ id: string }>(
  "kernel.keys.insert_first",
  `insert into kernel.api_key (id, name, hash, hint, scopes, created_by)
   select $1, 'first admin', $2, $3, '{admin}', 'first start' where not exists (select from kernel.api_key) returning id`,
);
const LIST = statement<KeyRow>(
  "kernel.keys.list",
  `select ${COLUMNS} from kernel.api_key order by created_at desc limit 1000`,
);
const REVOKED = statement<{ id: string }>(
  "kernel.keys.revoked",
  `select asked.id from unnest($1::uuid[]) asked (id)
   where not exists (select from kernel.api_key k where k.id = asked.id and k.revoked_at is null)`,
);
const REVOKE = statement<KeyRow>(
  "kernel.keys.revoke",
  `update kernel.api_key set revoked_at = coalesce(revoked_at, now()) where id = $1 returning ${COLUMNS}`,
);

export interface KeysDeps {
  db: Db;
  wake: Wake;
  hints: Hints<typeof KERNEL_HINTS>;
  clock: Clock;
  adminKey: string | undefined;
}

export function createKeys(deps: KeysDeps): Keys {
  const { db, wake, hints, clock } = deps;
  const unknownKeys = createUnknownKeyLimit({ clock });
  const revocations = createRevocations({
    ended: async (ids) => (await db.rows(REVOKED, [ids])).map(({ id }) => id),
  });
  const stored = createHashLookup<Caller>({
    clock,
    read: async (hashes) =>
      (await db.rows(FIND, [hashes, NOTE_SECONDS])).map((row) => [row.hash, callerOf(row)] as const),
  });
  wake.on(REVOKED_TOPIC, () => {
    stored.clear();
    revocations.look();
  });

  const adminHash = deps.adminKey === undefined ? undefined : hashOf(deps.adminKey);

  return {
    async find(key, address) {
      const hash = hashOf(key);
      // The key from the environment is never stored, so removing the setting removes the key.
      if (adminHash && timingSafeEqual(hash, adminHash)) return ENVIRONMENT_ADMIN;
      if (!SHAPE.test(key)) return undefined;
      const caller = await stored.find(hash);
      if (!caller) unknownKeys.count(address);
      return caller;
    },

    watch: revocations.watch,

    async create(tx, { name, scopes, tenantId, source, rateLimitPerMinute }, createdBy) {
      const { key, hint } = newKey();
      const values = [
        systemIds.uuid(),
        name,
        hashOf(key),
        hint,
        scopes,
        tenantId,
        source,
        rateLimitPerMinute,
        createdBy,
      ];
      const [row] = await tx.rows(INSERT, values);
      if (!row) throw new Error("insert returned no row");
      hints.changed(tx, "key", row.id);
      return { ...row, key };
    },

    list: () => db.read(LIST),

    async revoke(tx, id) {
      const [row] = await tx.rows(REVOKE, [id]);
      if (!row) throw kernelError("KEY_NOT_FOUND", { id });
      tx.afterCommit(() => wake.hint(REVOKED_TOPIC));
      hints.changed(tx, "key", row.id);
      return row;
    },

    async bootstrap() {
      if (adminHash) return undefined;
      const { key, hint } = newKey();
      return db.tx(async (tx) => {
        await tx.rows(LOCK);
        const [row] = await tx.rows(INSERT_FIRST, [systemIds.uuid(), hashOf(key), hint]);
        return row ? key : undefined;
      });
    },
  };
}

export const ENVIRONMENT_ADMIN: Caller = {
  name: "MILLRACE_ADMIN_KEY",
  keyId: null,
  isEnvironmentAdmin: true,
  scopes: ["admin"],
  tenantId: null,
  source: null,
  rateLimitPerMinute: null,
};

export function callerOf(row: Omit<KeyRow, "hint" | "created_at" | "created_by" | "used_at" | "revoked_at">): Caller {
  return {
    name: row.name,
    keyId: row.id,
    scopes: row.scopes,
    tenantId: row.tenant_id,
    source: row.source,
    rateLimitPerMinute: row.rate_limit_per_minute,
  };
}

function newKey(): { key: string; hint: string } {
  const key = PREFIX + systemIds.token(KEY_BYTES);
  return { key, hint: key.slice(0, HINT_LENGTH) };
}
