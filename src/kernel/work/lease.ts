/**
 * The one mechanism for durable work. A lease turns any table with a state column into a queue that many processes can
 * work on: tracking cells, chain nodes, harvest tasks, async tasks, deliveries.
 *
 *     ready ──claim──▶ leased ──finish──▶ an outcome of the module (done, failed, retry later ...)
 *       ▲                │ │
 *       └──release───────┘ └──reclaim, when the holder went silent──▶ ready, or dead after too many silences
 *
 * A claim gives the item a new fence, a number from one sequence that only grows. Every later write of the holder names
 * it, in the statement itself. A holder that was thought dead, and whose item went on without it, has an old fence and
 * changes nothing: zero rows back mean the lease is lost.
 *
 * Leases read the database's clock only. An item is held either until a time of its own, which suits daemons that pull
 * over HTTP, or for as long as the session of the process that claimed it lives (session.ts), which costs one heartbeat a
 * process instead of one an item.
 */
import { type Columns, guardedUpdate } from "../data/batch.ts";
import type { Db, Queryable } from "../data/db.ts";
import { type Statement, statement } from "../data/statement.ts";

export interface LeaseSpec {
  /** Names the statements, for example `tracking.shard_worker`. */
  name: string;
  table: string;
  /** The primary key: column to Postgres type. */
  key: Columns;
  state: {
    column: string;
    /** States that may be claimed. The first is where released and reclaimed items go. */
    ready: readonly [string, ...string[]];
    leased: string;
    /** Where an item goes whose holders were lost too often. */
    dead: string;
  };
  /** What else must hold of a ready item. With the state it should be, word for word, the partial index's condition. */
  readyWhen?: string;
  /** A column with the time before which an item may not be claimed. */
  dueAt?: string;
  /** Which ready item comes first: priority, age, key. Matches the partial index. */
  orderBy: string;
  fence: string;
  hold: { by: "item"; owner: string; until: string } | { by: "session"; session: string };
  /** Silent holders, counted apart from failures, so that an item that kills its workers is put aside. */
  lost: {
    column: string;
    /** A text column that says why, when an item is put aside. */
    error?: string;
  };
  /** Further assignments made by a claim, for example `attempt = t.attempt + 1`. */
  onClaim?: string;
  /** Further assignments made by release and reclaim. */
  onReturn?: string;
  /** Columns handed to the claimer beside key and fence. */
  returning?: string;
  /** The ways in which the holder can finish. */
  outcomes: Readonly<Record<string, Outcome>>;
  /** At most `limit` leased items for each value of a text column. The ready index must start with that column. */
  concurrency?: { column: string; limit: string };
}

export interface Outcome {
  /** Assignments; an item's own values are `i.<column>`. */
  set: string;
  values?: Columns;
}

/** A key with the fence under which it is held. A null fence is a hold without a lease, which a module may permit. */
export type Held<Key> = Key & { fence: string | null };

export interface ClaimRequest {
  limit: number;
  /** The holder: a worker's name for item leases, the session's id for session leases. */
  holder: string;
  /** How long, for item leases. */
  seconds?: number;
}

/** Writes that belong to a claim, made in its transaction. */
export type AlsoOnClaim<Claimed> = (tx: Queryable, claimed: Claimed[]) => Promise<void>;

export interface Lease<Key extends object, Item extends object> {
  readonly name: string;
  claim(
    db: Db,
    request: ClaimRequest,
    also?: AlsoOnClaim<Key & Item & { fence: string }>,
  ): Promise<(Key & Item & { fence: string })[]>;
  /** Pushes the end of item leases into the future; returns the items still held. */
  extend(db: Queryable, held: readonly Held<Key>[], seconds: number): Promise<Key[]>;
  /** Writes an outcome; returns the items that were still held, so missing ones are lost leases. */
  finish(db: Queryable, outcome: string, items: readonly Held<Key>[]): Promise<Key[]>;
  /** Gives items back untouched, as on shutdown; this is not counted as a loss. */
  release(db: Queryable, held: readonly Held<Key>[]): Promise<Key[]>;
  /** What silent holders left behind, untouched: for a module whose own transition takes it back, guarded by the fence. */
  expired(db: Queryable, limit: number): Promise<(Key & { fence: string })[]>;
  /** Takes back what silent holders left behind; an item that lost `lostLimit` holders is dead. */
  reclaim(db: Queryable, request: { limit: number; lostLimit: number }): Promise<(Key & { state: string })[]>;
}

