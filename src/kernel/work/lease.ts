/**
 * The one mechanism for durable work. A lease turns any table with a state column into a queue that many processes can
 * work on: tracking cells, chain nodes, harvest tasks, async tasks, deliveries.
 *
 *     ready ──claim──▶ leased ──finish──▶ an outcome of the module (done, failed, retry later ...)
 *       ▲                │ │
 *       └──release───────┘ └──reclaim, when the holder's lease expired──▶ ready, or dead after too many lost holders
 *
 * A claim gives the item a new fence, a number from one increasing sequence. Every later write of the holder includes it in
 * the statement. A holder whose lease expired and whose item was claimed again has an old fence and changes nothing: zero
 * rows mean that the lease is lost.
 *
 * Leases read only the database's clock. An item is held either until its own expiry time, which suits daemons that pull
 * over HTTP, or until the session of the process that claimed it expires (session.ts), which costs one heartbeat per process
 * instead of one per item.
 *
 * lease-sql.ts builds the statements; docs/leases.md shows them as they are sent.
 */
import { type Columns, guardedUpdate, toArrays } from "../data/batch.ts";
import type { Db, Queryable, Tx } from "../data/db.ts";
import { type Statement, statement } from "../data/statement.ts";
import { leaseSql } from "./lease-sql.ts";

export interface LeaseSpec {
  /** Names the statements, for example `tracking.shard_worker`. */
  name: string;
  table: string;
  /** The primary key: column to Postgres type. */
  key: Readonly<Record<string, ValueType>>;
  state: {
    column: string;
    /** States that may be claimed. The first is where released and reclaimed items go. */
    ready: readonly [string, ...string[]];
    leased: string;
    /** The state of an item whose holders were lost too often. */
    dead: string;
  };
  /** The condition for the rows of this lease, where other leases share the table. */
  scope?: string;
  /** A further condition of a ready item. Together with the state it should be exactly the condition of the partial index. */
  readyWhen?: string;
  /** A column with the time before which an item may not be claimed. */
  dueAt?: string;
  /** The order of ready items: priority, age, key. Matches the partial index. */
  orderBy: string;
  /** The first expression of `orderBy`, where few values of it share the queue, each with items that are due later. */
  levels?: string;
  fence: string;
  hold: { by: "item"; owner: string; until: string } | { by: "session"; session: string };
  /** Lost holders, counted separately from failures, so that an item that kills its workers becomes dead. */
  lost: {
    column: string;
    /** A text column for the reason why an item is dead. */
    error?: string;
  };
  /** Further assignments made by a claim. */
  onClaim?: Assignments;
  /** Further assignments made when an item becomes ready again without a result: released, reclaimed. */
  onReturn?: Assignments;
  /** Further assignments made when an item becomes dead. They replace those of `onReturn`. */
  onDead?: Assignments;
  /** Columns handed to the claimer beside key and fence: `returning<Row>("t.topic, t.payload")`. */
  returning?: Returning<object>;
  /** The ways in which the holder can finish. */
  outcomes: Readonly<Record<string, Outcome>>;
  /**
   * At most `limit` leased items for each value of a text column. The ready index must start with that column. With `fairBy`,
   * items with the same value of that expression go to the keys in turn, instead of by `orderBy` alone; it must be the second column
   * of the ready index and the first of `orderBy`.
   */
  concurrency?: { column: string; limit: string; fairBy?: string };
}

/** Column to SQL expression; the row is `t`. */
export type Assignments = Readonly<Record<string, string>>;

export interface Outcome {
  /** Assignments; an item's own values are `i.<column>`. */
  set: string;
  /** The values that each item must have; `text?` may be null. */
  values?: Readonly<Record<string, ValueType | `${ValueType}?`>>;
}

/** The Postgres types that keys and values of outcomes have, and what they are in TypeScript. */
interface ValueTypes {
  text: string;
  uuid: string;
  int8: string;
  int4: number;
  float8: number;
  bool: boolean;
  timestamptz: Date;
}
type ValueType = keyof ValueTypes;
type ValueOf<Type> = Type extends ValueType
  ? ValueTypes[Type]
  : Type extends `${infer Required extends ValueType}?`
    ? ValueTypes[Required] | null
    : never;

