/**
 * Links that sign in to the web console: each once, for 15 minutes, with the key that made it. The code is in the fragment of
 * the link, which browsers do not send, so that it is in no log of a server or a proxy; the page posts it.
 */
import type { Db, Queryable, Tx } from "../data/db.ts";
import { statement } from "../data/statement.ts";
import type { Clock } from "../time/clock.ts";
import type { ConsoleSecrets } from "./console-secrets.ts";
import { createHashLookup } from "./hash-lookup.ts";
import { callerOf, ENVIRONMENT_ADMIN } from "./keys.ts";
import type { Caller } from "./scopes.ts";
import { createUnknownKeyLimit } from "./unknown-key-limit.ts";

export interface ConsoleLinks {
  /** A link of a caller with a key. The code is given only here. */
  create(tx: Queryable, caller: Caller): Promise<NewLink>;
  /** Uses up a code: the caller whose key made it, for exactly one of all who ask. Counts the unknown ones of an address. */
  redeem(code: string, address: string, signIn: (tx: Tx, caller: Caller) => Promise<void>): Promise<boolean>;
  /** The one that signs in whoever reads the output of this process; undefined if no key can make one. */
  forOperator(): Promise<NewLink | undefined>;
}

export interface NewLink {
  code: string;
  expiresAt: Date;
}

const LINK_SECONDS = 15 * 60;

interface KeyColumns {
  id: string | null;
  name: string;
  scopes: string[];
  tenant_id: string | null;
  source: string | null;
  rate_limit_per_minute: number | null;
}
const KEY_COLUMNS = "k.id, k.name, k.scopes, k.tenant_id::text, k.source, k.rate_limit_per_minute";

const INSERT = statement<{ expires_at: Date }>(
  "kernel.console_link.insert",
  `with expired as (
     delete from kernel.console_link where expires_at <= now()
   )
   insert into kernel.console_link (hash, key_id, expires_at) values ($1, $2, now() + make_interval(secs => $3))
   returning expires_at`,
);
const FIND = statement<{ hash: Buffer }>(
  "kernel.console_link.find",
  "select hash from kernel.console_link where hash = any($1::bytea[]) and expires_at > now()",
);
const REDEEM = statement<KeyColumns>(
  "kernel.console_link.redeem",
  `with used as (
     delete from kernel.console_link where hash = $1 and expires_at > now() returning key_id
   )
   select ${KEY_COLUMNS} from used left join kernel.api_key k on k.id = used.key_id
   where used.key_id is null or k.id is not null and k.revoked_at is null`,
);
const OLDEST_ADMIN = statement<KeyColumns>(
  "kernel.console_link.oldest_admin",
  `select ${KEY_COLUMNS} from kernel.api_key k
   where k.revoked_at is null and k.tenant_id is null and 'admin' = any(k.scopes) order by k.created_at, k.id limit 1`,
);

export interface ConsoleLinksDeps {
  db: Db;
  clock: Clock;
  secrets: ConsoleSecrets;
  /** The process has an admin key from its environment. */
  hasEnvironmentAdmin: boolean;
}

export function createConsoleLinks({ db, clock, secrets, hasEnvironmentAdmin }: ConsoleLinksDeps): ConsoleLinks {
  const unknownCodes = createUnknownKeyLimit({ clock, what: "codes" });
  // A look first, which many share: without it every guess would cost a transaction.
  const stored = createHashLookup<true>({
    clock,
    read: async (hashes) => (await db.rows(FIND, [hashes])).map(({ hash }) => [hash, true] as const),
  });

  async function create(tx: Queryable, caller: Caller): Promise<NewLink> {
    const { secret: code, hash } = secrets.create(caller);
    const [row] = await tx.rows(INSERT, [hash, caller.keyId, LINK_SECONDS]);
    if (!row) throw new Error("insert returned no row");
    return { code, expiresAt: row.expires_at };
  }

  return {
    create,

    async redeem(code, address, signIn) {
      const hash = secrets.hashOf(code);
      const redeemed =
        hash !== undefined &&
        (await stored.find(hash)) !== undefined &&
        (await db.tx(async (tx) => {
          const [row] = await tx.rows(REDEEM, [hash]);
          if (row) await signIn(tx, holderOf(row));
          return row !== undefined;
        }));
      if (!redeemed) unknownCodes.count(address);
      return redeemed;
    },

    async forOperator() {
      if (hasEnvironmentAdmin) return create(db, ENVIRONMENT_ADMIN);
      const [row] = await db.rows(OLDEST_ADMIN);
      return row && create(db, holderOf(row));
    },
  };
}

function holderOf({ id, ...row }: KeyColumns): Caller {
  return id === null ? ENVIRONMENT_ADMIN : callerOf({ ...row, id });
}