/** How many concurrency keys one claim looks at. More are reached by the following claims, which go on from there. */
const CONCURRENCY_KEYS_MAX = 500;

export function leaseOn<Key extends object, Item extends object = object>(spec: LeaseSpec): Lease<Key, Item> {
  const { table, state, hold } = spec;
  const keyNames = Object.keys(spec.key);
  const key = (alias: string) => keyNames.map((name) => `${alias}.${name}`).join(", ");
  const sameKey = keyNames.map((name) => `t.${name} = p.${name}`).join(" and ");
  const readyStates = state.ready.map(quote);
  const stateIn = (states: readonly string[]) =>
    states.length === 1 ? `t.${state.column} = ${states[0]}` : `t.${state.column} in (${states.join(", ")})`;
  const ready = [stateIn(readyStates), spec.readyWhen, spec.dueAt && `t.${spec.dueAt} <= now()`]
    .filter(Boolean)
    .join(" and ");
  const leased = stateIn([quote(state.leased)]);
  const also = (assignments: string | undefined) => (assignments ? `, ${assignments}` : "");

  const holding =
    hold.by === "item"
      ? {
          take: `${hold.owner} = $2, ${hold.until} = now() + make_interval(secs => $3)`,
          drop: `${hold.owner} = null, ${hold.until} = null`,
          expired: `t.${hold.until} <= now()`,
        }
      : {
          take: `${hold.session} = $2::bigint`,
          drop: `${hold.session} = null`,
          expired: `not exists (select from kernel.session s where s.id = t.${hold.session} and s.expires_at > now())`,
        };

  const returning = `returning ${key("t")}, t.${spec.fence}::text as fence${also(spec.returning)}`;
  const take = `update ${table} t
     set ${state.column} = ${quote(state.leased)}, ${spec.fence} = nextval('kernel.fence'), ${holding.take}${also(spec.onClaim)}
     from picked p where ${sameKey} ${returning}`;
  // "materialized" says aloud what must hold: run twice, the locking subquery would lock more rows than the limit.
  const claim: Statement<Key & Item & { fence: string }> = statement(
    `${spec.name}.claim`,
    `with picked as materialized (
       select ${key("t")} from ${table} t where ${ready} order by ${spec.orderBy} limit $1 for update skip locked
     ) ${take}`,
  );

  const claimByKey = spec.concurrency && concurrencyStatements(spec.concurrency);

  function concurrencyStatements({ column, limit }: NonNullable<LeaseSpec["concurrency"]>) {
    const nextKey = (bound: string) =>
      `select t.${column} as key from ${table} t where ${ready} and t.${column} ${bound} order by 1 limit 1`;
    return {
      // Walks the ready index from key to key, so that a million items behind one busy key cost one step, and takes an
      // advisory lock on each, so that two claims never count the same key's room at once. They wait for each other, for
      // who came back with nothing would go to sleep beside work that it could do; all go in the order of the keys, so
      // they cannot deadlock. The room itself must be counted by the next statement: this one's snapshot may be older
      // than the lock.
      lockKeys: statement<{ key: string }>(
        `${spec.name}.lock_keys`,
        `with recursive keys(key, n) as (
           (select key, 1 from (${nextKey(">= $1")}) first)
           union all
           select (${nextKey("> keys.key")}), n + 1 from keys where key is not null and n < $2
         )
         select key, pg_advisory_xact_lock(hashtextextended('${spec.name} ' || key, 0))
         from keys where key is not null`,
      ),
      claimIn: statement<Key & Item & { fence: string }>(
        `${spec.name}.claim_in_keys`,
        `with room as materialized (
           select k.key, coalesce((${limit}), 0) - (select count(*) from ${table} t where ${leased} and t.${column} = k.key) as free
           from unnest($${hold.by === "item" ? 4 : 3}::text[]) as k(key)
         ), candidates as materialized (
           select c.* from room, lateral (
             select t.* from ${table} t where ${ready} and t.${column} = room.key
             order by ${spec.orderBy} limit greatest(least(room.free, $1), 0) for update skip locked
           ) c
         ), picked as materialized (
           select ${key("t")} from candidates t order by ${spec.orderBy} limit $1
         ) ${take}`,
      ),
    };
  }
  let lastKey = ""; // Where the next walk over the keys begins, so that the keys at the end get their turn.

  const update = guardedUpdate<Held<Key>, Key>;
  const stillHeld = `${leased} and t.${spec.fence} is not distinct from i.fence`;
  const byFence = { table, key: spec.key };
  const finish = new Map(
    Object.entries(spec.outcomes).map(([outcome, { set, values }]) => [
      outcome,
      update({
        ...byFence,
        name: `${spec.name}.${outcome}`,
        values: { fence: "int8", ...values },
        set: `${holding.drop}, ${set}`,
        where: stillHeld,
      }),
    ]),
  );
  const release = update({
    ...byFence,
    name: `${spec.name}.release`,
    values: { fence: "int8" },
    set: `${state.column} = ${readyStates[0]}, ${spec.fence} = null, ${holding.drop}${also(spec.onReturn)}`,
    where: stillHeld,
  });
  const extend =
    hold.by === "item"
      ? guardedUpdate<Held<Key> & { seconds: number }, Key>({
          ...byFence,
          name: `${spec.name}.extend`,
          values: { fence: "int8", seconds: "float8" },
          set: `${hold.until} = now() + make_interval(secs => i.seconds)`,
          // A lease that ran out but was not reclaimed yet may still be extended: nobody else has had the item.
          where: `${stillHeld} and i.fence is not null`,
        })
      : undefined;
  const tooOften = `t.${spec.lost.column} + 1 >= $2`;
  const reason =
    spec.lost.error &&
    `${spec.lost.error} = case when ${tooOften} then 'lost ' || t.${spec.lost.column} + 1 || ' workers in a row' else t.${spec.lost.error} end`;
  const expired: Statement<Key & { fence: string }> = statement(
    `${spec.name}.expired`,
    `select ${key("t")}, t.${spec.fence}::text as fence from ${table} t where ${leased} and ${holding.expired} limit $1`,
  );
  const reclaim: Statement<Key & { state: string }> = statement(
    `${spec.name}.reclaim`,
    `with picked as materialized (
       select ${key("t")} from ${table} t where ${leased} and ${holding.expired} limit $1 for update skip locked
     ) update ${table} t
     set ${state.column} = case when ${tooOften} then ${quote(state.dead)} else ${readyStates[0]} end,
         ${spec.lost.column} = t.${spec.lost.column} + 1, ${spec.fence} = null, ${holding.drop}${also(spec.onReturn)}${also(reason)}
     from picked p where ${sameKey} returning ${key("t")}, t.${state.column} as state`,
  );

  return {
    name: spec.name,
    async claim(db, { limit, holder, seconds }, alsoOnClaim) {
      const values = hold.by === "item" ? [limit, holder, seconds] : [limit, holder];
      const withAlso = async (tx: Queryable, claimed: (Key & Item & { fence: string })[]) => {
        if (claimed.length > 0) await alsoOnClaim?.(tx, claimed);
        return claimed;
      };
      if (!claimByKey) {
        return alsoOnClaim ? db.tx(async (tx) => withAlso(tx, await tx.rows(claim, values))) : db.rows(claim, values);
      }
      const claimFrom = (firstKey: string) =>
        db.tx(async (tx) => {
          const keys = await tx.rows(claimByKey.lockKeys, [firstKey, CONCURRENCY_KEYS_MAX]);
          lastKey = keys.length < CONCURRENCY_KEYS_MAX ? "" : (keys.at(-1)?.key ?? "");
          if (keys.length === 0) return [];
          return withAlso(tx, await tx.rows(claimByKey.claimIn, [...values, keys.map((row) => row.key)]));
        });
      const firstKey = lastKey;
      const claimed = await claimFrom(firstKey);
      return claimed.length === 0 && firstKey !== "" ? claimFrom("") : claimed;
    },
    extend(db, held, seconds) {
      if (!extend) throw new Error(`${spec.name} is held by session: its heartbeat extends it`);
      return extend(
        db,
        held.map((item) => ({ ...item, seconds })),
      );
    },
    finish(db, outcome, items) {
      const write = finish.get(outcome);
      if (!write) throw new Error(`${spec.name} has no outcome ${outcome}`);
      return write(db, items);
    },
    release,
    expired: (db, limit) => db.rows(expired, [limit]),
    reclaim: (db, { limit, lostLimit }) => db.rows(reclaim, [limit, lostLimit]),
  };
}

function quote(text: string): string {
  return `'${text.replaceAll("'", "''")}'`;
}