/** SQL for `returning`, with the type of its row. */
export interface Returning<Row extends object> {
  readonly sql: string;
  /** Carries the row type only; never set. */
  readonly row?: Row;
}

export function returning<Row extends object>(sql: string): Returning<Row> {
  return { sql };
}

type KeyOf<Spec extends LeaseSpec> = { [Column in keyof Spec["key"]]: ValueOf<Spec["key"][Column]> };
type ItemOf<Spec extends LeaseSpec> = Spec["returning"] extends Returning<infer Row> ? Row : object;
type Outcomes = LeaseSpec["outcomes"];
type ValuesOf<One extends Outcome> = One extends { values: infer Values }
  ? { [Column in keyof Values]: ValueOf<Values[Column]> }
  : object;

/** A key with the fence under which it is held. A null fence is a hold without a lease, which a module may permit. */
export type Held<Key> = Key & { fence: string | null };
/** As a claim hands it out. */
export type Leased<Key> = Key & { fence: string };

export interface ClaimRequest {
  limit: number;
  /** The holder: a worker's name for item leases, the session's id for session leases. */
  holder: string;
  /** How long, for item leases. */
  seconds?: number;
  /** For leases with a limit for each key: items of other keys are left alone. */
  only?: (key: string) => boolean;
}

/** Writes that belong to a claim, made in its transaction. */
export type AlsoOnClaim<Claimed> = (tx: Tx, claimed: Claimed[]) => Promise<void>;

export interface Lease<Key extends object, Item extends object = object, Ways extends Outcomes = Outcomes> {
  readonly name: string;
  /** As they are sent, for docs/leases.md. */
  readonly statements: readonly Statement<unknown>[];
  claim(db: Db, request: ClaimRequest, also?: AlsoOnClaim<Leased<Key> & Item>): Promise<(Leased<Key> & Item)[]>;
  /** Extends item leases; returns the items still held. */
  extend(db: Queryable, held: readonly Held<Key>[], seconds: number): Promise<Key[]>;
  /**
   * Locks the items in the caller's transaction and returns those that are still held, so that other writes of the
   * transaction depend on the lease. They stay leased.
   */
  hold(tx: Tx, held: readonly Held<Key>[]): Promise<Key[]>;
  /** Writes an outcome; returns the items that were still held, so missing ones are lost leases. */
  finish<Name extends keyof Ways & string>(
    db: Queryable,
    outcome: Name,
    items: readonly (Held<Key> & ValuesOf<Ways[Name]>)[],
  ): Promise<Key[]>;
  /** Returns items to their ready state unchanged, as on shutdown; not counted as a loss. */
  release(db: Queryable, held: readonly Held<Key>[]): Promise<Key[]>;
  /** Returns items whose holder does not know their outcome; counted as a loss. */
  lose(db: Queryable, held: readonly Held<Key>[], lostLimit: number): Promise<(Key & { state: string })[]>;
  /** All that a session holds. */
  heldBy(db: Queryable, session: string): Promise<Leased<Key>[]>;
  /** Items whose lease expired, unchanged: for a module that reclaims them with its own transition, guarded by the fence. */
  expired(db: Queryable, limit: number): Promise<Leased<Key>[]>;
  /** Reclaims items whose lease expired; an item that lost `lostLimit` holders is dead. */
  reclaim(db: Queryable, request: { limit: number; lostLimit: number }): Promise<(Key & { state: string })[]>;
}

/** How many concurrency keys one claim reads. The following claims continue from there. */
const CONCURRENCY_KEYS_MAX = 500;

const FENCE: Columns = { fence: "int8" };

export function leaseOn<const Spec extends LeaseSpec>(spec: Spec): Lease<KeyOf<Spec>, ItemOf<Spec>, Spec["outcomes"]> {
  type Key = KeyOf<Spec>;
  type Claimed = Leased<Key> & ItemOf<Spec>;
  const sql = leaseSql(spec);
  const named = <Row>(what: string, text: string): Statement<Row> => {
    const one = statement<Row>(`${spec.name}.${what}`, text);
    statements.push(one);
    return one;
  };
  const statements: Statement<unknown>[] = [];
  const guarded = <Item extends object, Moved>(what: string, set: string, values: Columns, more = "") => {
    const update = guardedUpdate<Item, Moved>({
      name: `${spec.name}.${what}`,
      table: spec.table,
      key: spec.key,
      values,
      set,
      where: `${sql.stillHeld}${more}`,
      ...(what === "lose" ? { returning: `t.${spec.state.column} as state` } : {}),
    });
    statements.push(update.statement);
    return update;
  };

  const claim = named<Claimed>("claim", sql.claim);
  const claimByKey = sql.byKey && {
    lockKeys: named<{ key: string }>("lock_keys", sql.byKey.lockKeys),
    claimIn: named<Claimed>("claim_in_keys", sql.byKey.claimIn),
  };
  const finish = new Map(
    Object.entries(spec.outcomes).map(([outcome, { set, values = {} }]) => {
      const write = guarded<Held<Key>, Key>(outcome, `${sql.drop}, ${set}`, { ...FENCE, ...columnsOf(values) });
      return [outcome, { write, complete: completeness(`${spec.name}.${outcome}`, values) }] as const;
    }),
  );
  const release = guarded<Held<Key>, Key>("release", sql.release, FENCE);
  const lose = guarded<Held<Key> & { lost_limit: number }, Key & { state: string }>("lose", sql.lose("i.lost_limit"), {
    ...FENCE,
    lost_limit: "int4",
  });
  const extend =
    sql.extend === undefined
      ? undefined
      : // A lease that expired but was not reclaimed yet may still be extended: no other process has had the item.
        guarded<Held<Key> & { seconds: number }, Key>(
          "extend",
          sql.extend,
          { ...FENCE, seconds: "float8" },
          " and i.fence is not null",
        );
  const hold = named<Key>("hold", sql.hold);
  const heldBy = sql.heldBy === undefined ? undefined : named<Leased<Key>>("held_by", sql.heldBy);
  const expired = named<Leased<Key>>("expired", sql.expired);
  const reclaim = named<Key & { state: string }>("reclaim", sql.reclaim);
  const holdColumns = { ...spec.key, ...FENCE };
  let lastKey = ""; // Where the next claim starts reading keys, so that the last keys are served too.

  return {
    name: spec.name,
    statements,
    async claim(db, { limit, holder, seconds, only = () => true }, alsoOnClaim) {
      const values = spec.hold.by === "item" ? [limit, holder, seconds] : [limit, holder];
      const withAlso = async (tx: Tx, claimed: Claimed[]) => {
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
          const wanted = keys.map(({ key }) => key).filter(only);
          if (wanted.length === 0) return [];
          return withAlso(tx, await tx.rows(claimByKey.claimIn, [...values, wanted]));
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
    async hold(tx, held) {
      return held.length === 0 ? [] : tx.rows(hold, toArrays(holdColumns, held));
    },
    finish(db, outcome, items) {
      const way = finish.get(outcome);
      if (!way) throw new Error(`${spec.name} has no outcome ${outcome}`);
      for (const item of items) way.complete(item);
      return way.write(db, items);
    },
    release,
    lose: (db, held, lostLimit) =>
      lose(
        db,
        held.map((item) => ({ ...item, lost_limit: lostLimit })),
      ),
    async heldBy(db, session) {
      if (!heldBy) throw new Error(`${spec.name} is held item by item, not by session`);
      return db.rows(heldBy, [session]);
    },
    expired: (db, limit) => db.rows(expired, [limit]),
    reclaim: (db, { limit, lostLimit }) => db.rows(reclaim, [limit, lostLimit]),
  };
}

function columnsOf(values: NonNullable<Outcome["values"]>): Columns {
  return Object.fromEntries(Object.entries(values).map(([name, type]) => [name, type.replace("?", "")]));
}

/** Refuses an item that lacks a value: written as NULL, it would silently erase the value in the row. */
function completeness(outcome: string, values: NonNullable<Outcome["values"]>): (item: object) => void {
  const required = Object.entries(values).map(([name, type]) => ({ name, isNullable: type.endsWith("?") }));
  return (item) => {
    for (const { name, isNullable } of required) {
      const value = (item as Record<string, unknown>)[name];
      if (value === undefined || (value === null && !isNullable))
        throw new Error(`${outcome} needs a value for ${name}`);
    }
  };
}
